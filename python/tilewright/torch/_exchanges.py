"""Exchanges of heads among ranks as operators with gradients: from own tokens of all heads to all
tokens of own heads, also behind a projection, and the way back."""

import torch

from ..group import Group
from ._attention import PACKED, check_shapes, require_offsets
from ._checks import (
    DTYPES,
    check_alike,
    check_integer,
    check_size,
    check_tensor,
    checked_target,
    refuse,
    under_autocast,
)
from ._gemm import gemm
from ._over_ranks import (
    TOKENS,
    alone,
    call_or_into,
    divided,
    how_of,
    over,
    require_same_offsets,
    run_ranks,
)
from ._run import define, differentiate


@over
def all_to_all(q, k, v, *, cu_seqlens=None, group, out=None, target=None):
    """From own tokens of all heads to all tokens of own heads: q {batch, length, heads, dim}, the
    result {batch, ranks * length, heads / ranks, dim}, the tokens in the order of the ranks; k and
    v likewise, of another length perhaps. Of fewer heads of k and v than ranks several ranks get
    the same. Returns three tensors, with gradients.

    cu_seqlens  i32 {ranks, sequences + 1}, the same in every rank, or a pair for q and for k and v:
                the sequences are packed, and each is divided among the ranks, of which a row says
                where the parts begin. q, k and v are {tokens, heads, dim}, as many in every rank.
                In a result a sequence has the ranks' parts in their order; rows of none are 0
    """
    parts = _checked_parts(cu_seqlens, 2, q, group)
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        check_tensor(name, tensor, TOKENS if cu_seqlens is None else PACKED)
    q, k, v = under_autocast(q, k, v)
    check_shapes(q, k, v)
    divided("number of heads of q", q.shape[-2], group)
    _require_kv_heads("k has", k.shape[-2], group)
    return call_or_into(_all_to_all, _exchange, (q, k, v), parts, group, target, out)


@over
def all_to_all_back(o, *, cu_seqlens=None, group, out=None, target=None):
    """The way back of all_to_all, of what attention has made of its results: o {batch, ranks *
    length, own heads, dim}, the result {batch, length, ranks * own heads, dim}. cu_seqlens are
    those of all_to_all's queries."""
    parts = _checked_parts(cu_seqlens, 1, o, group)
    check_tensor("o", o, TOKENS if cu_seqlens is None else PACKED)
    divided("length of o", o.shape[-3], group)
    return call_or_into(_all_to_all_back, _exchange_back, (o,), parts, group, target, out)


@over
def projection_all_to_all(x, weight, *, heads, kv_heads=None, bias=None, cu_seqlens=None, group,
                          target=None):
    """all_to_all behind a projection: q, k and v are linear(x, weight, bias), and heads go to their
    ranks as they are made. Returns three tensors, with gradients.

    x         {batch, length, k} of this rank; {tokens, k} with cu_seqlens as all_to_all has it
    weight    {(heads + 2 kv_heads) dim, k}: the rows of q's heads, k's, and v's. Each rank gets the
              gradient by its own tokens, of bias {(heads + 2 kv_heads) dim} too
    heads     of q, of all ranks; kv_heads of k and of v: as many if it is left out
    """
    parts = _checked_parts(cu_seqlens, 1, x, group)
    check_tensor("x", x, ("batch", "length", "k") if cu_seqlens is None else ("tokens", "k"))
    check_tensor("weight", weight, ("(heads + 2 kv_heads) dim", "k"))
    kv_heads = heads if kv_heads is None else kv_heads
    for name, count in (("heads", heads), ("kv_heads", kv_heads)):
        fix = "set it to a number of heads, of all ranks"
        check_integer(name, count, fix)
        if count < 1:
            refuse(f"{name} is {count}", fix)
    divided("number of heads", heads, group)
    _require_kv_heads("kv_heads is", kv_heads, group)
    if heads % kv_heads != 0:
        refuse(f"heads is {heads}, and kv_heads {kv_heads}",
               "set kv_heads to a number that divides heads")
    x, weight = under_autocast(x, weight)
    check_alike("x", x, "weight", weight)
    check_size("weight", weight, 1, "k", x.shape[-1], "x")
    rows = weight.shape[0]
    if rows == 0 or rows % (heads + 2 * kv_heads) != 0:
        refuse(f"weight has {rows} rows, and there are {heads} + 2 * {kv_heads} heads",
               "pass a multiple of the heads")
    if bias is not None:
        check_tensor("bias", bias, ("(heads + 2 kv_heads) dim",))
        check_size("bias", bias, 0, "number of rows", rows, "weight")
        bias = bias.to(x.dtype)
    return _projection_all_to_all(x, weight, bias, *parts, heads, kv_heads, group.name,
                                  checked_target(target))


def _require_kv_heads(who, kv_heads, group):
    if kv_heads % group.size != 0 and group.size % max(kv_heads, 1) != 0:
        refuse(f"{who} {kv_heads} heads, and there are {group.size} ranks",
               "pass a multiple or a divisor of the ranks")


def _checked_parts(cu_seqlens, count, tensor, group):
    """Those of so many tensors."""
    if cu_seqlens is None:
        return (None,) * count
    given = cu_seqlens if isinstance(cu_seqlens, (tuple, list)) else (cu_seqlens,) * count
    said = f"{{{group.size}, sequences + 1}}"
    if len(given) != count:
        refuse(f"cu_seqlens has {len(given)} tensors", f"pass one {said}" + ", or a pair of "
               "queries and keys" * (count == 2))
    for each in given:
        if not isinstance(each, torch.Tensor) or each.dtype != torch.int32:
            refuse(f"cu_seqlens is of {getattr(each, 'dtype', type(each).__name__)}",
                   "pass a tensor of torch.int32")
        if each.dim() != 2 or each.shape[0] != group.size or each.shape[1] < 2:
            refuse(f"cu_seqlens has the shape {tuple(each.shape)}",
                   f"pass {said}: for each rank where its parts of the sequences begin")
        if each.device != tensor.device:
            refuse(f"cu_seqlens is on {each.device}, and the tokens on {tensor.device}",
                   f"move cu_seqlens to {tensor.device}")
        if each.shape != given[0].shape:
            refuse(f"cu_seqlens has {given[0].shape[1] - 1} sequences of queries, and "
                   f"{each.shape[1] - 1} of keys", "pass as many of both")
    return tuple(given)


def _require_parts(group, parts, tokens):
    """Of the host, where they can be read without waiting."""
    if parts[0] is None or parts[0].is_cuda:
        return
    require_same_offsets(group, parts, "pass the same in all ranks")
    for each, most in zip(parts, tokens):
        for rank, own in enumerate(each):
            require_offsets(f"cu_seqlens of rank {rank}", own, most, 0)


def _without_others(tensor, first, end):
    """Zeros in the rows of no sequence, which no rank writes."""
    places = torch.arange(tensor.shape[0], device=tensor.device)
    return tensor.where(((places >= first) & (places < end))[:, None, None], 0)


def _of_all(results, parts):
    return tuple(result if each is None else
                 _without_others(result, each[:, 0].sum(), each[:, -1].sum())
                 for result, each in zip(results, parts))


def _shape_in_all(shape, group):
    """Of tokens of all ranks and own heads."""
    size = Group.named(group).size
    *batch, length, heads, dim = shape
    return (*batch, size * length, max(heads // size, 1), dim)


def _exchange(q, k, v, parts_q, parts_k, group, target, out=None):
    packed = parts_q is not None
    _require_parts(Group.named(group), (parts_q, parts_k), (q.shape[0], k.shape[0]))
    options = {"heads": q.shape[-2], "kv_heads": k.shape[-2], "dim": q.shape[-1],
               "dim_v": v.shape[-1], "dtype": DTYPES[q.dtype]}
    results = run_ranks(group, "all_to_all_varlen" if packed else "all_to_all", options, target,
                        {"Q": q.contiguous(), "K": k.contiguous(), "V": v.contiguous(),
                         "cu_seqlens_q": parts_q, "cu_seqlens_k": parts_k},
                        {name: (_shape_in_all(tensor.shape, group), tensor.dtype)
                         for name, tensor in (("Q_all", q), ("K_all", k), ("V_all", v))}, out)
    return _of_all(results, (parts_q, parts_k, parts_k))


def _returned_shape(o, group):
    size = Group.named(group).size
    *batch, length, heads, dim = o.shape
    return (*batch, length // size, heads * size, dim)


def _exchange_back(o, parts, group, target, out=None):
    shape, ranks = _returned_shape(o, group), Group.named(group)
    _require_parts(ranks, (parts,), (shape[0],))
    options = {"heads": shape[-2], "dim_v": shape[-1], "dtype": DTYPES[o.dtype]}
    back, = run_ranks(group, "all_to_all_back" if parts is None else "all_to_all_varlen_back",
                      options, target, {"O_all": o.contiguous(), "cu_seqlens_q": parts},
                      {"O": (shape, o.dtype)}, out)
    if parts is None:
        return back
    return _without_others(back, parts[ranks.rank, 0], parts[ranks.rank, -1])


def _returned(gradient, heads, parts, how):
    """What has become of a tensor of so many heads, of which several ranks may have had one."""
    own = all_to_all_back(gradient, cu_seqlens=parts, **how)
    size = how["group"].size
    return own if heads >= size else own.unflatten(-2, (heads, size // heads)).sum(-2)


def _keep_exchange(ctx, arguments, _):
    ctx.kv_heads, ctx.how = arguments[1].shape[-2], arguments[-2:]
    ctx.save_for_backward(*arguments[3:5])


def _gradients_of_exchange(ctx, *gradients):
    how = how_of(ctx)
    parts_q, parts_k = ctx.saved_tensors
    kinds = ((how["group"].size, parts_q), (ctx.kv_heads, parts_k), (ctx.kv_heads, parts_k))
    return (*(_returned(gradient, heads, parts, how) if needed else None
              for gradient, (heads, parts), needed in zip(gradients, kinds, ctx.needs_input_grad)),
            *(None,) * 4)


def _keep_parts(ctx, arguments, _):
    ctx.how = arguments[-2:]
    ctx.save_for_backward(arguments[1])


def _gradient_of_return(ctx, d_o):
    parts, = ctx.saved_tensors
    if parts is None:
        few, pair = d_o[:, :1], None  # keys and values there must be
    else:
        few, pair = d_o[:1], (parts, torch.zeros_like(parts))
    return all_to_all(d_o, few, few, cu_seqlens=pair, **how_of(ctx))[0], None, None, None


def _heads_of(x, weight, heads, kv_heads):
    """Shapes of q, k and v before they are sent."""
    dim = weight.shape[0] // (heads + 2 * kv_heads)
    return [(*x.shape[:-1], count, dim) for count in (heads, kv_heads, kv_heads)]


def _project(x, weight, bias, parts, heads, kv_heads, group, target):
    _require_parts(Group.named(group), (parts,), (x.shape[0],))
    shapes = _heads_of(x, weight, heads, kv_heads)
    options = {"heads": heads, "kv_heads": kv_heads, "dim": shapes[0][-1],
               "dtype": DTYPES[x.dtype], "bias": bias is not None}
    name = "projection_all_to_all" if parts is None else "projection_all_to_all_varlen"
    results = run_ranks(group, name, options, target,
                        {"X": x.contiguous(), "W": weight.contiguous(), "bias": bias,
                         "cu_seqlens": parts},
                        {name: (_shape_in_all(shape, group), x.dtype)
                         for name, shape in zip(("Q_all", "K_all", "V_all"), shapes)})
    return _of_all(results, (parts,) * 3)


def _keep_projection(ctx, arguments, _):
    x, weight, bias, parts, *ctx.heads, _, _ = arguments
    ctx.how, ctx.bias_dtype = arguments[-2:], None if bias is None else bias.dtype
    ctx.save_for_backward(x, weight, parts)


def _gradients_of_projection(ctx, *gradients):
    x, weight, parts = ctx.saved_tensors
    how = how_of(ctx)
    heads, kv_heads = ctx.heads
    d_y = torch.cat([_returned(gradient, count, parts, how).flatten(-2)
                     for gradient, count in zip(gradients, (heads, kv_heads, kv_heads))], -1)
    needs_x, needs_weight, needs_bias, *_ = ctx.needs_input_grad
    rows = d_y.reshape(-1, d_y.shape[-1])
    where = alone(how["target"])
    d_x = gemm(rows, weight, target=where).view(x.shape) if needs_x else None
    d_weight = gemm(rows.t(), x.reshape(-1, x.shape[-1]), target=where) if needs_weight else None
    d_bias = rows.sum(0, dtype=torch.float32).to(ctx.bias_dtype) if needs_bias else None
    return d_x, d_weight, d_bias, *(None,) * 5


_all_to_all = define(
    "all_to_all(Tensor q, Tensor k, Tensor v, Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, "
    "str group, str target) -> (Tensor, Tensor, Tensor)", _exchange,
    lambda q, k, v, parts_q, parts_k, group, target: tuple(
        tensor.new_empty(_shape_in_all(tensor.shape, group)) for tensor in (q, k, v)))
differentiate(_all_to_all, 3, _keep_exchange, _gradients_of_exchange)
_all_to_all_back = define(
    "all_to_all_back(Tensor o, Tensor? cu_seqlens, str group, str target) -> Tensor",
    _exchange_back, lambda o, parts, group, target: o.new_empty(_returned_shape(o, group)))
differentiate(_all_to_all_back, 1, _keep_parts, _gradient_of_return)
_projection_all_to_all = define(
    "projection_all_to_all(Tensor x, Tensor weight, Tensor? bias, Tensor? cu_seqlens, SymInt heads,"
    " SymInt kv_heads, str group, str target) -> (Tensor, Tensor, Tensor)", _project,
    lambda x, weight, bias, parts, heads, kv_heads, group, target: tuple(
        x.new_empty(_shape_in_all(shape, group))
        for shape in _heads_of(x, weight, heads, kv_heads)))
differentiate(_projection_all_to_all, 3, _keep_projection, _gradients_of_projection)

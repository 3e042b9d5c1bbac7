"""Operations over ranks as operators with gradients. Each one's gradient is another of them: so all
ranks go backward through the same graph, and ask for the gradients of the same tensors. A group is
named in a graph, since nothing but texts, numbers and tensors are in one."""

import functools

import torch

from ..group import Group
from ._attention import (
    PACKED,
    check_masked,
    check_shapes,
    checked_offsets,
    kernel_options,
    require_offsets,
)
from ._checks import (
    DTYPES,
    check_alike,
    check_integer,
    check_size,
    check_tensor,
    checked_target,
    refuse,
    short,
    sizes_text,
    under_autocast,
)
from ._gemm import gemm
from ._ranks import require_group, run_over
from ._run import define, differentiate, refuse_second_gradients
from ._shards import shard

_TOKENS = ("batch", "length", "heads", "dim")


def _over(function):
    """With a group that is one."""
    @functools.wraps(function)
    def call(*tensors, group, **options):
        require_group(group)
        return function(*tensors, group=group, **options)

    return call


def _run(group, name, options, target, tensors, outputs, out=None):
    return run_over(Group.named(group), name, options, target or None, tensors, outputs, out)


def _divided(what, size, group):
    if size % group.size != 0:
        refuse(f"the {what} is {size}, and there are {group.size} ranks",
               "pass a multiple of the ranks")
    return size // group.size


def _call(operator, implementation, tensors, settings, group, target, out):
    """The operator, or into `out` without it: no operator returns what it is given."""
    rest = (*settings, group.name, checked_target(target))
    if out is None:
        return operator(*tensors, *rest)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        refuse("out is given, and a tensor requires a gradient",
               "leave out= out, or call it under torch.no_grad()")
    return torch.compiler.disable(implementation)(*tensors, *rest, out)


def _keep_how(ctx, arguments, _):
    """Of an operator of one tensor, whose last arguments are the group and the target."""
    ctx.how = arguments[-2:]


def _how(ctx):
    group, target = ctx.how
    return {"group": Group.named(group), "target": target or None}


@_over
def all_gather(x, *, group, out=None, target=None):
    """The rows of all ranks, in their order: x {rows, ...}, the result {ranks * rows, ...}. Its
    gradient is reduce_scatter.

    group   what join() has given
    out     where the result goes; of empty() on a GPU nothing is copied. Without gradients
    target  interpreter, cpu or sim:sm_90a, for tensors of the host
    """
    check_tensor("x", x, ("rows", "..."))
    return _call(_all_gather, _gather, (x,), (), group, target, out)


@_over
def reduce_scatter(x, *, group, out=None, target=None):
    """The sum of all ranks' x {ranks * rows, ...}, of which each gets its own rows {rows, ...}:
    added in f32, in the order of the ranks. Its gradient is all_gather."""
    check_tensor("x", x, ("rows", "..."))
    _divided("number of rows of x", x.shape[0], group)
    return _call(_reduce_scatter, _scatter, (x,), (), group, target, out)


@_over
def all_reduce(x, *, group, out=None, target=None):
    """The sum of all ranks' x, in each of them. Its gradient is the sum of all ranks' gradients."""
    check_tensor("x", x, ("...",))
    return _call(_all_reduce, _reduce, (x,), (), group, target, out)


@_over
def broadcast(x, *, root=0, group, out=None, target=None):
    """The x of rank `root`, in each of them. Its gradient is there the sum of all ranks'
    gradients, and 0 elsewhere."""
    check_tensor("x", x, ("...",))
    fix = f"name a rank below {group.size}"
    check_integer("root", root, fix)
    if not 0 <= root < group.size:
        refuse(f"root is {root}", fix)
    return _call(_broadcast, _spread, (x,), (root,), group, target, out)


def _collective(name, x, wanted, shape, group, target, out, **options):
    """Of vectors: `x` as the kernel has it, which has the result as `shape`."""
    if out is not None:
        if not isinstance(out, torch.Tensor) or out.shape != torch.Size(wanted):
            said = sizes_text(out) if isinstance(out, torch.Tensor) else type(out).__name__
            refuse(f"out is {said}",
                   "pass a tensor {" + ", ".join(map(str, wanted)) + "}")
        out = out.view(shape) if out.is_contiguous() else out
    y, = _run(group, name, {"dtype": DTYPES[x.dtype], **options}, target, {"X": x},
              {"Y": (shape, x.dtype)}, out)
    return y.view(wanted)


def _gather(x, group, target, out=None):
    size = Group.named(group).size
    return _collective("all_gather", x.reshape(-1), _gathered_shape(x, group), (size, x.numel()),
                       group, target, out)


def _scatter(x, group, target, out=None):
    size = Group.named(group).size
    parts = x.reshape(size, x.numel() // size)
    return _collective("reduce_scatter", parts, _scattered_shape(x, group), parts.shape[1:], group,
                       target, out)


def _reduce(x, group, target, out=None):
    return _collective("all_reduce", x.reshape(-1), x.shape, (x.numel(),), group, target, out)


def _spread(x, root, group, target, out=None):
    return _collective("broadcast", x.reshape(-1), x.shape, (x.numel(),), group, target, out,
                       root=root)


def _gathered_shape(x, group, *_):
    return (Group.named(group).size * x.shape[0], *x.shape[1:])


def _scattered_shape(x, group, *_):
    return (x.shape[0] // Group.named(group).size, *x.shape[1:])


def _define_collective(schema, implementation, shape, backward):
    operator = define(schema, implementation, lambda x, *rest: x.new_empty(shape(x, *rest)))
    rest = (None,) * (schema.partition(")")[0].count(","))
    differentiate(operator, 1, _keep_how, lambda ctx, d_y: (backward(ctx, d_y), *rest))
    return operator


def _keep_root(ctx, arguments, _):
    ctx.root, *ctx.how = arguments[1:]


def _gradient_of_broadcast(ctx, d_y):
    how = _how(ctx)
    summed = all_reduce(d_y, **how)
    return summed if how["group"].rank == ctx.root else torch.zeros_like(summed), None, None, None


_all_gather = _define_collective(
    "all_gather(Tensor x, str group, str target) -> Tensor", _gather, _gathered_shape,
    lambda ctx, d_y: reduce_scatter(d_y, **_how(ctx)))
_reduce_scatter = _define_collective(
    "reduce_scatter(Tensor x, str group, str target) -> Tensor", _scatter, _scattered_shape,
    lambda ctx, d_y: all_gather(d_y, **_how(ctx)))
_all_reduce = _define_collective(
    "all_reduce(Tensor x, str group, str target) -> Tensor", _reduce, lambda x, *_: x.shape,
    lambda ctx, d_y: all_reduce(d_y, **_how(ctx)))
_broadcast = define("broadcast(Tensor x, int root, str group, str target) -> Tensor", _spread,
                    lambda x, *_: x.new_empty(x.shape))
differentiate(_broadcast, 1, _keep_root, _gradient_of_broadcast)


@_over
def gemm_reduce_scatter(a, b, *, bias=None, scale=None, group, target=None):
    """The sum over the ranks of a @ b, of which each gets its own rows: of a product whose depth is
    divided among ranks, a {ranks * rows, k} and b {k, n}, the result {rows, n}. Sums are in f32, in
    the order of the ranks. b is best the transpose of a contiguous {n, k}, as a weight's.

    scale   f32 of one element, by which the sum is multiplied. It has no gradient
    bias    {n}, which is added to each row behind that: the same in every rank, each of which gets
            the whole of its gradient
    """
    a, b = _operands(a, b)
    _divided("number of rows of a", a.shape[0], group)
    if bias is not None:
        check_tensor("bias", bias, ("n",), more_dtypes=(torch.float32,))
        check_size("bias", bias, 0, "n", b.shape[1], "b")
    if scale is not None:
        check_tensor("scale", scale, ("...",))
        if scale.numel() != 1 or scale.dtype != torch.float32:
            refuse(f"scale is {sizes_text(scale)} of {scale.dtype}",
                   "pass one element of torch.float32")
        if torch.is_grad_enabled() and scale.requires_grad:
            refuse("scale requires a gradient, and has none",
                   "multiply the result by it, or pass scale.detach()")
    return _gemm_reduce_scatter(a, b, bias, scale, group.name, checked_target(target))


@_over
def all_gather_gemm(a, b, *, group, target=None):
    """The rows of all ranks times b: a {rows, k}, b {k, n} of this rank, the result {ranks * rows,
    n}. b is best the transpose of a contiguous {n, k}, as a weight's."""
    a, b = _operands(a, b)
    return _all_gather_gemm(a, b, group.name, checked_target(target))


def _operands(a, b):
    check_tensor("a", a, ("m", "k"))
    check_tensor("b", b, ("k", "n"))
    a, b = under_autocast(a, b)
    check_alike("a", a, "b", b)
    check_size("b", b, 0, "k", a.shape[1], "a")
    return a, b


def _product_and_sum(a, b, bias, scale, group, target):
    size = Group.named(group).size
    rows = a.shape[0] // size
    tensors = {"A": a.unflatten(0, (size, rows)), "B": b.t().contiguous(),
               "scale": None if scale is None else scale.reshape(1),
               "bias": None if bias is None else bias.float()}
    options = {"dtype": DTYPES[a.dtype], "scale": scale is not None, "bias": bias is not None}
    c, = _run(group, "gemm_reduce_scatter", options, target, tensors,
              {"C": ((rows, b.shape[1]), a.dtype)})
    return c


def _product_of_gathered(a, b, group, target):
    tensors = {"A": a.contiguous(), "B": b.t().contiguous()}
    size = Group.named(group).size
    c, = _run(group, "all_gather_gemm", {"dtype": DTYPES[a.dtype]}, target, tensors,
              {"C": ((size, a.shape[0], b.shape[1]), a.dtype)})
    return c.flatten(0, 1)


def _keep_operands(ctx, arguments, _):
    a, b, *_ = arguments
    ctx.how = arguments[-2:]
    ctx.save_for_backward(a if ctx.needs_input_grad[1] else None,
                          b if ctx.needs_input_grad[0] else None,
                          arguments[3] if len(arguments) > 4 else None)
    ctx.bias_dtype = arguments[2].dtype if len(arguments) > 4 and ctx.needs_input_grad[2] else None


def _gradients_of_scattered(ctx, d_c):
    a, b, scale = ctx.saved_tensors
    how = _how(ctx)
    d_a = d_b = d_bias = None
    if ctx.bias_dtype is not None:
        d_bias = all_reduce(d_c.sum(0, dtype=torch.float32), **how).to(ctx.bias_dtype)
    if scale is not None:
        d_c = (d_c * scale).to(d_c.dtype)
    if b is not None:
        d_a = all_gather_gemm(d_c, b.t(), **how)
    if a is not None:
        d_b = gemm(a.t(), all_gather(d_c, **how), target=_alone(how["target"]))
    return d_a, d_b, d_bias, None, None, None


def _gradients_of_gathered(ctx, d_c):
    a, b, _ = ctx.saved_tensors
    how = _how(ctx)
    d_a = d_b = None
    if b is not None:
        d_a = gemm_reduce_scatter(d_c, b.t(), **how)
    if a is not None:
        d_b = gemm(all_gather(a, **how).t(), d_c, target=_alone(how["target"]))
    return d_a, d_b, None, None


def _alone(target):
    """Of a kernel of one rank beside operations over ranks."""
    return None if target == "cuda" else target


_gemm_reduce_scatter = define(
    "gemm_reduce_scatter(Tensor a, Tensor b, Tensor? bias, Tensor? scale, str group, str target) "
    "-> Tensor", _product_and_sum,
    lambda a, b, bias, scale, group, target: a.new_empty(
        (a.shape[0] // Group.named(group).size, b.shape[1])))
differentiate(_gemm_reduce_scatter, 3, _keep_operands, _gradients_of_scattered)
_all_gather_gemm = define(
    "all_gather_gemm(Tensor a, Tensor b, str group, str target) -> Tensor", _product_of_gathered,
    lambda a, b, group, target: a.new_empty((Group.named(group).size * a.shape[0], b.shape[1])))
differentiate(_all_gather_gemm, 2, _keep_operands, _gradients_of_gathered)


@_over
def all_to_all(q, k, v, *, group, out=None, target=None):
    """From own tokens of all heads to all tokens of own heads: q {batch, length, heads, dim}, the
    result {batch, ranks * length, heads / ranks, dim}, the tokens in the order of the ranks; k and
    v likewise, of another length perhaps. Of fewer heads of k and v than ranks several ranks get
    the same. Returns three tensors, with gradients."""
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        check_tensor(name, tensor, _TOKENS)
    q, k, v = under_autocast(q, k, v)
    check_shapes(q, k, v)
    _divided("number of heads of q", q.shape[2], group)
    _require_kv_heads(k.shape[2], group)
    return _call(_all_to_all, _exchange, (q, k, v), (), group, target, out)


@_over
def all_to_all_back(o, *, group, out=None, target=None):
    """The way back of all_to_all, of what attention has made of its results: o {batch, ranks *
    length, own heads, dim}, the result {batch, length, ranks * own heads, dim}."""
    check_tensor("o", o, _TOKENS)
    _divided("length of o", o.shape[1], group)
    return _call(_all_to_all_back, _exchange_back, (o,), (), group, target, out)


def _require_kv_heads(kv_heads, group):
    if kv_heads % group.size != 0 and group.size % max(kv_heads, 1) != 0:
        refuse(f"k has {kv_heads} heads, and there are {group.size} ranks",
               "pass a multiple or a divisor of the ranks")


def _exchanged_shape(tensor, group):
    size = Group.named(group).size
    batch, length, heads, dim = tensor.shape
    return batch, size * length, max(heads // size, 1), dim


def _exchange(q, k, v, group, target, out=None):
    options = {"heads": q.shape[2], "kv_heads": k.shape[2], "dim": q.shape[3],
               "dim_v": v.shape[3], "dtype": DTYPES[q.dtype]}
    return _run(group, "all_to_all", options, target,
                {"Q": q.contiguous(), "K": k.contiguous(), "V": v.contiguous()},
                {name: (_exchanged_shape(tensor, group), tensor.dtype)
                 for name, tensor in (("Q_all", q), ("K_all", k), ("V_all", v))}, out)


def _returned_shape(o, group):
    size = Group.named(group).size
    batch, length, heads, dim = o.shape
    return batch, length // size, heads * size, dim


def _exchange_back(o, group, target, out=None):
    shape = _returned_shape(o, group)
    options = {"heads": shape[2], "dim_v": shape[3], "dtype": DTYPES[o.dtype]}
    back, = _run(group, "all_to_all_back", options, target, {"O_all": o.contiguous()},
                 {"O": (shape, o.dtype)}, out)
    return back


def _keep_exchange(ctx, arguments, _):
    ctx.kv_heads, ctx.how = arguments[1].shape[2], arguments[-2:]


def _gradients_of_exchange(ctx, *gradients):
    how = _how(ctx)
    d_q, d_k, d_v = (all_to_all_back(gradient, **how) if needed else None
                     for gradient, needed in zip(gradients, ctx.needs_input_grad))
    size = how["group"].size
    if ctx.kv_heads < size:  # what several ranks had of one head
        each = (ctx.kv_heads, size // ctx.kv_heads)
        d_k, d_v = (None if gradient is None else gradient.unflatten(2, each).sum(3)
                    for gradient in (d_k, d_v))
    return d_q, d_k, d_v, None, None


def _gradient_of_return(ctx, d_o):
    few = d_o[:, :1]  # keys and values there must be
    return all_to_all(d_o, few, few, **_how(ctx))[0], None, None


_all_to_all = define(
    "all_to_all(Tensor q, Tensor k, Tensor v, str group, str target) -> (Tensor, Tensor, Tensor)",
    _exchange, lambda q, k, v, group, target: tuple(
        tensor.new_empty(_exchanged_shape(tensor, group)) for tensor in (q, k, v)))
differentiate(_all_to_all, 3, _keep_exchange, _gradients_of_exchange)
_all_to_all_back = define(
    "all_to_all_back(Tensor o, str group, str target) -> Tensor", _exchange_back,
    lambda o, group, target: o.new_empty(_returned_shape(o, group)))
differentiate(_all_to_all_back, 1, _keep_how, _gradient_of_return)


@_over
def sequence_parallel_attention(q, k, v, *, group, shards="contiguous", causal=False, window=None,
                                softcap=0.0, sinks=None, scale=None, cu_seqlens=None, ring=False,
                                return_lse=False, target=None):
    """`attention` of sequences whose tokens are divided among the ranks, as shard() divides them:
    q {batch, length, heads, dim}, k and v are this rank's tokens, and so is the result. The rest is
    as `attention` has it, of the whole sequences.

    shards      contiguous, or zig_zag: under a causal mask every rank then has as much to do
    sinks       the same in every rank; each gets the whole of their gradient
    cu_seqlens  as `attention` has it, of the whole and the same in every rank: the ranks divide the
                packed tokens, wherever sequences begin. q, k and v have no axis of a batch
    ring        keys go round, and a rank has memory for those of two others alone
    """
    packed = cu_seqlens is not None
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        check_tensor(name, tensor, PACKED if packed else _TOKENS)
    if shards not in ("contiguous", "zig_zag"):
        refuse(f"shards is {shards!r}", "write contiguous or zig_zag")
    if not isinstance(ring, bool):
        refuse(f"ring is {short(ring)}", "set it to True or False")
    q, k, v = under_autocast(q, k, v)
    check_shapes(q, k, v)
    offsets = checked_offsets(cu_seqlens, q) if packed else (None, None)
    sinks, *masked = check_masked(q, causal, window, scale, softcap, sinks)
    out, lse = _attention(q, k, v, sinks, *offsets, *masked, shards, ring, group.name,
                          checked_target(target))
    return (out, lse) if return_lse else out


_MASKED = ("Tensor? sinks, Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, bool causal, SymInt window, "
           "float scale, float softcap, str shards, bool ring, str group, str target")


def _require_same_offsets(group, offsets, q, k):
    """Of the host, where they can be read without waiting."""
    for name, own, tokens in zip(("queries", "keys"), offsets, (q, k)):
        require_offsets(f"cu_seqlens of {name}", own, group.size * tokens.shape[0], 0)
    own = " and ".join(str(each.tolist()) for each in offsets)
    said = group.all_gather(own.encode(), "cu_seqlens")
    for rank, other in enumerate(said):
        if other != said[0]:
            refuse(f"rank {rank} passes cu_seqlens {other.decode()}, and rank 0 passes "
                   f"{said[0].decode()}", "pass those of the whole, the same in all ranks")


def _of_a_sequence(offsets, tokens, shards, group):
    """Which of this rank's tokens are: others have no result."""
    size = group.size
    places = shard(torch.arange(tokens.shape[0] * size, device=tokens.device), 0, size,
                   shards)[group.rank]
    return (places >= offsets[0]) & (places < offsets[-1])


def _attention_name(ring, packed):
    return ("ring_" if ring else "sequence_parallel_") + \
        ("varlen_attention" if packed else "attention")


def _shapes_of_attention(q, v):
    *batch, length, heads, _ = q.shape
    return (*batch, length, heads, v.shape[-1]), (*batch, heads, length)


def _results_of_attention(q, k, v, *_):
    out, lse = _shapes_of_attention(q, v)
    return q.new_empty(out), q.new_empty(lse, dtype=torch.float32)


def _attend(q, k, v, sinks, offsets_q, offsets_k, causal, window, scale, softcap, shards, ring,
            group, target):
    packed, ranks = offsets_q is not None, Group.named(group)
    if packed and not q.is_cuda:
        _require_same_offsets(ranks, (offsets_q, offsets_k), q, k)
    tensors = {"Q": q.contiguous(), "K": k.contiguous(), "V": v.contiguous(),
               "cu_seqlens_q": offsets_q, "cu_seqlens_k": offsets_k, "sinks": sinks}
    options = kernel_options(q, k, v, sinks, (causal, window, scale, softcap), shards=shards)
    of_out, of_lse = _shapes_of_attention(q, v)
    out, lse = _run(group, _attention_name(ring, packed), options, target, tensors,
                    {"O": (of_out, q.dtype), "LSE": (of_lse, torch.float32)})
    if packed:
        inside = _of_a_sequence(offsets_q, q, shards, ranks)
        out, lse = out.where(inside[:, None, None], 0), lse.where(inside, -torch.inf)
    return out, lse


def _empty_gradients(d_out, d_lse, q, k, v, sinks, *_):
    d_sinks = q.new_empty(0 if sinks is None else sinks.shape, dtype=torch.float32)
    return (*(tensor.new_empty(tensor.shape) for tensor in (q, k, v)), d_sinks)


def _attend_back(d_out, d_lse, q, k, v, sinks, offsets_q, offsets_k, out, lse, causal, window,
                 scale, softcap, shards, ring, group, target):
    packed, ranks = offsets_q is not None, Group.named(group)
    tensors = {"Q": q, "K": k, "V": v, "cu_seqlens_q": offsets_q, "cu_seqlens_k": offsets_k,
               "sinks": sinks, "O": out, "LSE": lse, "dO": d_out, "dLSE": d_lse}
    outputs = {"dQ": (q.shape, q.dtype), "dK": (k.shape, k.dtype), "dV": (v.shape, v.dtype)}
    if sinks is not None:
        outputs["dsinks"] = (sinks.shape, torch.float32)
    options = kernel_options(q, k, v, sinks, (causal, window, scale, softcap), shards=shards,
                             lse_gradient=d_lse is not None)
    d_q, d_k, d_v, *d_sinks = _run(
        group, _attention_name(ring, packed) + "_backward", options, target,
        {name: None if tensor is None else tensor.contiguous()
         for name, tensor in tensors.items()}, outputs)
    if packed:
        inside = _of_a_sequence(offsets_q, q, shards, ranks)[:, None, None]
        d_q = d_q.where(inside, 0)
        inside = _of_a_sequence(offsets_k, k, shards, ranks)[:, None, None]
        d_k, d_v = d_k.where(inside, 0), d_v.where(inside, 0)
    return d_q, d_k, d_v, d_sinks[0] if d_sinks else q.new_empty(0, dtype=torch.float32)


def _keep_attention(ctx, arguments, results):
    ctx.save_for_backward(*arguments[:6], *results)
    ctx.settings = arguments[6:]
    ctx.set_materialize_grads(False)


def _gradients_of_attention(ctx, d_out, d_lse):
    rest = (None,) * (2 + len(ctx.settings))
    q, k, v, sinks, *offsets, out, lse = ctx.saved_tensors
    if d_out is None:
        d_out = torch.zeros_like(out)
    *gradients, d_sinks = _attention_backward(d_out, d_lse, q, k, v, sinks, *offsets, out, lse,
                                              *ctx.settings)
    return (*gradients, None if sinks is None else d_sinks, *rest)


_attention = define(
    f"sequence_parallel_attention(Tensor q, Tensor k, Tensor v, {_MASKED}) -> "
    "(Tensor out, Tensor lse)", _attend, _results_of_attention)
differentiate(_attention, 4, _keep_attention, _gradients_of_attention)
_attention_backward = define(
    "sequence_parallel_attention_backward(Tensor d_out, Tensor? d_lse, Tensor q, Tensor k, "
    f"Tensor v, {_MASKED.replace('bool causal', 'Tensor out, Tensor lse, bool causal')}) -> "
    "(Tensor d_q, Tensor d_k, Tensor d_v, Tensor d_sinks)", _attend_back, _empty_gradients)
refuse_second_gradients(_attention_backward, 10, "sequence_parallel_attention")

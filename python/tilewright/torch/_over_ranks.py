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

TOKENS = ("batch", "length", "heads", "dim")


def over(function):
    """With a group that is one."""
    @functools.wraps(function)
    def call(*tensors, group, **options):
        require_group(group)
        return function(*tensors, group=group, **options)

    return call


def run_ranks(group, name, options, target, tensors, outputs, out=None):
    return run_over(Group.named(group), name, options, target or None, tensors, outputs, out)


def divided(what, size, group):
    if size % group.size != 0:
        refuse(f"the {what} is {size}, and there are {group.size} ranks",
               "pass a multiple of the ranks")
    return size // group.size


def call_or_into(operator, implementation, tensors, settings, group, target, out):
    """The operator, or into `out` without it: no operator returns what it is given."""
    rest = (*settings, group.name, checked_target(target))
    if out is None:
        return operator(*tensors, *rest)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        refuse("out is given, and a tensor requires a gradient",
               "leave out= out, or call it under torch.no_grad()")
    return torch.compiler.disable(implementation)(*tensors, *rest, out)


def keep_how(ctx, arguments, _):
    """Of an operator of one tensor, whose last arguments are the group and the target."""
    _, *ctx.settings, group, target = arguments
    ctx.how = group, target


def how_of(ctx):
    group, target = ctx.how
    return {"group": Group.named(group), "target": target or None}


@over
def all_gather(x, *, group, out=None, target=None):
    """The rows of all ranks, in their order: x {rows, ...}, the result {ranks * rows, ...}. Its
    gradient is reduce_scatter.

    group   what join() has given
    out     where the result goes; of empty() on a GPU nothing is copied. Without gradients
    target  interpreter, cpu or sim:sm_90a, for tensors of the host
    """
    check_tensor("x", x, ("rows", "..."))
    return call_or_into(_all_gather, _gather, (x,), (), group, target, out)


@over
def reduce_scatter(x, *, group, out=None, target=None):
    """The sum of all ranks' x {ranks * rows, ...}, of which each gets its own rows {rows, ...}:
    added in f32, in the order of the ranks. Its gradient is all_gather."""
    check_tensor("x", x, ("rows", "..."))
    divided("number of rows of x", x.shape[0], group)
    return call_or_into(_reduce_scatter, _scatter, (x,), (), group, target, out)


@over
def all_reduce(x, *, group, out=None, target=None):
    """The sum of all ranks' x, in each of them. Its gradient is the sum of all ranks' gradients."""
    check_tensor("x", x, ("...",))
    return call_or_into(_all_reduce, _reduce, (x,), (), group, target, out)


@over
def broadcast(x, *, root=0, group, out=None, target=None):
    """The x of rank `root`, in each of them. Its gradient is there the sum of all ranks'
    gradients, and 0 elsewhere."""
    check_tensor("x", x, ("...",))
    fix = f"name a rank below {group.size}"
    check_integer("root", root, fix)
    if not 0 <= root < group.size:
        refuse(f"root is {root}", fix)
    return call_or_into(_broadcast, _spread, (x,), (root,), group, target, out)


def collective(name, x, wanted, shape, group, target, out, **options):
    """Of vectors: `x` as the kernel has it, which has the result as `shape`."""
    if out is not None:
        if not isinstance(out, torch.Tensor) or out.shape != torch.Size(wanted):
            said = sizes_text(out) if isinstance(out, torch.Tensor) else type(out).__name__
            refuse(f"out is {said}",
                   "pass a tensor {" + ", ".join(map(str, wanted)) + "}")
        out = out.view(shape) if out.is_contiguous() else out
    y, = run_ranks(group, name, {"dtype": DTYPES[x.dtype], **options}, target, {"X": x},
              {"Y": (shape, x.dtype)}, out)
    return y.view(wanted)


def _gather(x, group, target, out=None):
    size = Group.named(group).size
    return collective("all_gather", x.reshape(-1), gathered_shape(x, group), (size, x.numel()),
                       group, target, out)


def _scatter(x, group, target, out=None):
    size = Group.named(group).size
    parts = x.reshape(size, x.numel() // size)
    return collective("reduce_scatter", parts, scattered_shape(x, group), parts.shape[1:], group,
                       target, out)


def _reduce(x, group, target, out=None):
    return collective("all_reduce", x.reshape(-1), x.shape, (x.numel(),), group, target, out)


def _spread(x, root, group, target, out=None):
    return collective("broadcast", x.reshape(-1), x.shape, (x.numel(),), group, target, out,
                       root=root)


def gathered_shape(x, group, *_):
    return (Group.named(group).size * x.shape[0], *x.shape[1:])


def scattered_shape(x, group, *_):
    return (x.shape[0] // Group.named(group).size, *x.shape[1:])


def define_collective(schema, implementation, shape, backward):
    operator = define(schema, implementation, lambda x, *rest: x.new_empty(shape(x, *rest)))
    rest = (None,) * (schema.partition(")")[0].count(","))
    differentiate(operator, 1, keep_how, lambda ctx, d_y: (backward(ctx, d_y), *rest))
    return operator


def _gradient_of_broadcast(ctx, d_y):
    how, (root,) = how_of(ctx), ctx.settings
    summed = all_reduce(d_y, **how)
    return summed if how["group"].rank == root else torch.zeros_like(summed)


_all_gather = define_collective(
    "all_gather(Tensor x, str group, str target) -> Tensor", _gather, gathered_shape,
    lambda ctx, d_y: reduce_scatter(d_y, **how_of(ctx)))
_reduce_scatter = define_collective(
    "reduce_scatter(Tensor x, str group, str target) -> Tensor", _scatter, scattered_shape,
    lambda ctx, d_y: all_gather(d_y, **how_of(ctx)))
_all_reduce = define_collective(
    "all_reduce(Tensor x, str group, str target) -> Tensor", _reduce, lambda x, *_: x.shape,
    lambda ctx, d_y: all_reduce(d_y, **how_of(ctx)))
_broadcast = define_collective(
    "broadcast(Tensor x, int root, str group, str target) -> Tensor", _spread,
    lambda x, *_: x.shape, _gradient_of_broadcast)


@over
def gemm_reduce_scatter(a, b, *, bias=None, scale=None, group, target=None):
    """The sum over the ranks of a @ b, of which each gets its own rows: of a product whose depth is
    divided among ranks, a {ranks * rows, k} and b {k, n}, the result {rows, n}. Sums are in f32, in
    the order of the ranks. b is best the transpose of a contiguous {n, k}, as a weight's.

    scale   f32 of one element, by which the sum is multiplied. It has no gradient
    bias    {n}, which is added to each row behind that: the same in every rank, each of which gets
            the whole of its gradient
    """
    a, b = _operands(a, b)
    divided("number of rows of a", a.shape[0], group)
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


@over
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
    c, = run_ranks(group, "gemm_reduce_scatter", options, target, tensors,
              {"C": ((rows, b.shape[1]), a.dtype)})
    return c


def _product_of_gathered(a, b, group, target):
    tensors = {"A": a.contiguous(), "B": b.t().contiguous()}
    size = Group.named(group).size
    c, = run_ranks(group, "all_gather_gemm", {"dtype": DTYPES[a.dtype]}, target, tensors,
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
    how = how_of(ctx)
    d_a = d_b = d_bias = None
    if ctx.bias_dtype is not None:
        d_bias = all_reduce(d_c.sum(0, dtype=torch.float32), **how).to(ctx.bias_dtype)
    if scale is not None:
        d_c = (d_c * scale).to(d_c.dtype)
    if b is not None:
        d_a = all_gather_gemm(d_c, b.t(), **how)
    if a is not None:
        d_b = gemm(a.t(), all_gather(d_c, **how), target=alone(how["target"]))
    return d_a, d_b, d_bias, None, None, None


def _gradients_of_gathered(ctx, d_c):
    a, b, _ = ctx.saved_tensors
    how = how_of(ctx)
    d_a = d_b = None
    if b is not None:
        d_a = gemm_reduce_scatter(d_c, b.t(), **how)
    if a is not None:
        d_b = gemm(all_gather(a, **how).t(), d_c, target=alone(how["target"]))
    return d_a, d_b, None, None


def alone(target):
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


@over
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
        check_tensor(name, tensor, PACKED if packed else TOKENS)
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


def require_same_offsets(group, offsets, fix):
    """In all ranks. Of the host, where they can be read without waiting."""
    own = " and ".join(str(each.tolist()) for each in offsets)
    said = group.all_gather(own.encode(), "cu_seqlens")
    for rank, other in enumerate(said):
        if other != said[0]:
            refuse(f"rank {rank} passes cu_seqlens {other.decode()}, and rank 0 passes "
                   f"{said[0].decode()}", fix)


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
        require_same_offsets(ranks, (offsets_q, offsets_k),
                             "pass those of the whole, the same in all ranks")
        for name, own, tokens in (("queries", offsets_q, q), ("keys", offsets_k, k)):
            require_offsets(f"cu_seqlens of {name}", own, ranks.size * tokens.shape[0], 0)
    tensors = {"Q": q.contiguous(), "K": k.contiguous(), "V": v.contiguous(),
               "cu_seqlens_q": offsets_q, "cu_seqlens_k": offsets_k, "sinks": sinks}
    options = kernel_options(q, k, v, sinks, (causal, window, scale, softcap), shards=shards)
    of_out, of_lse = _shapes_of_attention(q, v)
    out, lse = run_ranks(group, _attention_name(ring, packed), options, target, tensors,
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
    d_q, d_k, d_v, *d_sinks = run_ranks(
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

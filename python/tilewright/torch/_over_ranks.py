"""Operations over ranks with gradients. Each one's gradient is another of them: so all ranks go
backward through the same graph, and ask for the gradients of the same tensors."""

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
    check_size,
    check_tensor,
    refuse,
    short,
    sizes_text,
    under_autocast,
)
from ._gemm import gemm
from ._ranks import run_over
from ._shards import shard

_TOKENS = ("batch", "length", "heads", "dim")


def _eager(function):
    """Not traced: a graph has no groups."""
    @functools.wraps(function)
    def call(*tensors, group, **options):
        if not isinstance(group, Group):
            refuse(f"group is {short(group)}", "pass what join() of this module gives")
        return function(*tensors, group=group, **options)

    return torch.compiler.disable(call)


def _is_differentiated(*tensors):
    return torch.is_grad_enabled() and any(
        tensor is not None and tensor.requires_grad for tensor in tensors)


def _check_out(out, *tensors):
    """Of one or several; their sizes are checked where the results' are known."""
    if out is not None and _is_differentiated(*tensors):
        refuse("out is given, and a tensor requires a gradient",
               "leave out= out, or call it under torch.no_grad()")


def _divided(what, size, group):
    if size % group.size != 0:
        refuse(f"the {what} is {size}, and there are {group.size} ranks",
               "pass a multiple of the ranks")
    return size // group.size


@_eager
def all_gather(x, *, group, out=None, target=None):
    """The rows of all ranks, in their order: x {rows, ...}, the result {ranks * rows, ...}. Its
    gradient is reduce_scatter.

    group   what join() has given
    out     where the result goes; of empty() on a GPU nothing is copied. Without gradients
    target  interpreter, cpu or sim:sm_90a, for tensors of the host
    """
    check_tensor("x", x, ("rows", "..."))
    _check_out(out, x)
    return _AllGather.apply(x, group, out, target)


@_eager
def reduce_scatter(x, *, group, out=None, target=None):
    """The sum of all ranks' x {ranks * rows, ...}, of which each gets its own rows {rows, ...}:
    added in f32, in the order of the ranks. Its gradient is all_gather."""
    check_tensor("x", x, ("rows", "..."))
    _divided("number of rows of x", x.shape[0], group)
    _check_out(out, x)
    return _ReduceScatter.apply(x, group, out, target)


@_eager
def all_reduce(x, *, group, out=None, target=None):
    """The sum of all ranks' x, in each of them. Its gradient is the sum of all ranks' gradients."""
    check_tensor("x", x, ("...",))
    _check_out(out, x)
    return _AllReduce.apply(x, group, out, target)


def _collective(name, x, wanted, shape, group, out, target):
    """Of vectors: `x` as the kernel has it, which has the result as `shape`."""
    if out is not None:
        if not isinstance(out, torch.Tensor) or out.shape != torch.Size(wanted):
            said = sizes_text(out) if isinstance(out, torch.Tensor) else type(out).__name__
            refuse(f"out is {said}",
                   "pass a tensor {" + ", ".join(map(str, wanted)) + "}")
        out = out.view(shape) if out.is_contiguous() else out
    y, = run_over(group, name, {"dtype": DTYPES[x.dtype]}, target, {"X": x},
                  {"Y": (shape, x.dtype)}, out)
    return y.view(wanted)


class _AllGather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group, out, target):
        ctx.how = (group, target)
        return _collective("all_gather", x.reshape(-1), (group.size * x.shape[0], *x.shape[1:]),
                           (group.size, x.numel()), group, out, target)

    @staticmethod
    def backward(ctx, d_y):
        group, target = ctx.how
        return reduce_scatter(d_y, group=group, target=target), None, None, None


class _ReduceScatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group, out, target):
        ctx.how = (group, target)
        parts = x.reshape(group.size, x.numel() // group.size)
        return _collective("reduce_scatter", parts, (x.shape[0] // group.size, *x.shape[1:]),
                           parts.shape[1:], group, out, target)

    @staticmethod
    def backward(ctx, d_y):
        group, target = ctx.how
        return all_gather(d_y, group=group, target=target), None, None, None


class _AllReduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group, out, target):
        ctx.how = (group, target)
        return _collective("all_reduce", x.reshape(-1), x.shape, (x.numel(),), group, out, target)

    @staticmethod
    def backward(ctx, d_y):
        group, target = ctx.how
        return all_reduce(d_y, group=group, target=target), None, None, None


@_eager
def gemm_reduce_scatter(a, b, *, group, target=None):
    """The sum over the ranks of a @ b, of which each gets its own rows: of a product whose depth is
    divided among ranks, a {ranks * rows, k} and b {k, n}, the result {rows, n}. Sums are in f32, in
    the order of the ranks. b is best the transpose of a contiguous {n, k}, as a weight's.
    """
    a, b = _operands(a, b)
    _divided("number of rows of a", a.shape[0], group)
    return _GemmReduceScatter.apply(a, b, group, target)


@_eager
def all_gather_gemm(a, b, *, group, target=None):
    """The rows of all ranks times b: a {rows, k}, b {k, n} of this rank, the result {ranks * rows,
    n}. b is best the transpose of a contiguous {n, k}, as a weight's."""
    a, b = _operands(a, b)
    return _AllGatherGemm.apply(a, b, group, target)


def _operands(a, b):
    check_tensor("a", a, ("m", "k"))
    check_tensor("b", b, ("k", "n"))
    a, b = under_autocast(a, b)
    check_alike("a", a, "b", b)
    check_size("b", b, 0, "k", a.shape[1], "a")
    return a, b


class _GemmReduceScatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, group, target):
        ctx.how = (group, target)
        ctx.save_for_backward(a if ctx.needs_input_grad[1] else None,
                              b if ctx.needs_input_grad[0] else None)
        rows = a.shape[0] // group.size
        tensors = {"A": a.unflatten(0, (group.size, rows)), "B": b.t().contiguous()}
        c, = run_over(group, "gemm_reduce_scatter", {"dtype": DTYPES[a.dtype]}, target, tensors,
                      {"C": ((rows, b.shape[1]), a.dtype)})
        return c

    @staticmethod
    def backward(ctx, d_c):
        a, b = ctx.saved_tensors
        group, target = ctx.how
        d_a = d_b = None
        if b is not None:
            d_a = all_gather_gemm(d_c, b.t(), group=group, target=target)
        if a is not None:
            d_b = gemm(a.t(), all_gather(d_c, group=group, target=target), target=_alone(target))
        return d_a, d_b, None, None


class _AllGatherGemm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, group, target):
        ctx.how = (group, target)
        ctx.save_for_backward(a if ctx.needs_input_grad[1] else None,
                              b if ctx.needs_input_grad[0] else None)
        tensors = {"A": a.contiguous(), "B": b.t().contiguous()}
        c, = run_over(group, "all_gather_gemm", {"dtype": DTYPES[a.dtype]}, target, tensors,
                      {"C": ((group.size, a.shape[0], b.shape[1]), a.dtype)})
        return c.flatten(0, 1)

    @staticmethod
    def backward(ctx, d_c):
        a, b = ctx.saved_tensors
        group, target = ctx.how
        d_a = d_b = None
        if b is not None:
            d_a = gemm_reduce_scatter(d_c, b.t(), group=group, target=target)
        if a is not None:
            d_b = gemm(all_gather(a, group=group, target=target).t(), d_c, target=_alone(target))
        return d_a, d_b, None, None


def _alone(target):
    """Of a kernel of one rank beside operations over ranks."""
    return None if target == "cuda" else target


@_eager
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
    _check_out(out, q, k, v)
    return _AllToAll.apply(q, k, v, group, out, target)


@_eager
def all_to_all_back(o, *, group, out=None, target=None):
    """The way back of all_to_all, of what attention has made of its results: o {batch, ranks *
    length, own heads, dim}, the result {batch, length, ranks * own heads, dim}."""
    check_tensor("o", o, _TOKENS)
    _divided("length of o", o.shape[1], group)
    _check_out(out, o)
    return _AllToAllBack.apply(o, group, out, target)


def _require_kv_heads(kv_heads, group):
    if kv_heads % group.size != 0 and group.size % max(kv_heads, 1) != 0:
        refuse(f"k has {kv_heads} heads, and there are {group.size} ranks",
               "pass a multiple or a divisor of the ranks")


class _AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, group, out, target):
        ctx.how, ctx.kv_heads = (group, target), k.shape[2]
        ranks = group.size
        options = {"heads": q.shape[2], "kv_heads": k.shape[2], "dim": q.shape[3],
                   "dim_v": v.shape[3], "dtype": DTYPES[q.dtype]}

        def gathered(tensor):
            batch, length, heads, dim = tensor.shape
            return (batch, ranks * length, max(heads // ranks, 1), dim), tensor.dtype

        return run_over(group, "all_to_all", options, target,
                        {"Q": q.contiguous(), "K": k.contiguous(), "V": v.contiguous()},
                        {"Q_all": gathered(q), "K_all": gathered(k), "V_all": gathered(v)}, out)

    @staticmethod
    def backward(ctx, *gradients):
        group, target = ctx.how

        def back(gradient, needed):
            return all_to_all_back(gradient, group=group, target=target) if needed else None

        d_q, d_k, d_v = map(back, gradients, ctx.needs_input_grad[:3])
        if ctx.kv_heads < group.size:  # what several ranks had of one head
            each = (ctx.kv_heads, group.size // ctx.kv_heads)
            d_k, d_v = (None if gradient is None else gradient.unflatten(2, each).sum(3)
                        for gradient in (d_k, d_v))
        return d_q, d_k, d_v, None, None, None


class _AllToAllBack(torch.autograd.Function):
    @staticmethod
    def forward(ctx, o, group, out, target):
        ctx.how = (group, target)
        batch, length, heads, dim = o.shape
        options = {"heads": heads * group.size, "dim_v": dim, "dtype": DTYPES[o.dtype]}
        shape = (batch, length // group.size, heads * group.size, dim)
        back, = run_over(group, "all_to_all_back", options, target, {"O_all": o.contiguous()},
                         {"O": (shape, o.dtype)}, out)
        return back

    @staticmethod
    def backward(ctx, d_o):
        group, target = ctx.how
        few = d_o[:, :1]  # keys and values there must be
        return all_to_all(d_o, few, few, group=group, target=target)[0], None, None, None


@_eager
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
    if packed and not q.is_cuda:
        _require_same_offsets(group, offsets, q, k)
    sinks, *masked = check_masked(q, causal, window, scale, softcap, sinks)
    out, lse = _Attention.apply(q, k, v, sinks, offsets, tuple(masked), shards, group, ring,
                                target)
    return (out, lse) if return_lse else out


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


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, sinks, offsets, masked, shards, group, ring, target):
        ctx.how = (masked, shards, group, ring, target)
        ctx.set_materialize_grads(False)
        *batch, length, heads, _ = q.shape
        packed = offsets[0] is not None
        tensors = {"Q": q.contiguous(), "K": k.contiguous(), "V": v.contiguous(),
                   "cu_seqlens_q": offsets[0], "cu_seqlens_k": offsets[1], "sinks": sinks}
        options = kernel_options(q, k, v, sinks, masked, shards=shards)
        out, lse = run_over(group, _attention_name(ring, packed), options, target, tensors,
                            {"O": ((*batch, length, heads, v.shape[-1]), q.dtype),
                             "LSE": ((*batch, heads, length), torch.float32)})
        if packed:
            inside = _of_a_sequence(offsets[0], q, shards, group)
            out = out.where(inside[:, None, None], 0)
            lse = lse.where(inside, -torch.inf)
        ctx.save_for_backward(q, k, v, sinks, *offsets, out, lse)
        return out, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_out, d_lse):
        q, k, v, sinks, offsets_q, offsets_k, out, lse = ctx.saved_tensors
        masked, shards, group, ring, target = ctx.how
        packed = offsets_q is not None
        if d_out is None:
            d_out = torch.zeros_like(out)
        tensors = {"Q": q, "K": k, "V": v, "cu_seqlens_q": offsets_q, "cu_seqlens_k": offsets_k,
                   "sinks": sinks, "O": out, "LSE": lse, "dO": d_out, "dLSE": d_lse}
        outputs = {"dQ": (q.shape, q.dtype), "dK": (k.shape, k.dtype), "dV": (v.shape, v.dtype)}
        if sinks is not None:
            outputs["dsinks"] = (sinks.shape, torch.float32)
        options = kernel_options(q, k, v, sinks, masked, shards=shards,
                                 lse_gradient=d_lse is not None)
        d_q, d_k, d_v, *d_sinks = run_over(
            group, _attention_name(ring, packed) + "_backward", options, target,
            {name: None if tensor is None else tensor.contiguous()
             for name, tensor in tensors.items()}, outputs)
        if packed:
            inside = _of_a_sequence(offsets_q, q, shards, group)[:, None, None]
            d_q = d_q.where(inside, 0)
            inside = _of_a_sequence(offsets_k, k, shards, group)[:, None, None]
            d_k, d_v = d_k.where(inside, 0), d_v.where(inside, 0)
        return d_q, d_k, d_v, d_sinks[0] if d_sinks else None, *[None] * 6


def _attention_name(ring, packed):
    return ("ring_" if ring else "sequence_parallel_") + \
        ("varlen_attention" if packed else "attention")

"""Attention and its gradients: two operators, and the function that checks what they are given."""

import torch

from . import _direct
from ._checks import (
    DTYPES,
    check_alike,
    check_integer,
    check_number,
    check_size,
    check_tensor,
    checked_target,
    f32_beside,
    refuse,
    short,
    under_autocast,
)
from ._plain import is_compiling, is_plain
from ._run import build_ahead, define, differentiate, readable, refuse_second_gradients, run

_LAYOUTS = {"bshd": ("batch", "length", "heads", "dim"),
            "bhsd": ("batch", "heads", "length", "dim")}
PACKED = ("total length", "heads", "dim")


def attention(q, k, v, *, causal=False, window=None, softcap=0.0, sinks=None, scale=None,
              cu_seqlens=None, max_lengths=None, layout="bshd", return_lse=False, target=None):
    """softmax(scale Q K^T) V for each head; with return_lse also the log-sum-exp of each row.

    q {batch, length, heads, dim}, k and v {batch, length, kv_heads, dim}, of bf16, f16 or f32; v
    may have another dim, and kv_heads divides heads. With layout="bhsd" the heads stand before the
    length, in the result too. The log-sum-exp is f32 {batch, heads, length}, a natural logarithm.

    causal      the last query sees the last key, and each one before it a key less
    window      with causal: of those keys the last so many
    softcap     scores s become softcap * tanh(s / softcap)
    sinks       {heads}: each head has one more score, whose value is 0
    scale       1 / sqrt(dim) if it is left out
    cu_seqlens  i32 {sequences + 1}: the sequences are packed, and q, k and v have no axis of a
                batch. Sequence i has the rows cu_seqlens[i] to cu_seqlens[i + 1] - 1. A pair where
                keys have other lengths than queries. The log-sum-exp is {heads, length}
    max_lengths an int or a pair: the longest sequences. It is checked where cu_seqlens are on the
                host, and nothing else depends on it
    target      interpreter or sim:sm_90a, for tensors of the host
    """
    if sinks is None and cu_seqlens is None and max_lengths is None:
        settings = ("attention", causal, window, scale, softcap, layout, target)
        results = None if is_compiling() else _direct.call(settings, return_lse, q, k, v)
        if results is not None:
            return _answer(results, layout, return_lse)
    packed = cu_seqlens is not None
    if layout not in _LAYOUTS:
        refuse(f"layout is {layout!r}", "write bshd or bhsd")
    if packed and layout != "bshd":
        refuse(f"layout is {layout!r}, and cu_seqlens is given",
               "leave layout out: packed tensors are {" + ", ".join(PACKED) + "}")
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        check_tensor(name, tensor, PACKED if packed else _LAYOUTS[layout], target=target)
    q, k, v = given = under_autocast(q, k, v)
    if layout == "bhsd":
        q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
    check_shapes(q, k, v)
    offsets = checked_offsets(cu_seqlens, q) if packed else (None, None)
    longest = _checked_longest(max_lengths, packed)
    sinks, *masked = check_masked(q, causal, window, scale, softcap, sinks)
    out, lse = torch.ops.tilewright.attention.default(
        q, k, v, sinks, *offsets, *masked, *longest, checked_target(target))
    if sinks is None and not packed:
        _direct.remember(settings, given, lambda: _Direct(q, k, v, tuple(masked), layout, target))
    return _answer((out, lse), layout, return_lse)


def _answer(results, layout, return_lse):
    out, lse = results
    if layout == "bhsd":
        out = out.transpose(1, 2)
    return (out, lse) if return_lse else out


class _Direct(_direct.Direct):
    """Attention of a dense batch without sinks."""

    def __init__(self, q, k, v, masked, layout, target):
        self.masked, self.target, self.is_transposed = masked, target or "", layout == "bhsd"
        out, lse = _empty_results(q, k, v)
        super().__init__("attention_forward", masked,
                         lambda: kernel_options(q, k, v, None, masked), target,
                         (q, k, v, out, lse), (0, 1, 2, _direct.OUT, _direct.LSE), out, lse)

    def record(self, *given):
        return _Differentiated.apply(self, *given)


class _Differentiated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, made, q, k, v):
        out, lse = made.launch((q, k, v))
        ctx.made = made
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx, d_out, d_lse):
        q, k, v, *results = ctx.saved_tensors
        made = ctx.made
        if made.is_transposed:
            q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        *gradients, _ = _gradients(d_out, d_lse, (q, k, v), results, (None,) * 3, made.masked,
                                   made.target)
        if made.is_transposed:
            gradients = (None if d is None else d.transpose(1, 2) for d in gradients)
        return None, *gradients


def check_shapes(q, k, v):
    """Of {..., length, heads, dim}."""
    check_alike("q", q, "k", k)
    check_alike("q", q, "v", v)
    if q.dim() == 4:
        check_size("k", k, 0, "batch", q.shape[0], "q")
        check_size("v", v, 0, "batch", q.shape[0], "q")
    check_size("k", k, -1, "dim", q.shape[-1], "q")
    check_size("v", v, -3, "length", k.shape[-3], "k")
    check_size("v", v, -2, "number of heads", k.shape[-2], "k")
    heads, kv_heads = q.shape[-2], k.shape[-2]
    if kv_heads == 0 or heads % kv_heads != 0:
        refuse(f"q has {heads} heads, and k has {kv_heads}",
               "pass k and v with a number of heads that divides that of q")


def check_masked(q, causal, window, scale, softcap, sinks):
    """What operators take of these."""
    if not isinstance(causal, (bool, int)):
        refuse(f"causal is {short(causal)}", "set it to True or False")
    return (_checked_sinks(sinks, q), bool(causal), _checked_window(window, causal),
            _checked_scale(scale), _checked_softcap(softcap))


def _checked_window(window, causal):
    if window is None:
        return 0
    fix = "set it to how many keys a query sees, or None for all"
    check_integer("window", window, fix)
    if window < 1:
        refuse(f"window is {window}", fix)
    if not causal:
        refuse(f"window is {window}, and causal is {causal}",
               "set causal=True: the window is the last part of a causal mask")
    return window


def _checked_scale(scale):
    if scale is None:
        return 0.0
    check_number("scale", scale, "set it to a number above 0, or None for 1 / sqrt(dim)",
                 above=True)
    return float(scale)


def _checked_softcap(softcap):
    check_number("softcap", softcap, "set it to a number above 0, or 0 for none", above=False)
    return float(softcap)


def _checked_sinks(sinks, q):
    if sinks is None:
        return None
    check_tensor("sinks", sinks, ("heads",), more_dtypes=(q.dtype,),
                 target="interpreter" if q.dtype == torch.float64 else None)
    check_size("sinks", sinks, 0, "number of heads", q.shape[-2], "q")
    if sinks.device != q.device:
        refuse(f"sinks is on {sinks.device}, and q on {q.device}", f"move sinks to {q.device}")
    return sinks.to(f32_beside(q))


def checked_offsets(cu_seqlens, q):
    """Those of queries and of keys."""
    pair = cu_seqlens if isinstance(cu_seqlens, (tuple, list)) else (cu_seqlens, cu_seqlens)
    if len(pair) != 2:
        refuse(f"cu_seqlens has {len(pair)} tensors", "pass one, or a pair of queries and keys")
    for offsets in pair:
        if not isinstance(offsets, torch.Tensor) or offsets.dtype != torch.int32:
            refuse(f"cu_seqlens is of {getattr(offsets, 'dtype', type(offsets).__name__)}",
                   "pass a tensor of torch.int32")
        if offsets.dim() != 1 or offsets.shape[0] < 1:
            refuse(f"cu_seqlens has the shape {tuple(offsets.shape)}",
                   "pass {sequences + 1}, the first row of each sequence and their end")
        if offsets.device != q.device:
            refuse(f"cu_seqlens is on {offsets.device}, and q on {q.device}",
                   f"move cu_seqlens to {q.device}")
    if pair[0].shape[0] != pair[1].shape[0]:
        refuse(f"cu_seqlens has {pair[0].shape[0] - 1} sequences of queries, and "
               f"{pair[1].shape[0] - 1} of keys", "pass as many of both")
    return pair


def _checked_longest(max_lengths, packed):
    if max_lengths is None:
        return 0, 0
    if not packed:
        refuse(f"max_lengths is {max_lengths}, and cu_seqlens is None",
               "leave max_lengths out: it is of packed sequences")
    pair = max_lengths if isinstance(max_lengths, (tuple, list)) else (max_lengths, max_lengths)
    fix = "set it to the longest length, to a pair of queries and keys, or to None"
    if len(pair) != 2:
        refuse(f"max_lengths has {len(pair)} numbers", fix)
    for longest in pair:
        check_integer("max_lengths", longest, fix)
        if longest < 1:
            refuse(f"max_lengths is {max_lengths}", fix)
    return pair


# The operators. Their tensors are {..., length, heads, dim}. `window`, `scale`, `softcap`, `max_q`
# and `max_k` are 0, and `target` is "", where nothing is said.
_MASKED = ("Tensor? sinks, Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, bool causal, SymInt window, "
           "float scale, float softcap, ")
_FORWARD = (f"attention(Tensor q, Tensor k, Tensor v, {_MASKED}SymInt max_q, SymInt max_k, "
            "str target) -> (Tensor out, Tensor lse)")
_BACKWARD = ("attention_backward(Tensor d_out, Tensor? d_lse, Tensor q, Tensor k, Tensor v, "
             f"Tensor out, Tensor lse, {_MASKED}str target) -> "
             "(Tensor d_q, Tensor d_k, Tensor d_v, Tensor d_sinks)")


def require_offsets(name, offsets, rows, longest):
    """Of the host, where they can be read without waiting."""
    lengths = offsets.diff()
    if offsets[0] < 0 or offsets[-1] > rows or (lengths < 0).any():
        refuse(f"{name} is {offsets.tolist()}, of {rows} rows",
               f"let them ascend from at least 0 to at most {rows}")
    if longest and lengths.numel() > 0 and lengths.max() > longest:
        refuse(f"{name} has a sequence of {lengths.max().item()} rows, and max_lengths (or "
               f"max_seqlen) says {longest}", "set it to the longest length")


def kernel_options(q, k, v, sinks, masked, **others):
    causal, window, scale, softcap = masked
    return {"heads": q.shape[-2], "kv_heads": k.shape[-2], "dim": q.shape[-1],
            "dim_v": v.shape[-1], "dtype": DTYPES[q.dtype], "causal": causal, "window": window,
            "scale": scale, "softcap": softcap, "sinks": sinks is not None, **others}


def _empty_results(q, k, v, *_):
    *batch, length, heads, _ = q.shape
    return (q.new_empty((*batch, length, heads, v.shape[-1])),
            q.new_empty((*batch, heads, length), dtype=f32_beside(q)))


def _forward(q, k, v, sinks, cu_seqlens_q, cu_seqlens_k, causal, window, scale, softcap, max_q,
             max_k, target):
    out, lse = _empty_results(q, k, v)
    name, tensors = "attention_forward", [readable(q), readable(k), readable(v)]
    if cu_seqlens_q is not None:
        if not q.is_cuda:
            require_offsets("cu_seqlens of queries", cu_seqlens_q, q.shape[0], max_q)
            require_offsets("cu_seqlens of keys", cu_seqlens_k, k.shape[0], max_k)
        out.zero_()  # rows of no sequence are not written
        lse.fill_(-torch.inf)
        name = "attention_varlen_forward"
        tensors += (readable(cu_seqlens_q), readable(cu_seqlens_k))
    tensors += (out, lse)
    if sinks is not None:
        tensors.append(readable(sinks))
    masked = (causal, window, scale, softcap)
    run(name, masked, lambda: kernel_options(q, k, v, sinks, masked), target, tensors)
    return out, lse


def forward_into(out, lse, q, k, v, causal, scale):
    """The same without sinks, of a dense batch, into tensors that are given."""
    place = readable(out)
    masked = (causal, 0, scale, 0.0)
    run("attention_forward", masked, lambda: kernel_options(q, k, v, None, masked), "",
        [readable(q), readable(k), readable(v), place, lse])
    if place is not out:
        out.copy_(place)


def _empty_gradients(d_out, d_lse, q, k, v, out, lse, sinks, *_):
    d_sinks = lse.new_empty(0) if sinks is None else lse.new_empty(sinks.shape)
    return (*(tensor.new_empty(tensor.shape) for tensor in (q, k, v)), d_sinks)


def _backward(d_out, d_lse, q, k, v, out, lse, sinks, cu_seqlens_q, cu_seqlens_k, causal, window,
              scale, softcap, target):
    gradients = _empty_gradients(d_out, d_lse, q, k, v, out, lse, sinks)
    name, tensors = "attention_backward", [readable(q), readable(k), readable(v)]
    if cu_seqlens_q is not None:
        for gradient in gradients[:3]:
            gradient.zero_()
        name = "attention_varlen_backward"
        tensors += (readable(cu_seqlens_q), readable(cu_seqlens_k))
    if sinks is not None:
        tensors.append(readable(sinks))
    tensors += (readable(out), readable(lse), readable(d_out))
    if d_lse is not None:
        tensors.append(readable(d_lse))
    tensors += gradients if sinks is not None else gradients[:3]
    masked, of_lse = (causal, window, scale, softcap), d_lse is not None
    run(name, (masked, of_lse),
        lambda: kernel_options(q, k, v, sinks, masked, lse_gradient=of_lse), target, tensors)
    return gradients


def _keep(ctx, arguments, results):
    ctx.save_for_backward(*arguments[:6], *results)
    *ctx.masked, _, _, ctx.target = arguments[6:]
    ctx.set_materialize_grads(False)


def _gradients(d_out, d_lse, tensors, results, masks, masked, target):
    """Those of `tensors` and of sinks. Where nobody asks for gradients of gradients, and no tracer
    or mode has a part, without the dispatcher."""
    if d_out is None and d_lse is None:
        return (None,) * 4
    if d_out is None:
        d_out = torch.zeros_like(results[0])
    backward = torch.ops.tilewright.attention_backward.default
    given = (*tensors, d_out) if d_lse is None else (*tensors, d_out, d_lse)
    if not torch.is_grad_enabled() and is_plain(*given):
        backward = _backward
    *gradients, d_sinks = backward(d_out, d_lse, *tensors, *results, *masks, *masked, target)
    return (*gradients, None if masks[0] is None else d_sinks)


def _differentiate(ctx, d_out, d_lse):
    q, k, v, *masks, out, lse = ctx.saved_tensors
    return (*_gradients(d_out, d_lse, (q, k, v), (out, lse), masks, ctx.masked, ctx.target),
            *(None,) * 9)  # of what has no gradient


def _expect_gradients(q, k, v, sinks, cu_seqlens_q, _, causal, window, scale, softcap, *__):
    masked = (causal, window, scale, softcap)
    options = kernel_options(q, k, v, sinks, masked, lse_gradient=False)
    if q.is_cuda and all(isinstance(size, int) for size in (window, *q.shape[-2:])):
        build_ahead("attention_backward" if cu_seqlens_q is None else "attention_varlen_backward",
                    options, q.get_device())


differentiate(define(_FORWARD, _forward, _empty_results), 6, _keep, _differentiate,
              _expect_gradients)
refuse_second_gradients(define(_BACKWARD, _backward, _empty_gradients), 10, "attention")

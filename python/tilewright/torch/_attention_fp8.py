"""Attention of e4m3: an operator without gradients."""

import torch

from ._attention import check_masked, check_shapes
from ._checks import DTYPES, check_is_tensor, check_tensor, checked_target, refuse, sizes_text
from ._run import define, readable, refuse_gradients, run

_FP8 = torch.float8_e4m3fn


def attention_fp8(q, k, v, q_scale, k_scale, v_scale, *, causal=False, scale=None,
                  out_dtype=torch.bfloat16, return_lse=False, target=None):
    """`attention` of torch.float8_e4m3fn: {batch, length, heads, dim} each. There are no gradients.

    q_scale     f32 {heads}, or of one element for all heads: q stands for so many times what it is
    k_scale, v_scale  f32 {kv_heads}, or of one element: the same of k and v
    out_dtype   torch.bfloat16 or torch.float16

    The rest is as `attention` has it. Weights are rounded to e4m3 before they meet v.
    """
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        check_is_tensor(name, tensor)
        if tensor.dtype != _FP8:
            refuse(f"{name} has elements of {tensor.dtype}",
                   f"convert {name} to {_FP8}; attention takes the others")
        check_tensor(name, tensor, ("batch", "length", "heads", "dim"), more_dtypes=(_FP8,))
    check_shapes(q, k, v)
    scales = [_of_heads(name, given, tensor)
              for name, given, tensor in (("q_scale", q_scale, q), ("k_scale", k_scale, k),
                                          ("v_scale", v_scale, v))]
    if out_dtype not in (torch.bfloat16, torch.float16):
        refuse(f"out_dtype is {out_dtype}", "set it to torch.bfloat16 or torch.float16")
    _, causal, _, scale, _ = check_masked(q, causal, None, scale, 0.0, None)
    out, lse = torch.ops.tilewright.attention_fp8.default(q, k, v, *scales, causal, scale,
                                                          out_dtype, checked_target(target))
    return (out, lse) if return_lse else out


def _of_heads(name, scale, tensor):
    check_tensor(name, scale, ("...",))
    heads = tensor.shape[-2]
    if scale.dtype != torch.float32 or scale.shape not in ((heads,), (1,), ()):
        refuse(f"{name} is {sizes_text(scale)} of {scale.dtype}, and there are {heads} heads",
               f"pass {{{heads}}} of torch.float32, or one element for all heads")
    if scale.device != tensor.device:
        refuse(f"{name} is on {scale.device}, and q on {tensor.device}",
               f"move {name} to {tensor.device}")
    return scale.expand(heads)


def _empty_results(q, k, v, q_scale, k_scale, v_scale, causal, scale, out_dtype, target):
    batch, length, heads, _ = q.shape
    return (q.new_empty((batch, length, heads, v.shape[-1]), dtype=out_dtype),
            q.new_empty((batch, heads, length), dtype=torch.float32))


def _forward(q, k, v, q_scale, k_scale, v_scale, causal, scale, out_dtype, target):
    given = (q, k, v, q_scale, k_scale, v_scale)
    out, lse = _empty_results(*given, causal, scale, out_dtype, target)
    run("attention_forward_fp8", (causal, scale, out_dtype),
        lambda: {"heads": q.shape[2], "kv_heads": k.shape[2], "dim": q.shape[3],
                 "dim_v": v.shape[3], "dtype": DTYPES[out_dtype], "causal": causal,
                 "scale": scale},
        target, [*(readable(tensor) for tensor in given), out, lse])
    return out, lse


refuse_gradients(define("attention_fp8(Tensor q, Tensor k, Tensor v, Tensor q_scale, "
                        "Tensor k_scale, Tensor v_scale, bool causal, float scale, "
                        "ScalarType out_dtype, str target) -> (Tensor out, Tensor lse)",
                        _forward, _empty_results), 6,
                 "attention_fp8 has no gradients, and one of its tensors wants them",
                 "call it under torch.no_grad(), or train with attention")

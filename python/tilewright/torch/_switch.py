"""PyTorch's own attention on Tilewright's kernels, and back."""

import math

import torch

from ._attention import forward_into
from ._checks import DTYPES, refuse

_OPERATORS = {"CPU": "_scaled_dot_product_flash_attention_for_cpu",
              "CUDA": "_scaled_dot_product_flash_attention"}
_MOST_DIM = 4096  # of what kernels take
_active = None


def enable():
    """torch.nn.functional.scaled_dot_product_attention, and all that calls it, takes Tilewright's
    kernels from now on, on GPUs and on the host, with its gradients and under torch.compile. What
    they do not do, such as masks, dropout and float64, still runs as before. disable() undoes it.

    On a GPU it stands in for PyTorch's flash attention, and cuDNN's is switched off for the time:
    it would be preferred."""
    global _active
    if not hasattr(torch.library, "get_kernel"):
        refuse(f"enable() is called, and PyTorch is {torch.__version__}",
               "take PyTorch 2.9 or newer, or call tilewright.torch.scaled_dot_product_attention")
    if _active is None:
        _active = _Switch()


def disable():
    """PyTorch's attention is its own again."""
    global _active
    if _active is not None:
        _active.remove()
        _active = None


class _Switch:
    def __init__(self):
        self.library = torch.library.Library("aten", "IMPL")
        for key, name in _OPERATORS.items():
            if key == "CUDA" and not torch.backends.cuda.is_built():
                continue
            self._replace(name, key, _forward_on_host if key == "CPU" else _forward_on_gpu)
            self._replace(name + "_backward", key, _backward)
        self.had_cudnn = torch.backends.cuda.cudnn_sdp_enabled()
        torch.backends.cuda.enable_cudnn_sdp(False)

    def _replace(self, name, key, ours):
        theirs = torch.library.get_kernel(getattr(torch.ops.aten, name).default, key)

        def call(keys, *arguments, **named):
            results = ours(*arguments, **named)
            return theirs.call_boxed(keys, *arguments, **named) if results is None else results

        self.library.impl(name, call, key, with_keyset=True, allow_override=True)

    def remove(self):
        self.library._destroy()
        torch.backends.cuda.enable_cudnn_sdp(self.had_cudnn)


def _can_be_ours(query, key, value, dropout_p, is_causal, scale):
    """Of {batch, heads, length, dim}. Masks of as many queries as keys mean the same."""
    return (query.dtype in DTYPES and query.dtype != torch.float64 and
            query.dtype == key.dtype == value.dtype and dropout_p == 0 and
            (scale is None or 0 < scale < math.inf) and
            0 < query.shape[-1] <= _MOST_DIM and key.shape[1] > 0 and
            query.shape[-1] == key.shape[-1] == value.shape[-1] and
            key.shape[1] == value.shape[1] and query.shape[1] % key.shape[1] == 0 and
            (not is_causal or query.shape[2] == key.shape[2]))


# These return None where the call is none of ours. Results lie in memory as PyTorch's do, which
# compiled code relies on.

def _forward(query, key, value, is_causal, scale):
    out = torch.empty_like(query)
    lse = query.new_empty(query.shape[:3], dtype=torch.float32)
    forward_into(out.transpose(1, 2), lse, *(t.transpose(1, 2) for t in (query, key, value)),
                 is_causal, scale or 0.0)
    return out, lse


def _forward_on_host(query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None,
                     scale=None):
    if attn_mask is not None or not _can_be_ours(query, key, value, dropout_p, is_causal, scale):
        return None
    out, lse = _forward(query, key, value, is_causal, scale)
    return out, lse.transpose(1, 2).contiguous().transpose(1, 2)


def _forward_on_gpu(query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *,
                    scale=None):
    if return_debug_mask or not _can_be_ours(query, key, value, dropout_p, is_causal, scale):
        return None
    seed = torch.zeros(2, dtype=torch.uint64, device=query.device)
    return (*_forward(query, key, value, is_causal, scale), None, None, query.shape[2],
            key.shape[2], seed, seed.new_zeros(()), query.new_empty(0))


def _backward(grad_out, query, key, value, out, logsumexp, *others, attn_mask=None, scale=None):
    # Of a GPU four facts of packed sequences stand before these two, and a seed behind.
    dropout_p, is_causal = others[4:6] if query.is_cuda else others[:2]
    if attn_mask is not None or not _can_be_ours(query, key, value, dropout_p, is_causal, scale):
        return None
    d_out, q, k, v, o = (t.transpose(1, 2) for t in (grad_out, query, key, value, out))
    *gradients, _ = torch.ops.tilewright.attention_backward.default(
        d_out, None, q, k, v, o, logsumexp, None, None, None, is_causal, 0, scale or 0.0, 0.0, "")
    gradients = [gradient.transpose(1, 2) for gradient in gradients]
    if not query.is_cuda:
        return tuple(gradients)
    return tuple(_laid_out_as(like, gradient)
                 for like, gradient in zip((query, key, value), gradients))


def _laid_out_as(like, tensor):
    place = torch.empty_like(like)
    return tensor if place.stride() == tensor.stride() else place.copy_(tensor)

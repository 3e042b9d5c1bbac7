"""Tilewright's kernels as operators of PyTorch: eager, under torch.compile, and with gradients.

    from tilewright.torch import attention
    out = attention(q, k, v, causal=True)      # {batch, length, heads, dim}

A tensor on a GPU runs there, on PyTorch's current stream, and one of the host by the target `cpu`.
Results have the same bits in every run, whether torch.use_deterministic_algorithms asks for it or
not. docs/pytorch.md says what each function takes. What cannot be done raises TilewrightError,
which names the argument, what it is, and the fix.
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError("tilewright.torch needs PyTorch, which is not installed: "
                              "pip install torch", name="torch") from None

from ._append import kv_append, kv_append_mla
from ._attention import attention
from ._attention_fp8 import attention_fp8
from ._gemm import gemm, gemm_fp8, linear
from ._merge import merge_states
from ._packing import cu_seqlens, pad, unpad
from ._paged import attention_paged, attention_paged_mla, attention_paged_plan
from ._pytorch import scaled_dot_product_attention, varlen_attn
from ._rotary import rotary
from ._rows import cross_entropy, layer_norm, rms_norm, softmax
from ._switch import disable, enable

__all__ = ["attention", "attention_fp8", "attention_paged", "attention_paged_mla",
           "attention_paged_plan", "cross_entropy", "cu_seqlens", "disable", "enable", "gemm",
           "gemm_fp8", "kv_append", "kv_append_mla", "layer_norm", "linear", "merge_states", "pad",
           "rms_norm", "rotary", "scaled_dot_product_attention", "softmax", "unpad", "varlen_attn"]

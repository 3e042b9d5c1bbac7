"""The names of flash_attn_interface (FlashAttention-3), in its order and with its meanings, on
Tilewright's kernels:

    from tilewright.torch.flash_attn_interface import flash_attn_func

An argument that cannot be honoured is an error that names it: qv, the descales, attention_chunk,
sm_margin, seqused_q and seqused_k, what is rotary, cache_leftpad, packed tensors beside a cache,
and a window_size that sees keys on the right. `num_splits`, `pack_gqa`, `scheduler_metadata` and
`deterministic` may be anything: they choose among ways to the same result.
"""

from ._attention import attention
from ._kvcache import attend_with_cache
from ._theirs import longest, require, require_unset, visible_keys

__all__ = ["flash_attn_func", "flash_attn_varlen_func", "flash_attn_with_kvcache"]


def flash_attn_func(q, k, v, softmax_scale=None, causal=False, qv=None, q_descale=None,
                    k_descale=None, v_descale=None, window_size=(-1, -1), attention_chunk=0,
                    softcap=0.0, num_splits=1, pack_gqa=None, deterministic=False, sm_margin=0,
                    return_attn_probs=False):
    """Of {batch, length, heads, dim}; the last query sees the last key under a causal mask. With
    return_attn_probs the log-sum-exp comes behind the result."""
    require_unset(qv=qv, q_descale=q_descale, k_descale=k_descale, v_descale=v_descale)
    _require_whole(attention_chunk, sm_margin)
    return attention(q, k, v, scale=softmax_scale, softcap=softcap, return_lse=return_attn_probs,
                     **visible_keys(causal, window_size))


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
                           seqused_q=None, seqused_k=None, softmax_scale=None, causal=False,
                           qv=None, q_descale=None, k_descale=None, v_descale=None,
                           window_size=(-1, -1), attention_chunk=0, softcap=0.0, num_splits=1,
                           pack_gqa=None, deterministic=False, sm_margin=0,
                           return_attn_probs=False):
    """Of packed sequences, {total length, heads, dim}."""
    require_unset(seqused_q=seqused_q, seqused_k=seqused_k, qv=qv, q_descale=q_descale,
                  k_descale=k_descale, v_descale=v_descale)
    _require_whole(attention_chunk, sm_margin)
    return attention(q, k, v, cu_seqlens=(cu_seqlens_q, cu_seqlens_k),
                     max_lengths=longest(max_seqlen_q, max_seqlen_k), scale=softmax_scale,
                     softcap=softcap, return_lse=return_attn_probs,
                     **visible_keys(causal, window_size))


def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, qv=None, rotary_cos=None,
                            rotary_sin=None, cache_seqlens=None, cache_batch_idx=None,
                            cache_leftpad=None, page_table=None, cu_seqlens_q=None,
                            cu_seqlens_k_new=None, max_seqlen_q=None, rotary_seqlens=None,
                            q_descale=None, k_descale=None, v_descale=None, softmax_scale=None,
                            causal=False, window_size=(-1, -1), attention_chunk=0, softcap=0.0,
                            rotary_interleaved=True, scheduler_metadata=None, num_splits=0,
                            pack_gqa=None, sm_margin=0, return_softmax_lse=False):
    """Of a cache {batch, length, heads, dim}, or of pages with a page_table, to which k and v are
    added in place. No gradients."""
    require_unset(qv=qv, rotary_cos=rotary_cos, rotary_sin=rotary_sin, cache_leftpad=cache_leftpad,
                  cu_seqlens_q=cu_seqlens_q, cu_seqlens_k_new=cu_seqlens_k_new,
                  rotary_seqlens=rotary_seqlens, q_descale=q_descale, k_descale=k_descale,
                  v_descale=v_descale)
    _require_whole(attention_chunk, sm_margin)
    return attend_with_cache(q, k_cache, v_cache, k, v, cache_seqlens, cache_batch_idx, page_table,
                             return_softmax_lse, table_name="page_table", scale=softmax_scale,
                             softcap=softcap, **visible_keys(causal, window_size))


def _require_whole(attention_chunk, sm_margin):
    require("attention_chunk", attention_chunk, 0, "set attention_chunk to 0")
    require("sm_margin", sm_margin, 0, "set sm_margin to 0: kernels take the whole GPU")

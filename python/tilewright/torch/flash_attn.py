"""The names of flash_attn 2, in its order and with its meanings, on Tilewright's kernels:

    from tilewright.torch.flash_attn import flash_attn_func

An argument that cannot be honoured is an error that names it: dropout_p, alibi_slopes, what is
rotary, cache_leftpad, a window_size that sees keys on the right, and the block_table of
flash_attn_varlen_func. `deterministic` and `num_splits` may be anything: results always have the
same bits. With return_attn_probs come the result, the log-sum-exp, and None in the place of the
probabilities, which are never there.
"""

from ._attention import attention
from ._kvcache import attend_with_cache
from ._theirs import longest, parts, require_unset, visible_keys, without_dropout

__all__ = ["flash_attn_func", "flash_attn_kvpacked_func", "flash_attn_qkvpacked_func",
           "flash_attn_varlen_func", "flash_attn_varlen_kvpacked_func",
           "flash_attn_varlen_qkvpacked_func", "flash_attn_with_kvcache"]


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1),
                    softcap=0.0, alibi_slopes=None, deterministic=False, return_attn_probs=False):
    """Of {batch, length, heads, dim}; the last query sees the last key under a causal mask."""
    without_dropout(dropout_p)
    require_unset(alibi_slopes=alibi_slopes)
    return _answer(attention(q, k, v, scale=softmax_scale, softcap=softcap, return_lse=True,
                             **visible_keys(causal, window_size)), return_attn_probs)


def flash_attn_kvpacked_func(q, kv, *others, **named):
    """The same of kv {batch, length, 2, heads, dim}."""
    return flash_attn_func(q, *parts("kv", kv, 2, 2), *others, **named)


def flash_attn_qkvpacked_func(qkv, *others, **named):
    """The same of qkv {batch, length, 3, heads, dim}."""
    return flash_attn_func(*parts("qkv", qkv, 2, 3), *others, **named)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
                           dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1),
                           softcap=0.0, alibi_slopes=None, deterministic=False,
                           return_attn_probs=False, block_table=None):
    """Of packed sequences, {total length, heads, dim}."""
    without_dropout(dropout_p)
    require_unset(alibi_slopes=alibi_slopes, block_table=block_table)
    return _answer(attention(q, k, v, cu_seqlens=(cu_seqlens_q, cu_seqlens_k),
                             max_lengths=longest(max_seqlen_q, max_seqlen_k), scale=softmax_scale,
                             softcap=softcap, return_lse=True,
                             **visible_keys(causal, window_size)), return_attn_probs)


def flash_attn_varlen_kvpacked_func(q, kv, *others, **named):
    """The same of kv {total length, 2, heads, dim}."""
    return flash_attn_varlen_func(q, *parts("kv", kv, 1, 2), *others, **named)


def flash_attn_varlen_qkvpacked_func(qkv, cu_seqlens, max_seqlen, *others, **named):
    """The same of qkv {total length, 3, heads, dim}."""
    return flash_attn_varlen_func(*parts("qkv", qkv, 1, 3), cu_seqlens, cu_seqlens, max_seqlen,
                                  max_seqlen, *others, **named)


def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None,
                            cache_seqlens=None, cache_batch_idx=None, cache_leftpad=None,
                            block_table=None, softmax_scale=None, causal=False,
                            window_size=(-1, -1), softcap=0.0, rotary_interleaved=True,
                            alibi_slopes=None, num_splits=0, return_softmax_lse=False):
    """Of a cache {batch, length, heads, dim}, or of pages with a block_table, to which k and v are
    added in place. No gradients."""
    require_unset(rotary_cos=rotary_cos, rotary_sin=rotary_sin, cache_leftpad=cache_leftpad,
                  alibi_slopes=alibi_slopes)
    return attend_with_cache(q, k_cache, v_cache, k, v, cache_seqlens, cache_batch_idx, block_table,
                             return_softmax_lse, scale=softmax_scale, softcap=softcap,
                             **visible_keys(causal, window_size))


def _answer(results, return_attn_probs):
    return (*results, None) if return_attn_probs else results[0]

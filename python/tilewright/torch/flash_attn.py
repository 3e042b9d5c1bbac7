"""The names of flash_attn 2, in its order and with its meanings, on Tilewright's kernels:

    from tilewright.torch.flash_attn import flash_attn_func

An argument that cannot be honoured is an error that names it: dropout_p, alibi_slopes, block_table,
and a window_size that sees keys on the right. `deterministic` may be anything: results always have
the same bits. With return_attn_probs come the result, the log-sum-exp, and None in the place of the
probabilities, which are never there.
"""

from ._attention import attention
from ._theirs import require_unset, visible_keys, without_dropout

__all__ = ["flash_attn_func", "flash_attn_kvpacked_func", "flash_attn_qkvpacked_func",
           "flash_attn_varlen_func", "flash_attn_varlen_kvpacked_func",
           "flash_attn_varlen_qkvpacked_func"]


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1),
                    softcap=0.0, alibi_slopes=None, deterministic=False, return_attn_probs=False):
    """Of {batch, length, heads, dim}; the last query sees the last key under a causal mask."""
    without_dropout(dropout_p)
    require_unset(alibi_slopes=alibi_slopes)
    return _answer(attention(q, k, v, scale=softmax_scale, softcap=softcap, return_lse=True,
                             **visible_keys(causal, window_size)), return_attn_probs)


def flash_attn_kvpacked_func(q, kv, *others, **named):
    """The same of kv {batch, length, 2, heads, dim}."""
    return flash_attn_func(q, *kv.unbind(2), *others, **named)


def flash_attn_qkvpacked_func(qkv, *others, **named):
    """The same of qkv {batch, length, 3, heads, dim}."""
    return flash_attn_func(*qkv.unbind(2), *others, **named)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
                           dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1),
                           softcap=0.0, alibi_slopes=None, deterministic=False,
                           return_attn_probs=False, block_table=None):
    """Of packed sequences, {total length, heads, dim}."""
    without_dropout(dropout_p)
    require_unset(alibi_slopes=alibi_slopes, block_table=block_table)
    return _answer(attention(q, k, v, cu_seqlens=(cu_seqlens_q, cu_seqlens_k),
                             max_lengths=(max_seqlen_q, max_seqlen_k), scale=softmax_scale,
                             softcap=softcap, return_lse=True,
                             **visible_keys(causal, window_size)), return_attn_probs)


def flash_attn_varlen_kvpacked_func(q, kv, *others, **named):
    """The same of kv {total length, 2, heads, dim}."""
    return flash_attn_varlen_func(q, *kv.unbind(1), *others, **named)


def flash_attn_varlen_qkvpacked_func(qkv, cu_seqlens, max_seqlen, *others, **named):
    """The same of qkv {total length, 3, heads, dim}."""
    return flash_attn_varlen_func(*qkv.unbind(1), cu_seqlens, cu_seqlens, max_seqlen, max_seqlen,
                                  *others, **named)


def _answer(results, return_attn_probs):
    return (*results, None) if return_attn_probs else results[0]

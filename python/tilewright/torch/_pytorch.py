"""PyTorch's own names for attention: scaled_dot_product_attention and varlen_attn."""

import torch

from ._attention import attention
from ._checks import check_tensor, refuse
from ._theirs import require_unset, visible_keys, without_dropout


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False,
                                 scale=None, enable_gqa=False):
    """torch.nn.functional's, of {batch, heads, length, dim} or {heads, length, dim}. As there, the
    first query sees the first key under a causal mask, each one behind it a key more. An attn_mask
    and dropout_p are errors."""
    require_unset(attn_mask=attn_mask)
    without_dropout(dropout_p)
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        check_tensor(name, tensor, ("...", "heads", "length", "dim"))
    _require_heads(query, key, enable_gqa)
    if query.dim() == 3:
        return _first_sees_first(*(t.unsqueeze(0) for t in (query, key, value)), is_causal,
                                 scale).squeeze(0)
    return _first_sees_first(query, key, value, is_causal, scale)


def _first_sees_first(q, k, v, is_causal, scale):
    """`attention` lets the last query see the last key. So of more keys than queries the last ones
    are left out, which nobody sees, and of more queries the last ones see all."""
    def attend(q, k, v, causal):
        return attention(q, k, v, causal=causal, scale=scale, layout="bhsd")

    queries, keys = q.shape[-2], k.shape[-2]
    if not is_causal or queries == keys:
        return attend(q, k, v, is_causal)
    if queries < keys:
        return attend(q, k[..., :queries, :], v[..., :queries, :], True)
    return torch.cat([attend(q[..., :keys, :], k, v, True), attend(q[..., keys:, :], k, v, False)],
                     dim=-2)


def varlen_attn(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *, return_aux=None, scale=None,
                window_size=(-1, -1), enable_gqa=False, seqused_k=None, block_table=None,
                num_splits=None):
    """torch.nn.attention.varlen's, of packed {total length, heads, dim}. A window_size of (-1, 0)
    is a causal mask, and the last query sees the last key. seqused_k, block_table and a window that
    sees keys on the right are errors; num_splits may be anything."""
    require_unset(seqused_k=seqused_k, block_table=block_table)
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        check_tensor(name, tensor, ("total length", "heads", "dim"))
    _require_heads(query, key, enable_gqa, axis=-2)
    if cu_seq_k is None:
        refuse("cu_seq_k is None", "pass where the sequences of the keys begin, as cu_seq_q")
    return attention(query, key, value, cu_seqlens=(cu_seq_q, cu_seq_k), max_lengths=(max_q, max_k),
                     scale=scale, return_lse=return_aux is not None and return_aux.lse,
                     **visible_keys(False, window_size))


def _require_heads(query, key, enable_gqa, axis=-3):
    if not enable_gqa and query.shape[axis] != key.shape[axis]:
        refuse(f"query has {query.shape[axis]} heads, key has {key.shape[axis]}, and enable_gqa is "
               "False", "set enable_gqa=True where heads share keys")

"""What flash_attn_with_kvcache does in both of its packages."""

import torch

from ._checks import refuse
from ._paged import append, attention_paged


def attend_with_cache(q, k_cache, v_cache, k, v, cache_seqlens, cache_batch_idx, block_table,
                      return_lse, **options):
    """Attention to a cache {batch, length, heads, dim}, or with a table {pages, page, heads, dim},
    to which k and v are added first, in place. Nothing waits for the GPU."""
    batch = q.shape[0]
    if block_table is None:
        block_table = _own_pages(batch, k_cache, cache_batch_idx)
    elif cache_batch_idx is not None:
        refuse("cache_batch_idx and the table of the pages are both given",
               "leave cache_batch_idx out: the table says where each sequence is")
    if cache_seqlens is None:
        cache_seqlens = block_table.shape[1] * k_cache.shape[1]
    if isinstance(cache_seqlens, int):
        cache_seqlens = torch.full((batch,), cache_seqlens, dtype=torch.int32, device=q.device)
    elif not isinstance(cache_seqlens, torch.Tensor) or cache_seqlens.dtype != torch.int32:
        said = getattr(cache_seqlens, "dtype", type(cache_seqlens).__name__)
        refuse(f"cache_seqlens is of {said}", "pass an int, or a tensor of torch.int32")
    if (k is None) != (v is None):
        refuse(f"{'k' if k is None else 'v'} is None, and the other one is given",
               "pass both k and v, or neither")
    if k is not None:
        append(k_cache, k, cache_seqlens, block_table)
        append(v_cache, v, cache_seqlens, block_table)
        cache_seqlens = cache_seqlens + k.shape[1]
    with torch.no_grad():
        return attention_paged(q, k_cache, v_cache, block_table, cache_seqlens,
                               return_lse=return_lse, **options)


def _own_pages(batch, k_cache, cache_batch_idx):
    """A table in which each sequence has one page: its row of the cache."""
    if cache_batch_idx is None:
        return torch.arange(batch, dtype=torch.int32, device=k_cache.device)[:, None]
    return cache_batch_idx.int()[:, None]

"""What flash_attn_with_kvcache does in both of its packages."""

import torch

from ._checks import (
    check_alike,
    check_integer,
    check_size,
    check_tensor,
    is_readable,
    refuse,
    require_numbers,
    short,
)
from ._paged import append, attention_paged, like_an_earlier

_CACHE = ("batch or pages", "length", "heads", "dim")
_NEW = ("batch", "length", "heads", "dim")


def attend_with_cache(q, k_cache, v_cache, k, v, cache_seqlens, cache_batch_idx, block_table,
                      return_lse, *, table_name="block_table", **options):
    """Attention to a cache {batch, length, heads, dim}, or with a table {pages, page, heads, dim},
    to which k and v are added first, in place. Nothing waits for the GPU."""
    if k is None and v is None and cache_batch_idx is None:
        results = like_an_earlier(q, k_cache, v_cache, block_table, cache_seqlens, return_lse,
                                  **options)
        if results is not None:
            return results
    check_tensor("q", q, _NEW)
    check_tensor("k_cache", k_cache, _CACHE)
    check_tensor("v_cache", v_cache, _CACHE)
    if not torch.is_autocast_enabled(q.device.type):
        check_alike("q", q, "k_cache", k_cache)
    check_alike("k_cache", k_cache, "v_cache", v_cache)
    for axis, what in enumerate(_CACHE[:3]):
        check_size("v_cache", v_cache, axis, what, k_cache.shape[axis], "k_cache")
    check_size("k_cache", k_cache, -1, "dim", q.shape[-1], "q")
    batch = q.shape[0]
    if block_table is None:
        table = _own_pages(q, k_cache, cache_batch_idx)
    elif cache_batch_idx is not None:
        refuse(f"cache_batch_idx and {table_name} are both given",
               "leave cache_batch_idx out: the table says where each sequence is")
    else:
        table = block_table
        _check_numbers(table_name, table, q, ("batch", "most pages"))
    room = table.shape[1] * k_cache.shape[1]
    lengths = _checked_lengths(cache_seqlens, q, room)
    if (k is None) != (v is None):
        refuse(f"{'k' if k is None else 'v'} is None, and the other one is given",
               "pass both k and v, or neither")
    if k is not None:
        for name, tensor, cache in (("k", k, k_cache), ("v", v, v_cache)):
            check_tensor(name, tensor, _NEW)
            check_alike("the cache", cache, name, tensor)
            check_size(name, tensor, 0, "batch", batch, "q")
            check_size(name, tensor, 2, "number of heads", cache.shape[2], "the cache")
            check_size(name, tensor, 3, "dim", cache.shape[3], "the cache")
        check_size("v", v, 1, "length", k.shape[1], "k")
        append(k_cache, k, lengths, table)
        append(v_cache, v, lengths, table)
        lengths = lengths + k.shape[1]
    with torch.no_grad():
        return attention_paged(q, k_cache, v_cache, table, lengths, return_lse=return_lse,
                               **options)


def _check_numbers(name, tensor, q, axes):
    """Whether it is of int32, a row for each sequence, and where q is."""
    if not isinstance(tensor, torch.Tensor) or tensor.dtype != torch.int32:
        refuse(f"{name} is of {getattr(tensor, 'dtype', type(tensor).__name__)}",
               "pass a tensor of torch.int32")
    if tensor.dim() != len(axes):
        refuse(f"{name} is {short(tensor)}", f"pass {{{', '.join(axes)}}}")
    check_size(name, tensor, 0, "batch", q.shape[0], "q")
    if tensor.device != q.device:
        refuse(f"{name} is on {tensor.device}, and q on {q.device}", f"move {name} to {q.device}")


def _checked_lengths(cache_seqlens, q, room):
    """Of each sequence; all of the cache where nobody says it."""
    if cache_seqlens is None:
        cache_seqlens = room
    if isinstance(cache_seqlens, torch.Tensor):
        _check_numbers("cache_seqlens", cache_seqlens, q, ("batch",))
    else:
        check_integer("cache_seqlens", cache_seqlens, "pass an int, or a tensor of torch.int32")
        cache_seqlens = torch.full(q.shape[:1], cache_seqlens, dtype=torch.int32, device=q.device)
    if is_readable(cache_seqlens):
        wrong = (cache_seqlens < 0) | (cache_seqlens > room)
        if wrong.any():
            refuse(f"cache_seqlens has {cache_seqlens[wrong][0].item()}, and the cache has room "
                   f"for {room} keys of a sequence", "let it be from 0 to that")
    return cache_seqlens


def _own_pages(q, k_cache, cache_batch_idx):
    """A table in which each sequence has one page: its row of the cache."""
    rows = k_cache.shape[0]
    if cache_batch_idx is None:
        if q.shape[0] > rows:
            refuse(f"the batch of k_cache is {rows}, and that of q is {q.shape[0]}",
                   "pass a cache with a row for each sequence")
        return torch.arange(q.shape[0], dtype=torch.int32, device=k_cache.device)[:, None]
    if isinstance(cache_batch_idx, torch.Tensor) and cache_batch_idx.dtype == torch.int64:
        cache_batch_idx = cache_batch_idx.int()
    _check_numbers("cache_batch_idx", cache_batch_idx, q, ("batch",))
    require_numbers("cache_batch_idx", cache_batch_idx, rows)
    return cache_batch_idx[:, None]

"""Attention to keys and values in pages, as servers keep them: an operator without gradients."""

import torch

from ._attention import check_masked, kernel_options, require_offsets
from ._checks import check_alike, check_size, check_tensor, refuse, under_autocast
from ._run import define, differentiate, readable, run

_PAGES = ("pages", "page", "heads", "dim")


def attention_paged(q, k, v, block_table, lengths, *, causal=False, window=None, softcap=0.0,
                    sinks=None, scale=None, cu_seqlens=None, return_lse=False, target=None):
    """`attention` for decoding and for chunks of prompts: q {batch, queries, heads, dim}, k and v
    {pages, page, kv_heads, dim}. There are no gradients.

    block_table i32 {batch, most pages}: key j of a sequence lies in slot j % page of page
                block_table[.., j // page]. -1 is no page
    lengths     i32 {batch}: the keys of each sequence, those of its queries among them
    cu_seqlens  i32 {batch + 1}: the queries are packed, and q is {total queries, heads, dim}

    The rest is as `attention` has it. A cache that is no pages is one of a page for each sequence.
    """
    packed = cu_seqlens is not None
    check_tensor("q", q, ("total queries", "heads", "dim") if packed else
                 ("batch", "queries", "heads", "dim"))
    check_tensor("k", k, _PAGES)
    check_tensor("v", v, _PAGES)
    q, k, v = under_autocast(q, k, v)
    _check_shapes(q, k, v)
    for name, tensor, axes in (("block_table", block_table, 2), ("lengths", lengths, 1),
                               ("cu_seqlens", cu_seqlens, 1)):
        if tensor is not None:
            _check_numbers(name, tensor, axes, q)
    batch = lengths.shape[0]
    check_size("block_table", block_table, 0, "batch", batch, "lengths")
    if packed:
        check_size("cu_seqlens", cu_seqlens, 0, "length", batch + 1, "lengths, and one more,")
    else:
        check_size("q", q, 0, "batch", batch, "lengths")
        cu_seqlens = torch.arange(batch + 1, dtype=torch.int32, device=q.device) * q.shape[1]
    masked = check_masked(q, causal, window, scale, softcap, sinks)
    out, lse = torch.ops.tilewright.attention_paged.default(
        q if packed else q.flatten(0, 1), k, v, cu_seqlens, lengths, block_table, *masked,
        target or "")
    if not packed:
        out, lse = out.unflatten(0, q.shape[:2]), lse.unflatten(0, q.shape[:2])
    return (out, lse.transpose(-1, -2)) if return_lse else out


def _check_shapes(q, k, v):
    check_alike("q", q, "k", k)
    check_alike("q", q, "v", v)
    check_size("k", k, -1, "dim", q.shape[-1], "q")
    for axis, what in ((0, "number of pages"), (1, "page"), (2, "number of heads")):
        check_size("v", v, axis, what, k.shape[axis], "k")
    heads, kv_heads = q.shape[-2], k.shape[-2]
    if kv_heads == 0 or heads % kv_heads != 0:
        refuse(f"q has {heads} heads, and k has {kv_heads}",
               "pass k and v with a number of heads that divides that of q")


def _check_numbers(name, tensor, axes, q):
    if not isinstance(tensor, torch.Tensor) or tensor.dtype != torch.int32:
        refuse(f"{name} is of {getattr(tensor, 'dtype', type(tensor).__name__)}",
               "pass a tensor of torch.int32")
    if tensor.dim() != axes:
        refuse(f"{name} has {tensor.dim()} axes", f"pass {axes}")
    if tensor.device != q.device:
        refuse(f"{name} is on {tensor.device}, and q on {q.device}", f"move {name} to {q.device}")


def _empty_results(q, k, v, *_):
    return (q.new_empty(q.shape[:-1] + v.shape[-1:]),
            q.new_empty(q.shape[:-1], dtype=torch.float32))


def _forward(q, k, v, cu_seqlens_q, lengths, block_table, sinks, causal, window, scale, softcap,
             target):
    if not q.is_cuda:
        require_offsets("cu_seqlens", cu_seqlens_q, q.shape[0], 0)
    out, lse = _empty_results(q, k, v)
    out.zero_()  # queries of no sequence are not written
    lse.fill_(-torch.inf)
    tensors = [*(readable(tensor) for tensor in (q, cu_seqlens_q, lengths, block_table, k, v)), out,
               lse]
    if sinks is not None:
        tensors.append(readable(sinks))
    masked = (causal, window, scale, softcap)
    run("attention_paged", masked,
        lambda: kernel_options(q, k, v, sinks, masked, page=k.shape[1]), target, tensors)
    return out, lse


def _refuse_gradients(ctx, *_):
    refuse("attention_paged has no gradients, and one of q, k and v wants them",
           "call it under torch.no_grad(), or train with attention")


differentiate(define(
    "attention_paged(Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, Tensor lengths, "
    "Tensor block_table, Tensor? sinks, bool causal, SymInt window, float scale, float softcap, "
    "str target) -> (Tensor out, Tensor lse)", _forward, _empty_results), 3, lambda *_: None,
    _refuse_gradients)


def append(cache, new, lengths, block_table):
    """Writes {batch, length, heads, dim} behind so many rows of each sequence of the cache."""
    rows = lengths[:, None] + torch.arange(new.shape[1], device=new.device)
    room = block_table.shape[1] * cache.shape[1]
    if not cache.is_cuda and (rows >= room).any():
        refuse(f"k has {new.shape[1]} rows behind {lengths.max().item()}, and the cache has room "
               f"for {room}", "make the cache longer")
    pages = block_table.gather(1, (rows // cache.shape[1]).long())
    if not cache.is_cuda and (pages < 0).any():
        refuse("the table of the pages is -1 where k belongs", "give those rows a page")
    # A GPU's own check of indices refuses this one, where -1 would be the last page.
    pages = torch.where(pages < 0, cache.shape[0], pages)
    cache.index_put_((pages, rows % cache.shape[1]), new)

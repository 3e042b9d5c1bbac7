"""Attention to keys and values in pages, as servers keep them: an operator without gradients."""

import functools

import torch

from ._attention import check_masked, kernel_options, require_offsets
from ._checks import (
    check_alike,
    check_integer,
    check_size,
    check_tensor,
    refuse,
    sizes_text,
    under_autocast,
)
from ._run import define, differentiate, readable, run

_PAGES = ("pages", "page", "heads", "dim")
_FP8 = torch.float8_e4m3fn


def attention_paged(q, k, v, block_table, lengths, *, causal=False, window=None, softcap=0.0,
                    sinks=None, scale=None, cu_seqlens=None, k_scale=None, v_scale=None,
                    fixed_split_size=0, plan=None, return_lse=False, target=None):
    """`attention` for decoding and for chunks of prompts: q {batch, queries, heads, dim}, k and v
    {pages, page, kv_heads, dim}. There are no gradients.

    block_table i32 {batch, most pages}: key j of a sequence lies in slot j % page of page
                block_table[.., j // page]. -1 is no page
    lengths     i32 {batch}: the keys of each sequence, those of its queries among them
    cu_seqlens  i32 {batch + 1}: the queries are packed, and q is {total queries, heads, dim}
    k_scale, v_scale  f32 {kv_heads}, or of one element for all heads: k and v are of
                torch.float8_e4m3fn, and stand for so many times what they are
    fixed_split_size  keys are divided into parts of so many, a multiple of 64: then a sequence's
                bits do not depend on the others of its batch. 0: parts fill the GPU
    plan        attention_paged_plan's, for all layers that have these lengths

    The rest is as `attention` has it. A cache that is no pages is one of a page for each sequence.
    """
    packed = cu_seqlens is not None
    check_tensor("q", q, ("total queries", "heads", "dim") if packed else
                 ("batch", "queries", "heads", "dim"))
    check_tensor("k", k, _PAGES, more_dtypes=(_FP8,))
    check_tensor("v", v, _PAGES, more_dtypes=(_FP8,))
    if k.dtype == _FP8:
        q, = under_autocast(q)
    else:
        q, k, v = under_autocast(q, k, v)
    _check_shapes(q, k, v)
    scales = [check_scale_of_heads(name, scale, q, k)
              for name, scale in (("k_scale", k_scale), ("v_scale", v_scale))]
    if k.dtype == _FP8 and scales[0].numel() != scales[1].numel():
        scales = [scale.expand(k.shape[-2]) for scale in scales]
    for name, tensor, axes in (("block_table", block_table, 2), ("lengths", lengths, 1),
                               ("cu_seqlens", cu_seqlens, 1), ("plan", plan, 1)):
        if tensor is not None:
            check_numbers(name, tensor, axes, q)
    batch = lengths.shape[0]
    check_size("block_table", block_table, 0, "batch", batch, "lengths")
    if plan is not None:
        check_size("plan", plan, 0, "length", batch + 1, "lengths, and one more,")
    if packed:
        check_size("cu_seqlens", cu_seqlens, 0, "length", batch + 1, "lengths, and one more,")
    else:
        check_size("q", q, 0, "batch", batch, "lengths")
        cu_seqlens = torch.arange(batch + 1, dtype=torch.int32, device=q.device) * q.shape[1]
    check_integer("fixed_split_size", fixed_split_size, "set it to a multiple of 64, or to 0")
    masked = check_masked(q, causal, window, scale, softcap, sinks)
    tensors = (q if packed else q.flatten(0, 1), k, v)
    rest = (cu_seqlens, lengths, block_table, *masked, fixed_split_size, plan, target or "")
    if k.dtype == _FP8:
        out, lse = torch.ops.tilewright.attention_paged_fp8.default(*tensors, *scales, *rest)
    else:
        out, lse = torch.ops.tilewright.attention_paged.default(*tensors, *rest)
    if not packed:
        out, lse = out.unflatten(0, q.shape[:2]), lse.unflatten(0, q.shape[:2])
    return (out, lse.transpose(-1, -2)) if return_lse else out


def _check_shapes(q, k, v):
    if k.dtype != _FP8:
        check_alike("q", q, "k", k)
    check_alike("k", k, "v", v)
    if k.device != q.device:
        refuse(f"k is on {k.device}, and q on {q.device}", f"move k and v to {q.device}")
    check_size("k", k, -1, "dim", q.shape[-1], "q")
    for axis, what in ((0, "number of pages"), (1, "page"), (2, "number of heads")):
        check_size("v", v, axis, what, k.shape[axis], "k")
    heads, kv_heads = q.shape[-2], k.shape[-2]
    if kv_heads == 0 or heads % kv_heads != 0:
        refuse(f"q has {heads} heads, and k has {kv_heads}",
               "pass k and v with a number of heads that divides that of q")


def check_scale_of_heads(name, scale, q, k, cache="k"):
    """{kv_heads} or {1}, or None where the cache has no scales."""
    if k.dtype != _FP8:
        if scale is not None:
            refuse(f"{name} is given, and {cache} is of {k.dtype}",
                   f"leave {name} out, or pass a cache of {_FP8}")
        return None
    heads = k.shape[-2]
    if not isinstance(scale, torch.Tensor) or scale.dtype != torch.float32:
        refuse(f"{name} is of {getattr(scale, 'dtype', type(scale).__name__)}, and {cache} of "
               f"{_FP8}", "pass a tensor of torch.float32: a scale for each head, or one for all")
    if scale.shape not in ((heads,), (1,), ()):
        refuse(f"{name} is {sizes_text(scale)}, and {cache} has {heads} heads",
               f"pass {{{heads}}}, or one element for all heads")
    if scale.device != q.device:
        refuse(f"{name} is on {scale.device}, and q on {q.device}", f"move {name} to {q.device}")
    return scale.reshape(-1)


def check_numbers(name, tensor, axes, q):
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


def _forward(q, k, v, *rest):
    return _run_paged("attention_paged", q, k, v, (), *rest)


def _forward_fp8(q, k, v, k_scale, v_scale, *rest):
    return _run_paged("attention_paged_fp8", q, k, v, (k_scale, v_scale), *rest)


def _run_paged(name, q, k, v, scales, cu_seqlens_q, lengths, block_table, sinks, causal, window,
               scale, softcap, fixed_split_size, plan, target):
    if not q.is_cuda:
        require_offsets("cu_seqlens", cu_seqlens_q, q.shape[0], 0)
        _require_pages(block_table, lengths, *k.shape[:2])
    out, lse = _empty_results(q, k, v)
    out.zero_()  # queries of no sequence are not written
    lse.fill_(-torch.inf)
    inputs = (q, cu_seqlens_q, lengths, block_table, k, v, *scales)
    tensors = [*(readable(tensor) for tensor in inputs), out, lse]
    if sinks is not None:
        tensors.append(readable(sinks))
    if plan is not None:
        tensors.append(readable(plan))
    masked = (causal, window, scale, softcap)
    run(name, (*masked, fixed_split_size),
        lambda: kernel_options(q, k, v, sinks, masked, page=k.shape[1],
                               fixed_split_size=fixed_split_size, planned=plan is not None,
                               **({"scales": scales[0].numel()} if scales else {})),
        target, tensors)
    return out, lse


def _require_pages(table, lengths, pages, page):
    """Whether each sequence has pages for its keys. Of the host, where that can be read."""
    room = table.shape[1] * page
    wrong = (lengths < 0) | (lengths > room)
    if wrong.any():
        refuse(f"lengths has {lengths[wrong][0].item()}, and block_table has room for {room} keys",
               "let lengths be from 0 to that")
    places = torch.arange(table.shape[1]) * page
    numbers = table[places < lengths[:, None]]
    wrong = (numbers < -1) | (numbers >= pages)
    if wrong.any():
        refuse(f"block_table has {numbers[wrong][0].item()}, and there are {pages} pages",
               f"let pages be from 0 to {pages - 1}, or -1 for none")


def _refuse_gradients(ctx, *_):
    refuse("attention_paged has no gradients, and one of q, k and v wants them",
           "call it under torch.no_grad(), or train with attention")


_REST = ("Tensor cu_seqlens_q, Tensor lengths, Tensor block_table, Tensor? sinks, bool causal, "
         "SymInt window, float scale, float softcap, SymInt fixed_split_size, "
         "Tensor? plan, str target) -> (Tensor out, Tensor lse)")
for _schema, _implementation in (
        ("attention_paged(Tensor q, Tensor k, Tensor v, ", _forward),
        ("attention_paged_fp8(Tensor q, Tensor k, Tensor v, Tensor k_scale, Tensor v_scale, ",
         _forward_fp8)):
    differentiate(define(_schema + _REST, _implementation, _empty_results), 3, lambda *_: None,
                  _refuse_gradients)


def attention_paged_plan(lengths, *, heads, kv_heads, queries=1, cu_seqlens=None, window=None,
                         fixed_split_size=0, target=None):
    """How `attention_paged` of these lengths divides keys: made once, for any number of layers. It
    is computed on the GPU, and nothing waits for the host.

    heads, kv_heads  of q, and of k and v
    queries     of each sequence; or cu_seqlens i32 {batch + 1}, where they are packed
    window, fixed_split_size  as attention_paged has them

    By a plan of other lengths results are right too, in parts that are less alike. With
    fixed_split_size they depend on the lengths of the plan.
    """
    if not isinstance(lengths, torch.Tensor):
        refuse(f"lengths is of {type(lengths).__name__}", "pass a tensor of torch.int32")
    for name, tensor in (("lengths", lengths), ("cu_seqlens", cu_seqlens)):
        if tensor is not None:
            check_numbers(name, tensor, 1, lengths)
    batch = lengths.shape[0]
    if cu_seqlens is None:
        cu_seqlens = torch.arange(batch + 1, dtype=torch.int32, device=lengths.device) * queries
    check_size("cu_seqlens", cu_seqlens, 0, "length", batch + 1, "lengths, and one more,")
    return torch.ops.tilewright.attention_paged_plan.default(
        cu_seqlens, lengths, heads, kv_heads, window or 0, fixed_split_size, target or "")


def _plan(cu_seqlens_q, lengths, heads, kv_heads, window, fixed_split_size, target):
    plan = torch.empty_like(cu_seqlens_q)
    options = {"heads": heads, "kv_heads": kv_heads, "window": window,
               "fixed_split_size": fixed_split_size}
    if lengths.is_cuda:
        options["multiprocessors"] = _multiprocessors(lengths.get_device())
    run("attention_paged_plan", tuple(options.values()), lambda: options, target,
        [readable(cu_seqlens_q), readable(lengths), plan])
    return plan


@functools.lru_cache(None)
def _multiprocessors(device):
    return torch.cuda.get_device_properties(device).multi_processor_count


define("attention_paged_plan(Tensor cu_seqlens_q, Tensor lengths, SymInt heads, SymInt kv_heads, "
       "SymInt window, SymInt fixed_split_size, str target) -> Tensor", _plan,
       lambda cu_seqlens_q, *_: torch.empty_like(cu_seqlens_q))


def append(cache, new, lengths, block_table):
    """Writes {batch, length, heads, dim} behind so many rows of each sequence of the cache."""
    check_alike("the cache", cache, "what joins it", new)
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

"""Attention to keys and values in pages, as servers keep them: an operator without gradients."""

import functools

import torch

from ..binding import TilewrightError
from . import _direct
from ._attention import check_masked, require_offsets
from ._checks import (
    DTYPES,
    axes_text,
    check_alike,
    check_integer,
    check_size,
    check_tensor,
    checked_target,
    is_readable,
    refuse,
    sizes_text,
    under_autocast,
)
from ._plain import is_compiling
from ._run import define, differentiate, readable, run

_PAGES = ("pages", "page", "heads", "dim")
_FP8 = torch.float8_e4m3fn
_offsets = {}
_MOST_OFFSETS = 4096


def attention_paged(q, k, v, block_table, lengths, *, causal=False, window=None, softcap=0.0,
                    sinks=None, scale=None, cu_seqlens=None, k_scale=None, v_scale=None,
                    indptr=None, fixed_split_size=0, plan=None, return_lse=False, target=None):
    """`attention` for decoding and for chunks of prompts: q {batch, queries, heads, dim}, k and v
    {pages, page, kv_heads, dim}. There are no gradients.

    block_table i32 {batch, most pages}: key j of a sequence lies in slot j % page of page
                block_table[.., j // page]. -1 is no page
    lengths     i32 {batch}: the keys of each sequence, those of its queries among them
    cu_seqlens  i32 {batch + 1}: the queries are packed, and q is {total queries, heads, dim}
    k_scale, v_scale  f32 {kv_heads}, or of one element for all heads: k and v are of
                torch.float8_e4m3fn, and stand for so many times what they are
    indptr      i32 {batch + 1}: block_table is {entries}, of which a sequence has those from
                indptr[b] to indptr[b + 1] - 1
    fixed_split_size  keys are divided into parts of so many, a multiple of 64: then a sequence's
                bits do not depend on the others of its batch. 0: parts fill the GPU
    plan        attention_paged_plan's, for all layers that have these lengths

    The rest is as `attention` has it. A cache that is no pages is one of a page for each sequence.
    """
    packed = cu_seqlens is not None
    settings = None
    if sinks is None and indptr is None and not packed:
        settings = _settings(causal, window, softcap, scale, fixed_split_size, target)
        if not is_compiling():
            results = _direct.call(settings, return_lse, q, lengths, block_table, plan, k, v,
                                   k_scale, v_scale)
            if results is not None:
                return _answer(results, return_lse)
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
    masked = check_masked(q, causal, window, scale, softcap, sinks)
    name, cache = "attention_paged", (k, v)
    if k.dtype == _FP8:
        name, cache = "attention_paged_fp8", (k, v, *scales)
    return _attend(name, q, cache, v.shape[-1],
                   _checked_table(q, block_table, indptr, lengths, cu_seqlens, plan,
                                  fixed_split_size),
                   masked, (fixed_split_size, plan, checked_target(target)), return_lse, settings)


def attention_paged_mla(q, kv, block_table, lengths, *, scale, dim_v=512, causal=False,
                        window=None, softcap=0.0, sinks=None, cu_seqlens=None, indptr=None,
                        fixed_split_size=0, plan=None, return_lse=False, target=None):
    """Multi-head latent attention, its projections absorbed: all heads of q {batch, queries, heads,
    dim} attend to the same rows of kv {pages, page, dim}. There are no gradients.

    scale       of scores: one over the root of what a head had before absorption
    dim_v       so many first elements of a row are its value too

    The rest is as `attention_paged` has it. Plans are those of `latent=True`.
    """
    packed = cu_seqlens is not None
    settings = None
    if sinks is None and indptr is None and not packed:
        settings = ("attention_paged_mla", causal, window, softcap, scale, dim_v, fixed_split_size,
                    target)
        if not is_compiling():
            results = _direct.call(settings, return_lse, q, lengths, block_table, plan, kv)
            if results is not None:
                return _answer(results, return_lse)
    check_tensor("q", q, ("total queries", "heads", "dim") if packed else
                 ("batch", "queries", "heads", "dim"))
    check_tensor("kv", kv, ("pages", "page", "dim"))
    q, kv = under_autocast(q, kv)
    check_alike("q", q, "kv", kv)
    check_size("kv", kv, -1, "dim", q.shape[-1], "q")
    check_integer("dim_v", dim_v, "set it to how many elements of a row are its value")
    if not 0 < dim_v <= kv.shape[-1]:
        refuse(f"dim_v is {dim_v}, and kv has rows of {kv.shape[-1]}",
               "set it to no more than that")
    masked = check_masked(q, causal, window, scale, softcap, sinks)
    return _attend("attention_paged_mla", q, (kv,), dim_v,
                   _checked_table(q, block_table, indptr, lengths, cu_seqlens, plan,
                                  fixed_split_size),
                   masked, (fixed_split_size, plan, checked_target(target)), return_lse, settings)


def _checked_table(q, block_table, indptr, lengths, cu_seqlens, plan, fixed_split_size):
    """What operators take of it."""
    packed = cu_seqlens is not None
    of_table = ("batch", "most pages") if indptr is None else ("entries of all, with indptr",)
    for name, tensor, axes in (("block_table", block_table, of_table),
                               ("indptr", indptr, ("batch + 1",)), ("lengths", lengths, ("batch",)),
                               ("cu_seqlens", cu_seqlens, ("batch + 1",)),
                               ("plan", plan, ("batch + 1",))):
        if tensor is not None:
            check_numbers(name, tensor, axes, q)
    batch = lengths.shape[0]
    if indptr is None:
        check_size("block_table", block_table, 0, "batch", batch, "lengths")
    for name, tensor in (("indptr", indptr), ("plan", plan), ("cu_seqlens", cu_seqlens)):
        if tensor is not None:
            check_size(name, tensor, 0, "length", batch + 1, "lengths, and one more,")
    if not packed:
        check_size("q", q, 0, "batch", batch, "lengths")
    check_integer("fixed_split_size", fixed_split_size, "set it to a multiple of 64, or to 0")
    return cu_seqlens, lengths, block_table, indptr


def _attend(name, q, cache, dim_v, table, masked, rest, return_lse, settings):
    """`settings`: what later calls of this kind are known by, if they are."""
    own = (dim_v,) if name == "attention_paged_mla" else ()
    results = getattr(torch.ops.tilewright, name).default(q, *cache, *own, *table, *masked, *rest)
    if settings is None or is_compiling():
        return _answer(results, return_lse)
    if q.flatten(0, 1).data_ptr() == q.data_ptr():  # nothing is copied
        _, lengths, block_table, _ = table
        _, plan, _ = rest
        scales = (None,) * 2 if name == "attention_paged" else ()
        _direct.remember(settings, (q, lengths, block_table, plan, *cache, *scales),
                         lambda: _Direct(name, q, cache, dim_v, table, masked, rest))
    return _answer(results, return_lse)


def like_an_earlier(q, k, v, block_table, lengths, return_lse, *, causal, window, softcap, scale):
    """attention_paged of these, where it was called like that before; else None."""
    if is_compiling():
        return None
    results = _direct.call(_settings(causal, window, softcap, scale), return_lse, q, lengths,
                           block_table, None, k, v, None, None)
    return None if results is None else _answer(results, return_lse)


def _settings(causal, window, softcap, scale, fixed_split_size=0, target=None):
    return "attention_paged", causal, window, softcap, scale, fixed_split_size, target


def _answer(results, return_lse):
    out, lse = results
    return (out, lse.transpose(-1, -2)) if return_lse else out


class _Direct(_direct.Direct):
    """Of as many queries in each sequence."""

    def __init__(self, name, q, cache, dim_v, table, masked, rest):
        fixed_split_size, plan, target = rest
        self._room = cache[0].shape[:2]
        settings, options, tensors, (out, lse) = _prepared(
            q, cache, dim_v, *table, *masked, fixed_split_size, plan)
        offsets = _kept_offsets(_direct.stream_of(q), q.device, *q.shape[:2])
        # Of q, lengths, block_table, plan, k, v, k_scale and v_scale, or kv in place of the four.
        order = (0, 5 if name == "attention_paged_mla" else 8, 1, 2, *range(4, 4 + len(cache)),
                 _direct.OUT, _direct.LSE, *(() if plan is None else (3,)))
        super().__init__(name, settings, lambda: options, target, tensors, order, out, lse,
                         (offsets,))

    def check(self, q, lengths, block_table, *_):
        """Of the host, where they can be read."""
        if q.is_cuda:
            return True
        try:
            _require_pages(block_table, None, lengths, *self._room)
        except TilewrightError:
            return False  # the call itself says what is wrong
        return True


def _kept_offsets(stream, device, batch, queries):
    """Those of as many queries in each sequence. They stay, since CUDA graphs read them, and are a
    stream's own, since no other one waits for what it writes."""
    key = stream, device, batch, queries
    if key not in _offsets:
        if len(_offsets) >= _MOST_OFFSETS:
            raise _direct.Elsewhere
        _offsets[key] = _even_offsets(device, batch, queries)
    return _offsets[key]


def _even_offsets(device, batch, queries):
    return torch.arange(batch + 1, dtype=torch.int32, device=device) * queries


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
    if tensor.dim() != len(axes):
        refuse(f"{name} has {axes_text(tensor)}", f"pass {{{', '.join(axes)}}}")
    if tensor.device != q.device:
        refuse(f"{name} is on {tensor.device}, and q on {q.device}", f"move {name} to {q.device}")


def _empty_results(q, k, v, *_):
    return _empty(q, v.shape[-1])


def _empty_latent_results(q, kv, dim_v, *_):
    return _empty(q, dim_v)


def _empty(q, dim_v):
    return q.new_empty((*q.shape[:-1], dim_v)), q.new_empty(q.shape[:-1], dtype=torch.float32)


def _forward(q, k, v, *rest):
    return _run_paged("attention_paged", q, (k, v), v.shape[-1], *rest)


def _forward_fp8(q, k, v, k_scale, v_scale, *rest):
    return _run_paged("attention_paged_fp8", q, (k, v, k_scale, v_scale), v.shape[-1], *rest)


def _forward_mla(q, kv, dim_v, *rest):
    return _run_paged("attention_paged_mla", q, (kv,), dim_v, *rest)


def _run_paged(name, q, cache, dim_v, cu_seqlens, lengths, block_table, indptr, *rest):
    if not q.is_cuda:
        if cu_seqlens is not None:
            require_offsets("cu_seqlens", cu_seqlens, q.shape[0], 0)
        _require_pages(block_table, indptr, lengths, *cache[0].shape[:2])
    *rest, target = rest
    settings, options, tensors, results = _prepared(q, cache, dim_v, cu_seqlens, lengths,
                                                    block_table, indptr, *rest)
    run(name, settings, lambda: options, target, tensors)
    return results


def _prepared(q, cache, dim_v, cu_seqlens, lengths, block_table, indptr, sinks, causal, window,
              scale, softcap, fixed_split_size, plan):
    """What a run depends on besides its tensors, the kernel's options, its tensors, and of those
    the results."""
    out, lse = results = _empty(q, dim_v)
    if cu_seqlens is None:
        cu_seqlens = _even_offsets(q.device, *q.shape[:2])
        q, out, lse = (tensor.flatten(0, 1) for tensor in (q, out, lse))
    else:
        out.zero_()  # queries of no sequence are not written
        lse.fill_(-torch.inf)
    table = (block_table,) if indptr is None else (indptr, block_table)
    tensors = [*(readable(tensor) for tensor in (q, cu_seqlens, lengths, *table, *cache)), out, lse,
               *(readable(tensor) for tensor in (sinks, plan) if tensor is not None)]
    masked = (causal, window, scale, softcap)
    options = {"heads": q.shape[1], "dim": q.shape[2], "dim_v": dim_v, "dtype": DTYPES[q.dtype],
               "causal": causal, "window": window, "scale": scale, "softcap": softcap,
               "sinks": sinks is not None, "page": cache[0].shape[1], "csr": indptr is not None,
               "fixed_split_size": fixed_split_size, "planned": plan is not None}
    if cache[0].dim() == 4:
        options["kv_heads"] = cache[0].shape[2]
    if len(cache) == 4:
        options["scales"] = cache[2].numel()
    return (*masked, fixed_split_size, dim_v), options, tensors, results


def _require_pages(table, indptr, lengths, pages, page):
    """Whether each sequence has pages for its keys. Of the host, where that can be read."""
    if indptr is not None:
        require_offsets("indptr", indptr, table.shape[0], 0)
        table = torch.nn.utils.rnn.pad_sequence(
            [table[begin:end] for begin, end in zip(indptr, indptr[1:])], batch_first=True)
        rooms = indptr.diff() * page
    else:
        rooms = torch.full_like(lengths, table.shape[1] * page)
    wrong = (lengths < 0) | (lengths > rooms)
    if wrong.any():
        refuse(f"lengths has {lengths[wrong][0].item()}, and block_table has room for "
               f"{rooms[wrong][0].item()} keys", "let lengths be from 0 to that")
    places = torch.arange(table.shape[1]) * page
    numbers = table[places < lengths[:, None]]
    wrong = (numbers < -1) | (numbers >= pages)
    if wrong.any():
        refuse(f"block_table has {numbers[wrong][0].item()}, and there are {pages} pages",
               f"let pages be from 0 to {pages - 1}, or -1 for none")


def _refuse_gradients(ctx, *_):
    refuse("attention_paged has no gradients, and one of q, k and v wants them",
           "call it under torch.no_grad(), or train with attention")


_REST = ("Tensor? cu_seqlens, Tensor lengths, Tensor block_table, Tensor? indptr, "
         "Tensor? sinks, bool causal, "
         "SymInt window, float scale, float softcap, SymInt fixed_split_size, "
         "Tensor? plan, str target) -> (Tensor out, Tensor lse)")
for _schema, _implementation, _fake, _tensors in (
        ("attention_paged(Tensor q, Tensor k, Tensor v, ", _forward, _empty_results, 3),
        ("attention_paged_fp8(Tensor q, Tensor k, Tensor v, Tensor k_scale, Tensor v_scale, ",
         _forward_fp8, _empty_results, 3),
        ("attention_paged_mla(Tensor q, Tensor kv, SymInt dim_v, ", _forward_mla,
         _empty_latent_results, 2)):
    differentiate(define(_schema + _REST, _implementation, _fake), _tensors, lambda *_: None,
                  _refuse_gradients)


def attention_paged_plan(lengths, *, heads, kv_heads, queries=1, cu_seqlens=None, window=None,
                         fixed_split_size=0, latent=False, target=None):
    """How `attention_paged` of these lengths divides keys: made once, for any number of layers. It
    is computed on the GPU, and nothing waits for the host.

    heads, kv_heads  of q, and of k and v
    queries     of each sequence; or cu_seqlens i32 {batch + 1}, where they are packed
    window, fixed_split_size  as attention_paged has them
    latent      of attention_paged_mla; kv_heads is 1

    By a plan of other lengths results are right too, in parts that are less alike. With
    fixed_split_size they depend on the lengths of the plan.
    """
    if not isinstance(lengths, torch.Tensor):
        refuse(f"lengths is of {type(lengths).__name__}", "pass a tensor of torch.int32")
    for name, tensor, axis in (("lengths", lengths, "batch"),
                               ("cu_seqlens", cu_seqlens, "batch + 1")):
        if tensor is not None:
            check_numbers(name, tensor, (axis,), lengths)
    if is_readable(lengths) and (lengths < 0).any():
        refuse(f"lengths has {lengths.min().item()}", "let lengths be at least 0")
    if window is not None:
        fix = "give the last keys that a query sees, at least 1, or None for all of them"
        check_integer("window", window, fix)
        if window < 1:
            refuse(f"window is {window}", fix)
    batch = lengths.shape[0]
    if cu_seqlens is None:
        cu_seqlens = torch.arange(batch + 1, dtype=torch.int32, device=lengths.device) * queries
    check_size("cu_seqlens", cu_seqlens, 0, "length", batch + 1, "lengths, and one more,")
    return torch.ops.tilewright.attention_paged_plan.default(
        cu_seqlens, lengths, heads, kv_heads, window or 0, fixed_split_size, bool(latent),
        checked_target(target))


def _plan(cu_seqlens_q, lengths, heads, kv_heads, window, fixed_split_size, latent, target):
    plan = torch.empty_like(cu_seqlens_q)
    options = {"heads": heads, "kv_heads": kv_heads, "window": window,
               "fixed_split_size": fixed_split_size, "latent": latent}
    if lengths.is_cuda:
        options["multiprocessors"] = _multiprocessors(lengths.get_device())
    run("attention_paged_plan", tuple(options.values()), lambda: options, target,
        [readable(cu_seqlens_q), readable(lengths), plan])
    return plan


@functools.lru_cache(None)
def _multiprocessors(device):
    return torch.cuda.get_device_properties(device).multi_processor_count


define("attention_paged_plan(Tensor cu_seqlens_q, Tensor lengths, SymInt heads, SymInt kv_heads, "
       "SymInt window, SymInt fixed_split_size, bool latent, str target) -> Tensor", _plan,
       lambda cu_seqlens_q, *_: torch.empty_like(cu_seqlens_q))


def append(cache, new, lengths, block_table):
    """Writes {batch, length, heads, dim} behind so many rows of each sequence of the cache."""
    rows = lengths[:, None] + torch.arange(new.shape[1], device=new.device)
    room = block_table.shape[1] * cache.shape[1]
    if is_readable(rows) and (rows >= room).any():
        refuse(f"k has {new.shape[1]} rows behind {lengths.max().item()}, and the cache has room "
               f"for {room}", "make the cache longer")
    pages = block_table.gather(1, (rows // cache.shape[1]).long())
    if is_readable(pages) and (pages < 0).any():
        refuse("the table of the pages is -1 where k belongs", "give those rows a page")
    # A GPU's own check of indices refuses this one, where -1 would be the last page.
    pages = torch.where(pages < 0, cache.shape[0], pages)
    cache.index_put_((pages, rows % cache.shape[1]), new)

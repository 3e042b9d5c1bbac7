"""Appending to a cache in pages: an operator that writes the cache in place."""

import torch

from ._checks import (
    DTYPES,
    check_alike,
    check_size,
    check_tensor,
    checked_target,
    refuse,
    sizes_text,
)
from ._paged import check_numbers, check_scale_of_heads
from ._run import define, is_usable, readable, run

_FP8 = torch.float8_e4m3fn
_ROWS = ("tokens", "kv_heads", "dim")
_PAGES = ("pages", "page", "kv_heads", "dim")
_LATENT_ROWS = ("tokens", "dim")
_LATENT_PAGES = ("pages", "page", "dim")


def kv_append(k, v, k_cache, v_cache, sequences, positions, block_table, *, cos_sin=None,
              k_scale=None, v_scale=None, target=None):
    """Writes keys and values of new tokens {tokens, kv_heads, dim} into a cache in pages {pages,
    page, kv_heads, dim}, as attention_paged reads it. Nothing waits for the GPU.

    sequences, positions  i32 {tokens}: token t is key positions[t] of sequence sequences[t].
                A token of a negative position is left out
    block_table i32 {batch, most pages}, as attention_paged takes it. Where it is -1 a token is
                left out
    cos_sin     f32 {positions, rotary dim}: cosines, then sines, of each position's angles, by
                which the first elements of keys are rotated
    k_scale, v_scale  f32 {kv_heads}: the cache is of torch.float8_e4m3fn, and holds what stands
                for the rows by these scales
    """
    for name, tensor, axes in (("k", k, _ROWS), ("v", v, _ROWS)):
        check_tensor(name, tensor, axes)
    check_alike("k", k, "v", v)
    for name, cache, other, new in (("k_cache", k_cache, "k", k), ("v_cache", v_cache, "v", v)):
        _check_cache(name, cache, other, new)
    check_alike("k_cache", k_cache, "v_cache", v_cache)
    for axis, what in ((0, "number of pages"), (1, "page")):
        check_size("v_cache", v_cache, axis, what, k_cache.shape[axis], "k_cache")
    check_size("v", v, 0, "number of tokens", k.shape[0], "k")
    _check_places(sequences, positions, block_table, "k", k)
    scales = [check_scale_of_heads(name, scale, k, k_cache, "k_cache")
              for name, scale in (("k_scale", k_scale), ("v_scale", v_scale))]
    scales = [scale if scale is None else scale.expand(k.shape[1]) for scale in scales]
    _check_rotary(cos_sin, "k", k)
    _refuse_gradients("kv_append", k=k, v=v, k_cache=k_cache, v_cache=v_cache, cos_sin=cos_sin)
    torch.ops.tilewright.kv_append.default(k, v, sequences, positions, block_table, k_cache,
                                           v_cache, cos_sin, *scales, checked_target(target))


def kv_append_mla(kv, kv_cache, sequences, positions, block_table, *, cos_sin=None, target=None):
    """Writes latent rows of new tokens {tokens, dim} into a cache in pages {pages, page, dim}, as
    attention_paged_mla reads it. Nothing waits for the GPU.

    sequences, positions, block_table  as kv_append takes them
    cos_sin     f32 {positions, rotary dim}: cosines, then sines, of each position's angles, by
                which the last elements of a row are rotated
    """
    check_tensor("kv", kv, _LATENT_ROWS)
    check_tensor("kv_cache", kv_cache, _LATENT_PAGES)
    check_alike("kv_cache", kv_cache, "kv", kv)
    check_size("kv_cache", kv_cache, 2, "dim", kv.shape[1], "kv")
    _check_in_place("kv_cache", kv_cache)
    _check_places(sequences, positions, block_table, "kv", kv)
    _check_rotary(cos_sin, "kv", kv)
    _refuse_gradients("kv_append_mla", kv=kv, kv_cache=kv_cache, cos_sin=cos_sin)
    torch.ops.tilewright.kv_append_mla.default(kv, sequences, positions, block_table, kv_cache,
                                               cos_sin, checked_target(target))


def _check_places(sequences, positions, block_table, of, rows):
    for name, tensor, axes in (("sequences", sequences, ("tokens",)),
                               ("positions", positions, ("tokens",)),
                               ("block_table", block_table, ("batch", "most pages"))):
        check_numbers(name, tensor, axes, rows)
    for name, tensor in (("sequences", sequences), ("positions", positions)):
        check_size(name, tensor, 0, "number of tokens", rows.shape[0], of)


def _refuse_gradients(operation, **tensors):
    """Autograd would not know what a cache is made of."""
    if not torch.is_grad_enabled():
        return
    for name, tensor in tensors.items():
        if tensor is not None and tensor.requires_grad:
            refuse(f"{operation} has no gradients, and {name} requires one",
                   f"call it under torch.no_grad(), or detach {name}")


def _check_rotary(cos_sin, of, rows):
    if cos_sin is None:
        return
    check_tensor("cos_sin", cos_sin, ("positions", "rotary dim"))
    if cos_sin.dtype != torch.float32 or cos_sin.device != rows.device:
        refuse(f"cos_sin is of {cos_sin.dtype} on {cos_sin.device}, and {of} is on {rows.device}",
               f"pass torch.float32 on {rows.device}")
    if cos_sin.shape[1] % 2 != 0 or not 0 < cos_sin.shape[1] <= rows.shape[-1]:
        refuse(f"cos_sin is {sizes_text(cos_sin)}, and {of} has rows of {rows.shape[-1]}",
               f"pass an even number of columns, no more than {of} has")


def _check_cache(name, cache, other, new):
    check_tensor(name, cache, _PAGES, more_dtypes=(_FP8,))
    if cache.dtype != _FP8:
        check_alike(name, cache, other, new)
    if cache.device != new.device:
        refuse(f"{name} is on {cache.device}, and {other} on {new.device}",
               f"move {name} to {new.device}")
    check_size(name, cache, 2, "number of heads", new.shape[1], other)
    check_size(name, cache, 3, "dim", new.shape[2], other)
    _check_in_place(name, cache)


def _check_in_place(name, cache):
    if not is_usable(cache):
        refuse(f"{name} has the strides {tuple(cache.stride())}, and is written in place",
               "pass a cache whose last axis lies side by side, and whose rows begin at multiples "
               "of 16 bytes on a GPU")


def _append(k, v, sequences, positions, block_table, k_cache, v_cache, cos_sin, k_scale, v_scale,
            target):
    if k.shape[0] == 0:
        return
    if not k.is_cuda:
        _require_places(sequences, positions, block_table, k_cache, cos_sin)
    more = [tensor for tensor in (cos_sin, k_scale, v_scale) if tensor is not None]
    tensors = [readable(tensor) for tensor in (k, v, sequences, positions, block_table, *more)]
    rotary = 0 if cos_sin is None else cos_sin.shape[1]
    run("kv_append" if k_scale is None else "kv_append_fp8", (rotary,),
        lambda: {"kv_heads": k.shape[1], "dim_v": v.shape[2], **_options(k, k_cache, rotary)},
        target, [*tensors, k_cache, v_cache])


def _append_mla(kv, sequences, positions, block_table, kv_cache, cos_sin, target):
    if kv.shape[0] == 0:
        return
    if not kv.is_cuda:
        _require_places(sequences, positions, block_table, kv_cache, cos_sin)
    tensors = [readable(tensor) for tensor in (kv, sequences, positions, block_table, cos_sin)
               if tensor is not None]
    rotary = 0 if cos_sin is None else cos_sin.shape[1]
    run("kv_append_mla", (rotary,), lambda: _options(kv, kv_cache, rotary), target,
        [*tensors, kv_cache])


def _options(rows, cache, rotary):
    return {"dim": rows.shape[-1], "page": cache.shape[1], "dtype": DTYPES[rows.dtype],
            "rotary": rotary > 0, **({"rotary_dim": rotary} if rotary else {})}


def _require_places(sequences, positions, table, cache, cos_sin):
    """Of the host, where they can be read."""
    there = positions >= 0
    batch, room = table.shape[0], table.shape[1] * cache.shape[1]
    most = room if cos_sin is None else min(room, cos_sin.shape[0])
    for name, tensor, count in (("sequences", sequences, batch), ("positions", positions, most)):
        wrong = there & ((tensor < 0) | (tensor >= count))
        if wrong.any():
            refuse(f"{name} has {tensor[wrong][0].item()}, of {count}",
                   f"let them be from 0 to {count - 1}; a negative position leaves a token out")
    pages = table[sequences[there].long(), positions[there].long() // cache.shape[1]]
    wrong = (pages < -1) | (pages >= cache.shape[0])
    if wrong.any():
        refuse(f"block_table has {pages[wrong][0].item()}, and there are {cache.shape[0]} pages",
               f"let pages be from 0 to {cache.shape[0] - 1}, or -1 for none")
    slots = (pages.long() * cache.shape[1] + positions[there] % cache.shape[1])[pages >= 0]
    found, counts = slots.unique(return_counts=True)
    if found.numel() < slots.numel():
        page, slot = divmod(found[counts > 1][0].item(), cache.shape[1])
        refuse(f"{counts.max().item()} tokens have slot {slot} of page {page}",
               "let sequences and positions name each slot once: which token it keeps is open")


define("kv_append(Tensor k, Tensor v, Tensor sequences, Tensor positions, Tensor block_table, "
       "Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor? cos_sin, Tensor? k_scale, "
       "Tensor? v_scale, str target) -> ()", _append, lambda *_: None)
define("kv_append_mla(Tensor kv, Tensor sequences, Tensor positions, Tensor block_table, "
       "Tensor(a!) kv_cache, Tensor? cos_sin, str target) -> ()", _append_mla, lambda *_: None)

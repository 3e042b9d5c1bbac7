"""Padded batches as packed sequences, and back. Nothing is read from a GPU, and nothing waits for
one: how many tokens there are, only the tensors know."""

import torch

from ._checks import axes_text, check_integer, check_is_tensor, is_readable, refuse, sizes_text


def cu_seqlens(lengths_or_mask):
    """Where packed sequences begin, and their end: int32 {batch + 1}, from the integers `lengths`
    {batch}, or from a mask {batch, length} that is true, or not 0, where a token is."""
    check_is_tensor("lengths", lengths_or_mask)
    lengths = _as_mask(lengths_or_mask).sum(1) if lengths_or_mask.dim() == 2 else lengths_or_mask
    if lengths.dim() != 1 or lengths.is_floating_point() or lengths.dtype == torch.bool:
        refuse(f"lengths is {sizes_text(lengths)} of {lengths.dtype}",
               "pass integers {batch}, or a mask {batch, length}")
    _check_lengths(lengths)
    return torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))


def unpad(x, mask, *, total=None):
    """The tokens of x {batch, length, ...} one behind the other, for attention(..., cu_seqlens=).

    mask   {batch, length}, true or not 0 where a token is, or the integers {batch} of how many
           each sequence has from its left
    total  how many rows the result has; without it as many as there are tokens where the host knows
           that, else batch * length. Rows behind the last token are 0

    Returns {total, ...}, the places int64 {total} that its rows have in the batch, batch * length
    for rows without a token, and cu_seqlens int32 {batch + 1}. Has gradients.
    """
    check_is_tensor("x", x)
    check_is_tensor("mask", mask)
    if x.dim() < 2:
        refuse(f"x has {axes_text(x)}: {sizes_text(x)}", "pass x as {batch, length, ...}")
    batch, length = x.shape[:2]
    mask = _mask_of(mask, batch, length)
    if mask.device != x.device:
        refuse(f"mask is on {mask.device}, and x on {x.device}", f"move mask to {x.device}")
    places = places_of(mask, total)
    return rows_at(x.flatten(0, 1), places), places, cu_seqlens(mask)


def pad(packed, places, batch, length):
    """The batch {batch, length, ...} of tokens that unpad() has packed; 0 where no token is. Has
    gradients."""
    check_is_tensor("packed", packed)
    check_is_tensor("places", places)
    check_integer("batch", batch, "pass the number of sequences")
    check_integer("length", length, "pass the length of the padded sequences")
    if places.dim() != 1 or places.shape[0] != packed.shape[0]:
        refuse(f"places is {sizes_text(places)}, and packed has {packed.shape[0]} rows",
               "pass what unpad() has returned")
    if is_readable(places):
        wrong = (places < 0) | (places > batch * length)
        if wrong.any():
            refuse(f"places has {places[wrong][0].item()}, and the batch has {batch * length}",
                   f"let them be from 0 to {batch * length}, which is for rows without a token")
    padded = rows_at(packed, _inverse(places, batch * length))
    return padded.unflatten(0, (batch, length))


def places_of(mask, total=None):
    """Of packed rows, as unpad() says."""
    mask = mask.flatten()
    if total is None and is_readable(mask):
        total = int(mask.sum())
    rows = mask.shape[0]
    if total is not None:
        check_integer("total", total, "pass a number of rows, or None")
    total = rows if total is None else total
    if is_readable(mask) and mask.sum() > total:
        refuse(f"total is {total}, and mask has {int(mask.sum())} tokens",
               "set total to at least as many")
    # Tokens come first, in their order.
    order = torch.argsort(mask.to(torch.int8), descending=True, stable=True)[:total]
    there = torch.arange(order.shape[0], device=mask.device) < mask.sum()
    places = torch.where(there, order, rows)
    return torch.nn.functional.pad(places, (0, total - places.shape[0]), value=rows)


def rows_at(x, places):
    """The rows of x {rows, ...} at these places, and zeros for the place `rows`."""
    rows = x.shape[0]
    if rows == 0:
        return x.new_zeros((places.shape[0], *x.shape[1:]))
    taken = x.index_select(0, places.clamp(max=rows - 1))
    is_missing = (places == rows).view(-1, *(1,) * (x.dim() - 1))
    return taken.masked_fill(is_missing, 0)


def _inverse(places, rows):
    """Of each of so many places which row is there, as many as there are for none."""
    count = places.shape[0]
    inverse = torch.full((rows + 1,), count, dtype=torch.int64, device=places.device)
    numbers = torch.arange(count, device=places.device)
    return inverse.scatter(0, places, numbers)[:rows]


def _check_lengths(lengths, most=None):
    """Of the host, where they can be read without waiting."""
    if not is_readable(lengths):
        return
    wrong = lengths < 0
    if most is not None:
        wrong |= lengths > most
    if wrong.any():
        refuse(f"a length is {lengths[wrong][0].item()}",
               "let lengths be at least 0" + ("" if most is None else f" and at most {most}"))


def _as_mask(mask):
    return mask if mask.dtype == torch.bool else mask != 0


def _mask_of(mask, batch, length):
    """{batch, length} of bool."""
    if mask.dim() == 1 and mask.shape[0] == batch and not mask.is_floating_point():
        _check_lengths(mask, length)
        return torch.arange(length, device=mask.device) < mask[:, None]
    if mask.shape != (batch, length):
        refuse(f"mask is {sizes_text(mask)}, and x has {batch} sequences of {length}",
               f"pass {{{batch}, {length}}}, or the integers {{{batch}}}")
    return _as_mask(mask)

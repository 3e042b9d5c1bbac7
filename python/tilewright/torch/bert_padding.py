"""The names of flash_attn.bert_padding, in its order and with its meanings:

    from tilewright.torch.bert_padding import pad_input, unpad_input

On a GPU nothing waits to count the tokens. There unpad_input gives batch * length rows, of which
those behind the last token are 0, have the index batch * length and belong to no sequence, and the
length of the batch as max_seqlen_in_batch.
"""

import torch

from ._checks import check_is_tensor, is_readable, refuse, sizes_text
from ._packing import cu_seqlens, pad, places_of, rows_at

__all__ = ["index_first_axis", "index_put_first_axis", "pad_input", "unpad_input"]


def unpad_input(hidden_states, attention_mask, unused_mask=None):
    """hidden_states {batch, length, ...} and attention_mask {batch, length}: the packed rows, their
    indices, cu_seqlens, the longest length, and how many tokens of each sequence are used.
    Tokens of unused_mask are packed as well, and count as not used."""
    check_is_tensor("hidden_states", hidden_states)
    check_is_tensor("attention_mask", attention_mask)
    packed_mask = attention_mask != 0
    used = packed_mask.sum(1, dtype=torch.int32)
    if unused_mask is not None:
        packed_mask = packed_mask | (unused_mask != 0)
    if packed_mask.shape != hidden_states.shape[:2]:
        refuse(f"attention_mask is {sizes_text(attention_mask)}, and hidden_states "
               f"{sizes_text(hidden_states)}", "pass a mask {batch, length}")
    indices, offsets = places_of(packed_mask), cu_seqlens(packed_mask)
    longest = packed_mask.shape[1]
    if is_readable(packed_mask):
        longest = int(offsets.diff().max())
    return rows_at(hidden_states.flatten(0, 1), indices), indices, offsets, longest, used


def pad_input(hidden_states, indices, batch, seqlen):
    """The batch {batch, seqlen, ...} of packed rows; 0 where there is none."""
    return pad(hidden_states, indices, batch, seqlen)


def index_first_axis(input, indices):
    """The rows of `input` at `indices`; zeros for an index of as many as there are."""
    return rows_at(input, indices)


def index_put_first_axis(values, indices, first_axis_dim):
    """{first_axis_dim, ...} with these rows at `indices`, and zeros elsewhere."""
    return pad(values, indices, 1, first_axis_dim)[0]

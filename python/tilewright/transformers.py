"""Tilewright's attention for the models of Hugging Face's transformers:

    tilewright.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="tilewright")

A batch with padding is taken as packed sequences, on the left, on the right or on both sides, with
nothing moved. A row of padding sees no key, so that it is 0. On the left it is that by `sdpa` too,
where the loss of the first token reads the row before it. Masks that are more than causal, a
sliding window, or padding run by PyTorch's own attention, as `sdpa`.
"""

import inspect

import torch
import transformers
from transformers import AttentionInterface, AttentionMaskInterface
from transformers import masking_utils as masks
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from .torch import attention
from .torch._checks import refuse

NAME = "tilewright"


def register(name=NAME):
    """Makes `attn_implementation=name` known, with the masks that belong to it."""
    if "q_length" not in inspect.signature(masks.sdpa_mask).parameters:
        refuse(f"transformers is {transformers.__version__}, whose masks are made otherwise",
               "take transformers 5")
    AttentionInterface.register(name, attention_forward)
    AttentionMaskInterface.register(name, attention_mask)


def attention_forward(module, query, key, value, attention_mask, scaling=None, dropout=0.0,
                      is_causal=None, sliding_window=None, softcap=None, s_aux=None, **others):
    """Of {batch, heads, length, dim}; the result is {batch, length, heads, dim}."""
    if others.get("position_bias") is not None or _is_whole_mask(attention_mask):
        return _by_pytorch(module, query, key, value, attention_mask, scaling=scaling,
                           dropout=dropout, is_causal=is_causal, softcap=softcap, s_aux=s_aux,
                           **others)
    if dropout:
        refuse(f"dropout is {dropout}, and 0 alone can be done",
               "set attention_dropout=0 in the model's configuration")
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    options = {"causal": causal, "window": sliding_window if causal else None, "scale": scaling,
               "softcap": softcap or 0.0, "sinks": s_aux}
    q, k, v = (tensor.transpose(1, 2) for tensor in (query, key, value))
    if attention_mask is None:
        return attention(q, k, v, **options), None
    out = attention(*(tensor.flatten(0, 1) for tensor in (q, k, v)),
                    cu_seqlens=attention_mask[0, 0].unbind(0), **options)
    return out.unflatten(0, q.shape[:2]), None


def _is_whole_mask(mask):
    """Whether it is one of each query and key, and not ours: those are bool or of floats."""
    return mask is not None and mask.dtype != torch.int32


def _by_pytorch(module, *tensors, softcap, s_aux, **others):
    for name, value in (("softcap", softcap), ("s_aux", s_aux)):
        if value is not None:
            refuse(f"{name} is set, and the mask is more than causal, a window or padding",
                   "leave the mask out, or take attn_implementation='eager'")
    return sdpa_attention_forward(module, *tensors, **others)


def attention_mask(batch_size, q_length, kv_length, q_offset=0, kv_offset=0,
                   mask_function=masks.causal_mask_function, attention_mask=None, local_size=None,
                   **others):
    """None where nothing is padded; where the sequences and their padding begin, i32 of queries and
    of keys, {1, 1, 2, 5 batch + 1}; or PyTorch's mask, of what neither says. What has four axes is
    taken for a finished mask where transformers make masks of masks, as for a static cache."""
    kind = _kind_of(mask_function, local_size)
    # So that the last query sees the last key. A static cache has keys that are not there yet.
    ends_alike = (not isinstance(q_offset, torch.Tensor) and
                  q_offset + q_length == kv_offset + kv_length)
    padding = None
    if attention_mask is not None:
        padding = attention_mask[:, kv_offset:kv_offset + kv_length].bool()
        if padding.all():
            padding = None
    is_ours = (kind == "full" or (kind is not None and ends_alike)) and (
        padding is None or (ends_alike and padding.shape[1] == kv_length and _is_one_run(padding)))
    if not is_ours:
        return masks.sdpa_mask(
            batch_size, q_length, kv_length, q_offset, kv_offset, mask_function, attention_mask,
            **{**others, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False})
    return None if padding is None else _offsets(padding, q_length)


def _kind_of(mask_function, local_size):
    if _is_same(mask_function, masks.bidirectional_mask_function):
        return "full"
    if _is_same(mask_function, masks.causal_mask_function):
        return "causal"
    if local_size and _is_same(mask_function,
                               masks.sliding_window_causal_mask_function(local_size)):
        return "window"
    return None


def _is_same(one, other):
    """Of functions that are made by functions: code and what it was made of."""
    if not callable(one) or not callable(other):
        return isinstance(one, int) and one == other
    parts = [[_parts(cell.cell_contents) for cell in function.__closure__ or ()]
             for function in (one, other)]
    flat = [sum(lists, []) for lists in parts]
    return one.__code__ is other.__code__ and len(flat[0]) == len(flat[1]) and all(
        map(_is_same, *flat))


def _parts(content):
    return list(content) if isinstance(content, tuple) else [content]


def _is_one_run(padding):
    """Whether what is no padding stands together in each sequence."""
    begins = padding[:, 1:] & ~padding[:, :-1]
    return bool((begins.sum(1) + padding[:, 0] <= 1).all())


def _offsets(padding, q_length):
    """Each sequence of the batch is five of packed rows: queries of padding without keys, their
    keys without queries, its own rows, and the same two of padding behind them."""
    batch, kv_length = padding.shape
    begin = padding.int().argmax(1)
    zero, end = torch.zeros_like(begin), begin + padding.sum(1)
    whole = torch.full_like(begin, kv_length)

    def of_rows(length, *edges):
        first = torch.arange(batch, device=padding.device)[:, None] * length
        starts = first + (torch.stack(edges, 1) - (kv_length - length)).clamp(min=0)
        return torch.cat([starts.flatten(), first.new_full((1,), batch * length)])

    return torch.stack([of_rows(q_length, zero, begin, begin, end, whole),
                        of_rows(kv_length, zero, zero, begin, end, end)])[None, None].int()

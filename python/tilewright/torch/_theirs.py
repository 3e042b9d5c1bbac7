"""What other packages' arguments mean here."""

import torch

from ._checks import check_integer, refuse, short


def require(name, value, wanted, fix):
    """Whether an argument that we cannot honour is what it is where nobody sets it."""
    if value is not wanted and value != wanted:
        refuse(f"{name} is {short(value)}, and {wanted} alone can be done", fix)


def require_unset(**arguments):
    """The same of arguments that are None where nobody sets them."""
    for name, value in arguments.items():
        if value is not None:
            refuse(f"{name} is {short(value)}, and it cannot be honoured",
                   f"leave {name} out, or call the package that has it")


def without_dropout(dropout_p):
    require("dropout_p", dropout_p, 0.0, "set dropout_p to 0")


def longest(max_seqlen_q, max_seqlen_k):
    for name, value in (("max_seqlen_q", max_seqlen_q), ("max_seqlen_k", max_seqlen_k)):
        check_integer(name, value, "set it to how long the longest sequence is, an int")
    return max_seqlen_q, max_seqlen_k


def visible_keys(causal, window_size):
    """The options of a window (left, right), as flash-attn has it: a query sees so many keys on
    both sides of its own, -1 for all, and under a causal mask none on the right."""
    fix = "pass (left, right): how many keys a query sees beside its own, -1 for all"
    if not isinstance(window_size, (tuple, list)) or len(window_size) != 2:
        refuse(f"window_size is {short(window_size)}", fix)
    for side in window_size:
        check_integer("window_size", side, fix)
    left, right = window_size
    if causal:
        right = 0
    if left < 0 and right < 0:
        return {"causal": False, "window": None}
    if right != 0:
        refuse(f"window_size is {tuple(window_size)}, and causal is {causal}",
               "set its right side to 0: windows are parts of a causal mask")
    return {"causal": True, "window": None if left < 0 else left + 1}


def parts(name, packed, axis, count):
    """What lies along this axis of a tensor."""
    if not isinstance(packed, torch.Tensor) or packed.dim() <= axis or packed.shape[axis] != count:
        refuse(f"{name} is {short(packed)}", f"pass a tensor with {count} along axis {axis}")
    return packed.unbind(axis)

"""Attention to parts of the keys, joined."""

import torch

from ._checks import DTYPES, check_alike, check_tensor, checked_target, refuse, sizes_text
from ._run import define, differentiate, readable, run


def merge_states(outs, lses, *, target=None):
    """`out` and `lse` of attention to all keys, from those of attention to parts of them: of a
    prefix that sequences share, and of what each has behind it. There are no gradients.

    outs, lses  of each part what `attention` and `attention_paged` give with return_lse=True: out
                {batch, queries, heads, dim} and lse {batch, heads, queries}, or packed
                {total queries, heads, dim} and {heads, total queries}. Lists of parts, or tensors
                with an axis of parts in front. Where lse is -inf a query has no keys in the part,
                and its out is not read
    """
    outs, lses = _stacked("outs", outs), _stacked("lses", lses)
    check_tensor("outs", outs, ("parts", "...", "queries", "heads", "dim"), target=target)
    check_tensor("lses", lses, ("parts", "...", "heads", "queries"), target=target)
    if lses.dtype != torch.float32:
        refuse(f"lses has elements of {lses.dtype}", "pass torch.float32, as attention gives it")
    if lses.device != outs.device:
        refuse(f"lses is on {lses.device}, and outs on {outs.device}", f"move it to {outs.device}")
    if outs.shape[0] == 0:
        refuse("outs has no parts", "give one or more")
    lses = lses.transpose(-1, -2)  # as rows lie in outs
    if lses.shape != outs.shape[:-1]:
        refuse(f"outs is {sizes_text(outs)}, and lses {sizes_text(lses.transpose(-1, -2))}",
               "pass out and lse of the same parts: {parts, batch, queries, heads, dim} and "
               "{parts, batch, heads, queries}")
    rows = outs.shape[1:-2]
    out, lse = torch.ops.tilewright.merge_states.default(
        outs.flatten(1, -3), lses.flatten(1, -2), checked_target(target))
    return out.unflatten(0, rows), lse.unflatten(0, rows).transpose(-1, -2)


def _stacked(name, parts):
    if not isinstance(parts, (list, tuple)):
        return parts
    if not parts or not all(isinstance(part, torch.Tensor) for part in parts):
        refuse(f"{name} has {len(parts)} parts of {sorted({type(p).__name__ for p in parts})}",
               "pass a list of one or more tensors")
    first = parts[0]
    for number, part in enumerate(parts[1:], 1):
        check_alike(f"{name}[0]", first, f"{name}[{number}]", part)
        if part.shape != first.shape:
            refuse(f"{name}[{number}] is {sizes_text(part)}, and {name}[0] {sizes_text(first)}",
                   "pass the same queries in each part")
    return torch.stack(tuple(parts))


def _merged(outs, lses, target):
    out, lse = _empty(outs, lses)
    run("merge_states", (), lambda: {"heads": outs.shape[2], "dim": outs.shape[3],
                                     "dtype": DTYPES[outs.dtype]},
        target, [readable(outs), readable(lses), out, lse])
    return out, lse


def _empty(outs, lses, *_):
    return outs.new_empty(outs.shape[1:]), lses.new_empty(lses.shape[1:])


def _refuse_gradients(ctx, *_):
    refuse("merge_states has no gradients, and outs or lses wants them",
           "call it under torch.no_grad(), or train with attention")


differentiate(define("merge_states(Tensor outs, Tensor lses, str target) "
                     "-> (Tensor out, Tensor lse)", _merged, _empty),
              2, lambda *_: None, _refuse_gradients)

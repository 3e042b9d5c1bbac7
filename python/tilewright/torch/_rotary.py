"""Rotary position embeddings, whose gradient turns back."""

import torch

from ._checks import (
    DTYPES,
    check_is_tensor,
    check_size,
    check_tensor,
    checked_target,
    f32_beside,
    refuse,
    require_numbers,
    sizes_text,
)
from ._run import define, differentiate, readable, run


def rotary(x, cos, sin, *, positions=None, interleaved=False, target=None):
    """x {batch, length, heads, dim}, or packed {total length, heads, dim}, with its pairs of
    elements turned by the angles of the tokens' positions. Computed in f32.

    cos, sin     {positions, half}: the first 2 half elements of a head are turned
    positions    int32 {batch, length} or {total length}: each token's row of cos and sin. Without
                 it a token's place is its position
    interleaved  pairs are neighbours; else element i belongs to i + half
    target       interpreter or sim:sm_90a, for tensors of the host
    """
    if isinstance(x, torch.Tensor) and x.dim() == 3:
        if positions is not None:
            check_is_tensor("positions", positions)
            positions = positions.unsqueeze(0)
        return rotary(x.unsqueeze(0), cos, sin, positions=positions, interleaved=interleaved,
                      target=target).squeeze(0)
    check_tensor("x", x, ("batch", "length", "heads", "dim"), target=target)
    for name, table in (("cos", cos), ("sin", sin)):
        check_tensor(name, table, ("positions", "half"), target=target)
        if table.device != x.device:
            refuse(f"{name} is on {table.device}, and x on {x.device}", f"move it to {x.device}")
        if table.requires_grad:
            refuse(f"{name} requires a gradient, which there is none of", f"detach {name}")
    check_size("sin", sin, 0, "positions", cos.shape[0], "cos")
    check_size("sin", sin, 1, "half", cos.shape[1], "cos")
    if not 0 < 2 * cos.shape[1] <= x.shape[-1]:
        refuse(f"cos is {sizes_text(cos)}, and the dim of x is {x.shape[-1]}",
               "pass angles for at most half of its elements: {positions, half}")
    if positions is None:
        if x.shape[1] > cos.shape[0]:
            refuse(f"x has {x.shape[1]} tokens, and cos has {cos.shape[0]} positions",
                   "pass cos and sin of as many, or positions")
    else:
        check_is_tensor("positions", positions)
    if positions is not None and (
            positions.dtype != torch.int32 or positions.shape != x.shape[:2]):
        refuse(f"positions is {sizes_text(positions)} of {positions.dtype}",
               f"pass torch.int32 {{{x.shape[0]}, {x.shape[1]}}}, a position for each token")
    cos, sin = cos.to(f32_beside(x)), sin.to(f32_beside(x))
    return torch.ops.tilewright.rotary.default(x, cos, sin, positions, interleaved, False,
                                               checked_target(target))


def _turned(x, cos, sin, positions, interleaved, inverse, target):
    y = x.new_empty(x.shape)
    tensors = [readable(x), readable(cos), readable(sin)]
    if positions is not None:
        require_numbers("positions", positions, cos.shape[0])
        tensors.append(readable(positions))
    has_positions = positions is not None
    run("rotary", (has_positions, interleaved, inverse),
        lambda: {"heads": x.shape[2], "dim": x.shape[3], "half": cos.shape[1],
                 "positions": has_positions, "interleaved": interleaved, "inverse": inverse,
                 "dtype": DTYPES[x.dtype]}, target, [*tensors, y])
    return y


def _keep(ctx, arguments, _):
    _, cos, sin, positions, ctx.interleaved, ctx.inverse, ctx.target = arguments
    ctx.save_for_backward(cos, sin, positions)


def _differentiate(ctx, d_y):
    d_x = torch.ops.tilewright.rotary.default(d_y, *ctx.saved_tensors, ctx.interleaved,
                                              not ctx.inverse, ctx.target)
    return d_x, None, None, None, None, None, None


differentiate(define("rotary(Tensor x, Tensor cos, Tensor sin, Tensor? positions, "
                     "bool interleaved, bool inverse, str target) -> Tensor", _turned,
                     lambda x, *_: x.new_empty(x.shape)), 1, _keep, _differentiate)

"""The product of two matrices, whose gradients are such products."""

import torch

from ._checks import DTYPES, check_alike, check_size, check_tensor, under_autocast
from ._run import define, differentiate, readable, run


def gemm(a, b, *, target=None):
    """a @ b with sums in f32: a {..., m, k} and b {k, n} of bf16, f16 or f32, the result of theirs.

    A kernel reads both along k. So `b` is best the transpose of a contiguous {n, k}, as in
    gemm(x, weight.t()); an operand that is contiguous along another axis is copied. `target` is
    interpreter or sim:sm_90a, for tensors of the host.
    """
    if isinstance(a, torch.Tensor) and a.dim() > 2:
        return gemm(a.flatten(0, -2), b, target=target).unflatten(0, a.shape[:-1])
    check_tensor("a", a, ("m", "k"))
    check_tensor("b", b, ("k", "n"))
    a, b = under_autocast(a, b)
    check_alike("a", a, "b", b)
    check_size("b", b, 0, "k", a.shape[1], "a")
    return torch.ops.tilewright.gemm.default(a, b, target or "")


def _empty_product(a, b, target):
    return a.new_empty(a.shape[0], b.shape[1])


def _product(a, b, target):
    c = _empty_product(a, b, target)
    run("gemm", (a.dtype,), lambda dtype: {"dtype": DTYPES[dtype]}, target,
        (readable(a), readable(b.t()), c))
    return c


def _keep(ctx, arguments, result):
    a, b, ctx.target = arguments
    # Each gradient needs the other operand alone.
    ctx.save_for_backward(a if ctx.needs_input_grad[1] else None,
                          b if ctx.needs_input_grad[0] else None)


def _differentiate(ctx, d_c):
    a, b = ctx.saved_tensors
    product = torch.ops.tilewright.gemm.default
    return (None if b is None else product(d_c, b.t(), ctx.target),
            None if a is None else product(a.t(), d_c, ctx.target), None)


differentiate(define("gemm(Tensor a, Tensor b, str target) -> Tensor", _product, _empty_product), 2,
              _keep, _differentiate)

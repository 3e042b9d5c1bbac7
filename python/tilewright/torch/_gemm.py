"""The product of two matrices, whose gradients are such products."""

import torch

from ._checks import DTYPES, check_alike, check_size, check_tensor, under_autocast
from ._run import LIBRARY, define, readable, run


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
    return torch.ops.tilewright.gemm(a, b, target=target or "")


def _fake_product(a, b, *, target):
    return a.new_empty(a.shape[0], b.shape[1])


def _product(a, b, *, target):
    c = _fake_product(a, b, target=target)
    run("gemm", {"dtype": DTYPES[a.dtype]}, target, [readable(a), readable(b.t()), c])
    return c


def _keep(ctx, inputs, keyword_only_inputs, output):
    a, b = inputs
    # Each gradient needs the other operand alone.
    ctx.save_for_backward(a if ctx.needs_input_grad[1] else None,
                          b if ctx.needs_input_grad[0] else None)
    ctx.target = keyword_only_inputs["target"]


def _differentiate(ctx, d_c):
    a, b = ctx.saved_tensors
    d_a = d_b = None
    if b is not None:
        d_a = torch.ops.tilewright.gemm(d_c, b.t(), target=ctx.target)
    if a is not None:
        d_b = torch.ops.tilewright.gemm(a.t(), d_c, target=ctx.target)
    return d_a, d_b


define("gemm(Tensor a, Tensor b, *, str target) -> Tensor", _product, _fake_product)
torch.library.register_autograd("tilewright::gemm", _differentiate, setup_context=_keep,
                                lib=LIBRARY)

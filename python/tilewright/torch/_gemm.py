"""Products of two matrices, what may stand behind them, and their gradients."""

import torch

from ._checks import (
    DTYPES,
    check_alike,
    check_is_tensor,
    check_size,
    check_tensor,
    checked_target,
    refuse,
    sizes_text,
    under_autocast,
)
from ._run import (
    define,
    differentiate,
    is_usable,
    readable,
    refuse_gradients,
    refuse_second_gradients,
    run,
)

_ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu")


def gemm(a, b, *, bias=None, activation=None, residual=None, target=None):
    """activation(a @ b + bias) + residual with sums in f32: a {..., m, k} and b {k, n} of bf16, f16
    or f32, the result of theirs.

    Either operand may be contiguous along either axis: gemm(x, weight.t()) copies nothing, nor does
    its backward pass. What lies otherwise is copied.

    bias        {n}
    activation  relu, gelu, gelu_tanh or silu
    residual    {..., m, n}
    target      interpreter or sim:sm_90a, for tensors of the host
    """
    if isinstance(a, torch.Tensor) and a.dim() > 2:
        if isinstance(residual, torch.Tensor):
            residual = residual.flatten(0, -2)
        return gemm(a.flatten(0, -2), b, bias=bias, activation=activation, residual=residual,
                    target=target).unflatten(0, a.shape[:-1])
    check_tensor("a", a, ("m", "k"), target=target)
    check_tensor("b", b, ("k", "n"), target=target)
    if activation is not None and activation not in _ACTIVATIONS:
        refuse(f"activation is {activation!r}", "write one of " + ", ".join(_ACTIVATIONS))
    a, b, bias, residual = under_autocast(a, b, bias, residual)
    check_alike("a", a, "b", b)
    check_size("b", b, 0, "k", a.shape[1], "a")
    if bias is None and activation is None and residual is None:
        return torch.ops.tilewright.gemm.default(a, b, checked_target(target))
    if bias is not None:
        check_tensor("bias", bias, ("n",), target=target)
        check_alike("a", a, "bias", bias)
        check_size("bias", bias, 0, "n", b.shape[1], "b")
    if residual is not None:
        check_tensor("residual", residual, ("m", "n"), target=target)
        check_alike("a", a, "residual", residual)
        check_size("residual", residual, 0, "m", a.shape[0], "a")
        check_size("residual", residual, 1, "n", b.shape[1], "b")
    keeps = activation is not None and torch.is_grad_enabled() and any(
        tensor is not None and tensor.requires_grad for tensor in (a, b, bias))
    return torch.ops.tilewright.linear.default(a, b, bias, residual, activation or "none", keeps,
                                               checked_target(target))[0]


def linear(x, weight, bias=None, *, activation=None, residual=None, target=None):
    """activation(x @ weight.t() + bias) + residual, as torch.nn.functional.linear has the rest."""
    check_tensor("x", x, ("...", "k"), target=target)
    check_tensor("weight", weight, ("n", "k"), target=target)
    x, weight = under_autocast(x, weight)
    check_alike("x", x, "weight", weight)
    check_size("weight", weight, 1, "k", x.shape[-1], "x")
    return gemm(x, weight.t(), bias=bias, activation=activation, residual=residual, target=target)


def gemm_fp8(a, b, scale_a, scale_b, *, target=None):
    """scale_a * scale_b * a @ b of torch.float8_e4m3fn, the result bf16: a {m, k}, b {k, n}, and
    the scales f32 of one element. Products of e4m3 read both operands along k: so `b` is best the
    transpose of a contiguous {n, k}; what lies otherwise is copied. There are no gradients."""
    for name, tensor, axes in (("a", a, ("m", "k")), ("b", b, ("k", "n"))):
        check_is_tensor(name, tensor)
        if tensor.dtype != torch.float8_e4m3fn:
            refuse(f"{name} has elements of {tensor.dtype}",
                   f"convert {name} to torch.float8_e4m3fn; gemm takes the others")
        check_tensor(name, tensor, axes, more_dtypes=(torch.float8_e4m3fn,))
    check_alike("a", a, "b", b)
    check_size("b", b, 0, "k", a.shape[1], "a")
    for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
        check_tensor(name, scale, ("...",))
        if scale.dtype != torch.float32 or scale.numel() != 1:
            refuse(f"{name} is {sizes_text(scale)} of {scale.dtype}", "pass one torch.float32")
        if scale.device != a.device:
            refuse(f"{name} is on {scale.device}, and a on {a.device}",
                   f"move {name} to {a.device}")
    return torch.ops.tilewright.gemm_fp8.default(a, b, scale_a.reshape(1), scale_b.reshape(1),
                                                 checked_target(target))


def _empty_product(a, b, *_):
    return a.new_empty(a.shape[0], b.shape[1])


def _operands(a, b):
    """The kernel that takes them where they lie, and they as it takes them. Where both axes would
    do it reads along k."""
    along_k_a, along_k_b = is_usable(a), is_usable(b.t())
    a_along_m, b_along_n = not along_k_a and is_usable(a.t()), not along_k_b and is_usable(b)
    name = f"gemm_{'t' if a_along_m else 'n'}{'n' if b_along_n else 't'}"
    return name, a.t() if a_along_m else readable(a), b if b_along_n else readable(b.t())


def _product(a, b, target):
    c = _empty_product(a, b)
    name, *operands = _operands(a, b)
    if name == "gemm_nt":
        name = "gemm"  # which has more variants, and nothing behind the product
    run(name, (), lambda: {"dtype": DTYPES[a.dtype]}, target, (*operands, c))
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


def _empty_linear(a, b, bias, residual, activation, keeps, target):
    c = _empty_product(a, b)
    return c, c.new_empty(c.shape if keeps else 0)


def _linear(a, b, bias, residual, activation, keeps, target):
    c, z = _empty_linear(a, b, bias, residual, activation, keeps, target)
    name, *operands = _operands(a, b)
    added = [readable(tensor) for tensor in (bias, residual) if tensor is not None]
    has = (bias is not None, residual is not None)
    run(name, (*has, activation, keeps),
        lambda: {"dtype": DTYPES[a.dtype], "bias": has[0], "residual": has[1],
                 "activation": activation, "keep_sums": keeps}, target,
        (*operands, *added, c, *((z,) if keeps else ())))
    return c, z


def _keep_linear(ctx, arguments, results):
    a, b, _, _, ctx.activation, keeps, ctx.target = arguments
    _, z = results
    if not keeps:
        ctx.mark_non_differentiable(z)
    ctx.set_materialize_grads(False)
    ctx.needs = ctx.needs_input_grad[:4]
    ctx.save_for_backward(a if ctx.needs[1] else None, b if ctx.needs[0] else None,
                          z if keeps else None)


def _differentiate_linear(ctx, d_c, d_kept):
    """`z` depends on the operands: so who differentiates these gradients comes to the activation's,
    which have none."""
    a, b, z = ctx.saved_tensors
    needs_a, needs_b, needs_bias, needs_residual = ctx.needs
    d_z, d_bias = d_c, None
    if z is not None and d_c is not None:
        d_z, d_bias = torch.ops.tilewright.activation_backward.default(
            d_c, z, ctx.activation, needs_bias and d_kept is None, ctx.target)
    if d_kept is not None:
        d_z = d_kept if d_z is None else d_z + d_kept
    if d_z is None:
        return (None,) * 7
    if needs_bias and (z is None or d_kept is not None):
        d_bias = torch.ops.tilewright.column_sums.default(d_z, ctx.target)
    product = torch.ops.tilewright.gemm.default
    return (product(d_z, b.t(), ctx.target) if needs_a else None,
            product(a.t(), d_z, ctx.target) if needs_b else None,
            d_bias if needs_bias else None, d_c if needs_residual else None, None, None, None)


differentiate(define("linear(Tensor a, Tensor b, Tensor? bias, Tensor? residual, str activation, "
                     "bool keeps, str target) -> (Tensor c, Tensor z)", _linear, _empty_linear), 4,
              _keep_linear, _differentiate_linear)


def _empty_activation_gradients(d_y, z, activation, has_bias, target):
    return z.new_empty(z.shape), z.new_empty(z.shape[1] if has_bias else 0)


def _activation_backward(d_y, z, activation, has_bias, target):
    d_z, d_bias = _empty_activation_gradients(d_y, z, activation, has_bias, target)
    run("activation_backward", (activation, has_bias),
        lambda: {"dtype": DTYPES[z.dtype], "activation": activation, "bias": has_bias}, target,
        (readable(z), readable(d_y), d_z, *((d_bias,) if has_bias else ())))
    return d_z, d_bias


refuse_second_gradients(
    define("activation_backward(Tensor d_y, Tensor z, str activation, bool has_bias, str target) "
           "-> (Tensor d_z, Tensor d_bias)", _activation_backward, _empty_activation_gradients), 2,
    "an activation")


def _column_sums(x, target):
    sums = x.new_empty(x.shape[1])
    run("column_sums", (), lambda: {"dtype": DTYPES[x.dtype]}, target, (readable(x), sums))
    return sums


def _keep_rows(ctx, arguments, _):
    x, _ = arguments
    ctx.rows = x.shape[0]


differentiate(define("column_sums(Tensor x, str target) -> Tensor", _column_sums,
                     lambda x, target: x.new_empty(x.shape[1])), 1, _keep_rows,
              lambda ctx, d_sums: (d_sums.expand(ctx.rows, -1), None))


def _empty_fp8_product(a, b, *_):
    return a.new_empty((a.shape[0], b.shape[1]), dtype=torch.bfloat16)


def _fp8_product(a, b, scale_a, scale_b, target):
    c = _empty_fp8_product(a, b)
    run("gemm_fp8", (), dict, target,
        (readable(a), readable(b.t()), readable(scale_a), readable(scale_b), c))
    return c


refuse_gradients(define("gemm_fp8(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, str target) "
                        "-> Tensor", _fp8_product, _empty_fp8_product), 4,
                 "gemm_fp8 has no gradients, and one of its tensors wants them",
                 "call it under torch.no_grad(), or train with gemm")

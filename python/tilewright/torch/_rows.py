"""Functions of the last axis: normalisations, softmax, and the loss of a classifier."""

import torch

from ._checks import (
    DTYPES,
    axes_text,
    check_alike,
    check_integer,
    check_number,
    check_size,
    check_tensor,
    checked_target,
    f32_beside,
    in_f32_under_autocast,
    refuse,
    require_numbers,
    sizes_text,
)
from ._run import define, differentiate, readable, refuse_second_gradients, run


def rms_norm(x, weight=None, *, eps=1e-5, target=None):
    """x / sqrt(mean(x^2) + eps) * weight over the last axis: x {..., n}, weight {n} or None, of
    bf16, f16 or f32. Computed in f32; under autocast the result is f32, as PyTorch's.

    `target` is interpreter or sim:sm_90a, for tensors of the host.
    """
    return _norm(x, weight, None, False, eps, target)


def layer_norm(x, weight=None, bias=None, *, eps=1e-5, target=None):
    """(x - mean(x)) / sqrt(var(x) + eps) * weight + bias over the last axis, as rms_norm."""
    return _norm(x, weight, bias, True, eps, target)


def softmax(x, dim=-1, *, target=None):
    """exp(x) / sum(exp(x)) along `dim`, computed in f32. Another axis than the last is copied."""
    check_tensor("x", x, ("...", "n"), target=target)
    fix = f"name an axis of x, from {-x.dim()} to {x.dim() - 1}"
    check_integer("dim", dim, fix)
    if not -x.dim() <= dim < x.dim():
        refuse(f"dim is {dim}, and x has {axes_text(x)}", fix)
    (x,) = in_f32_under_autocast(x)
    x = x.movedim(dim, -1)
    y = torch.ops.tilewright.softmax.default(_rows_of(x), checked_target(target))
    return y.view(x.shape).movedim(-1, dim)


def cross_entropy(logits, labels, *, ignore_index=-100, label_smoothing=0.0, reduction="mean",
                  target=None):
    """The loss of classes: logits {..., classes}, labels {...} of torch.int64. As
    torch.nn.functional's, but that the classes are the last axis. Losses are f32.

    reduction   mean, over the labels that are not ignore_index; sum; or none: {...}

    A label that is no class is an error where labels are on the host, and else has the loss inf.
    """
    check_tensor("logits", logits, ("...", "classes"), target=target)
    if not isinstance(labels, torch.Tensor) or labels.dtype != torch.int64:
        refuse(f"labels is of {getattr(labels, 'dtype', type(labels).__name__)}",
               "pass a tensor of torch.int64")
    if labels.shape != logits.shape[:-1]:
        refuse(f"labels is {sizes_text(labels)}, and logits is {sizes_text(logits)}",
               "pass a label for each row of logits")
    if labels.device != logits.device:
        refuse(f"labels is on {labels.device}, and logits on {logits.device}",
               f"move labels to {logits.device}")
    fix = "set it to a number from 0 to 1"
    check_number("label_smoothing", label_smoothing, fix, above=False)
    check_integer("ignore_index", ignore_index, "set it to a label that has no loss")
    if label_smoothing > 1:
        refuse(f"label_smoothing is {label_smoothing}", fix)
    if reduction not in ("mean", "sum", "none"):
        refuse(f"reduction is {reduction!r}", "write mean, sum or none")
    (logits,) = in_f32_under_autocast(logits)
    losses, _ = torch.ops.tilewright.cross_entropy.default(
        _rows_of(logits), labels.reshape(-1), float(label_smoothing), ignore_index,
        checked_target(target))
    if reduction == "none":
        return losses.view(labels.shape)
    total = losses.sum()
    return total if reduction == "sum" else total / (labels != ignore_index).sum()


def _norm(x, weight, bias, centred, eps, target):
    check_tensor("x", x, ("...", "n"), target=target)
    for name, vector in (("weight", weight), ("bias", bias)):
        if vector is not None:
            check_tensor(name, vector, ("n",), target=target)
            check_size(name, vector, 0, "length", x.shape[-1], "x's last axis")
    check_number("eps", eps, "set it to a number of at least 0", above=False)
    x, weight, bias = in_f32_under_autocast(x, weight, bias)
    for name, vector in (("weight", weight), ("bias", bias)):
        if vector is not None:
            check_alike("x", x, name, vector)
    y, _, _ = torch.ops.tilewright.norm.default(_rows_of(x), weight, bias, centred, float(eps),
                                                checked_target(target))
    return y.view(x.shape)


def _rows_of(x):
    """{..., n} as {rows, n}."""
    return x.unsqueeze(0) if x.dim() == 1 else x.flatten(0, -2)


def _given(*tensors):
    return [readable(tensor) for tensor in tensors if tensor is not None]


def _empty_like(tensor):
    return tensor.new_empty(tensor.shape)


def _of_rows(x, there=True):
    """A number in f32 for each row."""
    return x.new_empty(x.shape[0] if there else 0, dtype=f32_beside(x))


def _norm_options(x, weight, has_bias, eps):
    return {"weight": weight is not None, "bias": has_bias, "epsilon": eps,
            "dtype": DTYPES[x.dtype]}


def _empty_norm(x, weight, bias, centred, *_):
    return _empty_like(x), _of_rows(x, centred), _of_rows(x)


def _norm_forward(x, weight, bias, centred, eps, target):
    y, mean, rstd = _empty_norm(x, weight, bias, centred)
    run("layer_norm" if centred else "rms_norm", (weight is None, bias is None, eps),
        lambda: _norm_options(x, weight, bias is not None, eps), target,
        [*_given(x, weight, bias), y, *((mean, rstd) if centred else (rstd,))])
    return y, mean, rstd


def _empty_norm_gradients(d_y, x, weight, mean, rstd, has_bias, *_):
    return (_empty_like(x), x.new_empty(0 if weight is None else x.shape[1]),
            x.new_empty(x.shape[1] if has_bias else 0))


def _norm_backward(d_y, x, weight, mean, rstd, has_bias, centred, eps, target):
    d_x, d_weight, d_bias = _empty_norm_gradients(d_y, x, weight, mean, rstd, has_bias)
    outputs = [d_x]
    if weight is not None:
        outputs.append(d_weight)
    if has_bias:
        outputs.append(d_bias)
    run("layer_norm_backward" if centred else "rms_norm_backward", (weight is None, has_bias, eps),
        lambda: _norm_options(x, weight, has_bias, eps), target,
        [*_given(x, weight, mean if centred else None, rstd, d_y), *outputs])
    return d_x, d_weight, d_bias


def _keep_norm(ctx, arguments, results):
    x, weight, bias, *ctx.settings = arguments
    _, mean, rstd = results
    ctx.has_bias = bias is not None
    ctx.mark_non_differentiable(mean, rstd)
    ctx.save_for_backward(x, weight, mean, rstd)


def _differentiate_norm(ctx, d_y, *_):
    x, weight, mean, rstd = ctx.saved_tensors
    d_x, d_weight, d_bias = torch.ops.tilewright.norm_backward.default(
        d_y, x, weight, mean, rstd, ctx.has_bias, *ctx.settings)
    return (d_x, None if weight is None else d_weight, d_bias if ctx.has_bias else None,
            None, None, None)


differentiate(define("norm(Tensor x, Tensor? weight, Tensor? bias, bool centred, float eps, "
                     "str target) -> (Tensor y, Tensor mean, Tensor rstd)", _norm_forward,
                     _empty_norm), 3, _keep_norm, _differentiate_norm)
refuse_second_gradients(
    define("norm_backward(Tensor d_y, Tensor x, Tensor? weight, Tensor mean, Tensor rstd, "
           "bool has_bias, bool centred, float eps, str target) -> "
           "(Tensor d_x, Tensor d_weight, Tensor d_bias)", _norm_backward, _empty_norm_gradients),
    5, "a normalisation")


def _softmax_forward(x, target):
    y = _empty_like(x)
    run("softmax", (), lambda: {"dtype": DTYPES[x.dtype]}, target, [readable(x), y])
    return y


def _softmax_backward(d_y, y, target):
    d_x = _empty_like(y)
    run("softmax_backward", (), lambda: {"dtype": DTYPES[y.dtype]}, target, [*_given(y, d_y), d_x])
    return d_x


def _keep_softmax(ctx, arguments, y):
    _, ctx.target = arguments
    ctx.save_for_backward(y)


def _differentiate_softmax(ctx, d_y):
    return torch.ops.tilewright.softmax_backward.default(d_y, *ctx.saved_tensors, ctx.target), None


differentiate(define("softmax(Tensor x, str target) -> Tensor", _softmax_forward,
                     lambda x, *_: _empty_like(x)), 1, _keep_softmax, _differentiate_softmax)
refuse_second_gradients(
    define("softmax_backward(Tensor d_y, Tensor y, str target) -> Tensor", _softmax_backward,
           lambda d_y, y, *_: _empty_like(y)), 2, "softmax")


def _loss_options(logits, smoothing, ignore_index):
    return {"smoothing": smoothing, "ignore_index": ignore_index, "dtype": DTYPES[logits.dtype]}


def _empty_losses(logits, *_):
    return _of_rows(logits), _of_rows(logits)


def _loss_forward(logits, labels, smoothing, ignore_index, target):
    require_numbers("labels", labels, logits.shape[1], ignore_index)
    losses, lse = _empty_losses(logits)
    run("cross_entropy", (smoothing, ignore_index),
        lambda: _loss_options(logits, smoothing, ignore_index), target,
        [*_given(logits, labels), losses, lse])
    return losses, lse


def _loss_backward(d_losses, logits, labels, lse, smoothing, ignore_index, target):
    d_logits = _empty_like(logits)
    run("cross_entropy_backward", (smoothing, ignore_index),
        lambda: _loss_options(logits, smoothing, ignore_index), target,
        [*_given(logits, labels, lse, d_losses), d_logits])
    return d_logits


def _keep_loss(ctx, arguments, results):
    logits, labels, *ctx.settings = arguments
    ctx.mark_non_differentiable(results[1])
    ctx.save_for_backward(logits, labels, results[1])


def _differentiate_loss(ctx, d_losses, _):
    d_logits = torch.ops.tilewright.cross_entropy_backward.default(d_losses, *ctx.saved_tensors,
                                                                   *ctx.settings)
    return d_logits, None, None, None, None


_LOSS = "float smoothing, int ignore_index, str target) -> "
differentiate(define(f"cross_entropy(Tensor logits, Tensor labels, {_LOSS}(Tensor losses, "
                     "Tensor lse)", _loss_forward, _empty_losses), 1, _keep_loss,
              _differentiate_loss)
refuse_second_gradients(
    define("cross_entropy_backward(Tensor d_losses, Tensor logits, Tensor labels, Tensor lse, "
           f"{_LOSS}Tensor", _loss_backward, lambda d_losses, logits, *_: _empty_like(logits)), 4,
    "cross_entropy")

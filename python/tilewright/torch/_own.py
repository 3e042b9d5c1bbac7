"""Kernels of one's own on PyTorch's tensors, with gradients where a kernel computes them."""

import torch

from ._checks import refuse
from ._plain import is_recorded
from ._run import readable, refuse_second, refuse_tangents, under_transforms

_DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
           "f8e4m3": torch.float8_e4m3fn, "i64": torch.int64, "i32": torch.int32,
           "i8": torch.int8, "u8": torch.uint8}


_TO_REGISTER = "register an operator that calls it, as docs/python.md shows"


def call(kernel, given, scalars, out, stream):
    """Of a LoadedKernel on its inputs."""
    for name, tensor in zip(kernel.inputs, given):
        if not isinstance(tensor, torch.Tensor):
            continue
        if tensor.layout != torch.strided:
            refuse(f"{kernel.name}: {name} is {tensor.layout}", f"pass {name}.to_dense()")
        if not (tensor.is_cpu or tensor.is_cuda):
            refuse(f"{kernel.name}: {name} is on {tensor.device}",
                   f"move {name} to the CPU or to a CUDA GPU")
    if is_recorded():
        refuse(f"{kernel.name} is called under a tracer, which does not see what it does",
               _TO_REGISTER)
    if under_transforms():
        refuse(f"{kernel.name} is called under torch.vmap or torch.func", _TO_REGISTER)
    refuse_tangents(kernel.name, [each for each in given if isinstance(each, torch.Tensor)])
    if not torch.is_grad_enabled() or not any(
            isinstance(tensor, torch.Tensor) and tensor.requires_grad for tensor in given):
        outputs = _run(kernel, given, scalars, out, stream)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)
    _check_differentiable(kernel, given, out)
    return _Differentiated.apply(kernel, scalars, stream, *given)


def _check_differentiable(kernel, given, out):
    if kernel.gradient is None:
        refuse(f"{kernel.name} has no gradient kernel, and an input requires a gradient",
               "name it in load(..., gradient=), or call it under torch.no_grad()")
    if out is not None:
        refuse(f"{kernel.name}: out is given, and an input requires a gradient", "leave out= out")
    computed = {kernel.gradient_of(name) for name in kernel.gradient.outputs}
    for name, tensor in zip(kernel.inputs, given):
        if not isinstance(tensor, torch.Tensor):
            refuse(f"{kernel.name}: {name} is of type {type(tensor).__name__}, and another input "
                   "requires a gradient", f"pass {name} as a torch.Tensor")
        if tensor.requires_grad and name in kernel.updated:
            refuse(f"{kernel.name}: {name} is written in place, and requires a gradient",
                   f"pass {name}.detach(), or a copy of it")
        if tensor.requires_grad and name not in computed:
            refuse(f"{kernel.name}: {name} requires a gradient, and {kernel.gradient.name} "
                   f"computes none", f"pass {name}.detach(), or compute d{name} there")


def _allocate(like, dtype, shape):
    return torch.empty(shape, dtype=_DTYPES[dtype], device=like.device)


def _run(kernel, given, scalars, out, stream):
    first = next(tensor for tensor in given if isinstance(tensor, torch.Tensor))
    for name, tensor in zip(kernel.inputs, given):
        if isinstance(tensor, torch.Tensor) and tensor.device != first.device:
            refuse(f"{kernel.name}: {name} is on {tensor.device}, and others on {first.device}",
                   f"move {name} to {first.device}")
    read = [readable(tensor.detach().resolve_neg())
            if isinstance(tensor, torch.Tensor) and name not in kernel.updated else tensor
            for name, tensor in zip(kernel.inputs, given)]
    outputs = kernel.outputs_for(read, out, lambda _, dtype, shape: _allocate(first, dtype, shape))
    for name, output in zip(kernel.outputs, outputs):
        if torch.is_grad_enabled() and getattr(output, "requires_grad", False):
            refuse(f"{kernel.name}: {name} in out= requires a gradient",
                   "pass one that does not, or call it under torch.no_grad()")
    if first.is_cuda and stream is None:
        stream = torch.cuda.current_stream(first.device).cuda_stream
    kernel.run(read, outputs, scalars, stream, on_gpu=first.is_cuda)
    return outputs


class _Differentiated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, kernel, scalars, stream, *given):
        outputs = _run(kernel, given, scalars, None, stream)
        ctx.kernel, ctx.scalars = kernel, scalars
        ctx.save_for_backward(*given, *outputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @staticmethod
    def backward(ctx, *d_outputs):
        kernel, gradient = ctx.kernel, ctx.kernel.gradient
        known = dict(zip(kernel.inputs + kernel.outputs, ctx.saved_tensors))
        d_known = dict(zip(kernel.outputs, d_outputs))
        given = []
        for name in gradient.inputs:
            of = kernel.gradient_of(name)
            given.append(known[name] if of is None else d_known[of])
        values = dict(zip(kernel.scalars, ctx.scalars))
        gradients = _Gradient.apply(gradient, [values[name] for name in gradient.scalars],
                                    kernel.name, *given)
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        found = {kernel.gradient_of(name): d_input
                 for name, d_input in zip(gradient.outputs, gradients)}
        return None, None, None, *(found.get(name) for name in kernel.inputs)


class _Gradient(torch.autograd.Function):
    """A run of the gradient kernel, which has no gradient of its own: also where what it is given
    alone depends on the inputs."""

    @staticmethod
    def forward(ctx, gradient, scalars, name, *given):
        ctx.name = name
        outputs = _run(gradient, given, scalars, None, None)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @staticmethod
    def backward(ctx, *_):
        refuse_second(ctx.name)

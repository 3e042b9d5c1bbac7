"""What is wrong with arguments, said by their names."""

import math

import torch

from ..binding import TilewrightError
from ._plain import is_compiling, is_recorded

# Only the interpreter takes float64. It then computes a kernel of f32 in float64.
DTYPES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32", torch.float64: "f32"}

_INTEGERS = (int, torch.SymInt)
_NUMBERS = (*_INTEGERS, float, torch.SymFloat)


def refuse(said, fix):
    raise TilewrightError(f"error: {said}\n  fix: {fix}")


def sizes_text(tensor):
    return "{" + ", ".join(str(size) for size in tensor.shape) + "}"


def check_is_tensor(name, tensor):
    if not isinstance(tensor, torch.Tensor):
        refuse(f"{name} is of type {type(tensor).__name__}", f"pass a torch.Tensor as {name}")


def check_tensor(name, tensor, axes, *, more_dtypes=(), target=None):
    """Refuses a tensor that a kernel cannot take: other axes (where "..." stands for any number of
    them), dtypes or devices."""
    check_is_tensor(name, tensor)
    if tensor.is_nested and tensor.layout == torch.strided:  # which has no sizes
        refuse(f"{name} is a nested tensor", "pack its sequences, and pass cu_seqlens")
    least = sum(axis != "..." for axis in axes)
    if tensor.dim() < least or (least == len(axes) and tensor.dim() != least):
        refuse(f"{name} has {axes_text(tensor)}: {sizes_text(tensor)}",
               f"pass {name} as {{{', '.join(axes)}}}")
    if tensor.dtype == torch.float64 and target != "interpreter":
        refuse(f"{name} has elements of torch.float64, which target='interpreter' alone takes",
               f"convert {name} to torch.float32, or set that target to check gradients")
    if tensor.dtype not in DTYPES and tensor.dtype not in more_dtypes:
        refuse(f"{name} has elements of {tensor.dtype}", _fix_of_dtype(name, tensor, more_dtypes))
    if not (tensor.is_cpu or tensor.is_cuda):
        refuse(f"{name} is on {tensor.device}", f"move {name} to the CPU or to a CUDA GPU")
    if tensor.layout != torch.strided:
        refuse(f"{name} is {tensor.layout}", f"pass {name}.to_dense()")


def _fix_of_dtype(name, tensor, more_dtypes):
    """Servers keep elements of e4m3 as bytes: then a view is the fix."""
    if tensor.dtype in (torch.uint8, torch.int8) and torch.float8_e4m3fn in more_dtypes:
        return f"pass {name}.view(torch.float8_e4m3fn), if that is what its bytes are"
    return f"convert {name} to torch.bfloat16, torch.float16 or torch.float32"


def check_alike(first_name, first, name, tensor):
    """Refuses two tensors of different dtypes or devices."""
    if tensor.dtype != first.dtype:
        refuse(f"{name} has elements of {tensor.dtype}, and {first_name} of {first.dtype}",
               f"convert {name} to {first.dtype}")
    if tensor.device != first.device:
        refuse(f"{name} is on {tensor.device}, and {first_name} on {first.device}",
               f"move {name} to {first.device}")


def axes_text(tensor):
    return "1 axis" if tensor.dim() == 1 else f"{tensor.dim()} axes"


def check_size(name, tensor, axis, what, wanted, other):
    size = tensor.shape[axis]
    if size != wanted:
        refuse(f"the {what} of {name} is {size}, and that of {other} is {wanted}",
               f"pass {name} with {wanted} there")


def checked_target(target):
    """The target as operators take it: "" if it is left out."""
    if target is not None and not isinstance(target, str):
        refuse(f"target is {short(target)}", "write it as text, such as 'cpu', or leave it out")
    return target or ""


def f32_beside(tensor):
    """The dtype of tensors that are f32 beside this one: float64 if this one is."""
    return torch.float64 if tensor.dtype == torch.float64 else torch.float32


def check_number(name, value, fix, *, above):
    """Refuses what is no finite number of at least 0, or with `above` above 0."""
    if not isinstance(value, _NUMBERS) and (
            isinstance(value, torch.Tensor) or not hasattr(value, "__float__")):
        refuse(f"{name} is {short(value)}", fix)
    if not (0 < value < math.inf or (value == 0 and not above)):
        refuse(f"{name} is {value}", fix)


def check_integer(name, value, fix):
    if torch.jit.is_tracing() and isinstance(value, torch.Tensor) and value.dim() == 0:
        return  # a size of a tensor, which torch.jit.trace hands over so
    if isinstance(value, bool) or not (
            isinstance(value, _INTEGERS) or hasattr(value, "__index__")) or \
            isinstance(value, torch.Tensor):
        refuse(f"{name} is {short(value)}", fix)


def short(value):
    """The value as an error shows it."""
    if isinstance(value, torch.Tensor):
        return f"a tensor {sizes_text(value)}"
    if isinstance(value, (tuple, list)):
        said = ", ".join(map(short, value[:4])) + (", ..." if len(value) > 4 else "")
        return f"[{said}]" if isinstance(value, list) else f"({said})"
    return repr(value)


def under_autocast(*tensors):
    """The tensors, in autocast's dtype where it is on. None stays, and so does float64, as in
    PyTorch's own functions."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    return _converted(tensors, torch.get_autocast_dtype(device))


def in_f32_under_autocast(*tensors):
    """The tensors in f32 where autocast is on, as PyTorch's own functions take them."""
    if not torch.is_autocast_enabled(tensors[0].device.type):
        return tensors
    return _converted(tensors, torch.float32)


def _converted(tensors, dtype):
    return tuple(tensor if tensor is None or tensor.dtype == torch.float64 else tensor.to(dtype)
                 for tensor in tensors)


def is_readable(tensor):
    """Whether the host can read the elements at once, for this call alone. A tensor of a GPU would
    be waited for, and in a graph that is compiled or traced other elements come later."""
    return tensor.is_cpu and not is_compiling() and not is_recorded()


def require_numbers(name, tensor, count, other=None):
    """Refuses integers, if the host can read them, that are neither `other` nor below `count`."""
    if not is_readable(tensor):
        return
    wrong = (tensor < 0) | (tensor >= count)
    if other is not None:
        wrong &= tensor != other
    if wrong.any():
        refuse(f"{name} has {tensor[wrong][0].item()}, of {count}",
               f"let them be from 0 to {count - 1}")

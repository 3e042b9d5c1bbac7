"""Kernels of the library on PyTorch's tensors: made once for their options, run on the stream."""

import threading

import torch

from ..kernel import Kernel
from ._checks import refuse

# All operators, whose implementations are in Python.
LIBRARY = torch.library.Library("tilewright", "DEF")
TAGS = (torch.Tag.pt2_compliant_tag,)

_ALIGNMENT = 16  # bytes, of rows that TMA copies

_kernels = {}
_making = threading.Lock()


def define(schema, implementation, fake):
    """The operator of this schema, for both kinds of device."""
    name = schema.partition("(")[0]
    LIBRARY.define(schema, tags=TAGS)
    for key in ("CPU", "CUDA"):
        LIBRARY.impl(name, implementation, key)
    torch.library.register_fake(f"tilewright::{name}", fake, lib=LIBRARY)


def readable(tensor):
    """The tensor, or a copy of it where a kernel cannot read it in place: its last axis is strided,
    it was expanded, or on a GPU its rows do not begin at multiples of 16 bytes."""
    alignment = _ALIGNMENT if tensor.is_cuda else 1
    fits = tensor.data_ptr() % alignment == 0
    if fits and tensor.is_contiguous():
        return tensor
    *rows, last = zip(tensor.shape, tensor.stride())
    fits = fits and (last[0] <= 1 or last[1] == 1)
    for size, stride in rows:
        fits = fits and (size <= 1 or (
            stride > 0 and stride * tensor.element_size() % alignment == 0))
    return tensor if fits else tensor.clone(memory_format=torch.contiguous_format)


def run(name, options, target, tensors):
    """Queues a run on the current stream of the tensors' GPU; on the host it is done at return."""
    device = tensors[0].device
    if device.type != "cuda":
        _kernel(name, options, target or "cpu", 0)(*tensors)
        return
    if target not in ("", "cuda"):
        refuse(f"target is {target}, and the tensors are on {device}",
               "leave target out, or move the tensors to the CPU")
    with torch.cuda.device(device):
        stream = torch.cuda.current_stream()
        _kernel(name, options, "cuda", device.index)(*tensors, stream=stream.cuda_stream)


def _kernel(name, options, target, device):
    key = (name, target, device, *options.values())
    made = _kernels.get(key)
    return made if made is not None else _make(key, name, options, target, device)


def _make(key, name, options, target, device):
    if target == "cuda" and torch.cuda.is_current_stream_capturing():
        refuse(f"{name} is not built, and a CUDA graph is being captured",
               "call it once with these sizes on the capture's stream before the capture")
    with _making:
        if key not in _kernels:
            _kernels[key] = Kernel(name, target=target, device=device, **options)
        return _kernels[key]

"""Kernels of the library on PyTorch's tensors: made once for their options, run on the stream.

What a call costs the host is most of a short one's time. So what depends on the tensors' shapes
alone is kept from call to call, and gradients have an autograd.Function of their own:
torch.library.register_autograd would cost several times as much.
"""

import threading

import torch
from torch.autograd import forward_ad

from ..binding import TilewrightError
from ..kernel import Kernel
from ..tensor import arguments_of, describe
from ._checks import refuse

ALIGNMENT = 16  # bytes, of rows that TMA copies
MOST_CALLS = 1024  # that a thread keeps
MOST_HOST_KERNELS = 256  # that the process keeps

# All operators, whose implementations are in Python.
_LIBRARY = torch.library.Library("tilewright", "DEF")
_kernels, _making = {}, {}  # by what they are made of; and a lock for each
_ahead = set()  # what was begun before its call
_times_forgotten = 0
on_forgetting = []  # functions that drop calls of kernels of the host
_calls = threading.local()
under_transforms = torch._C._are_functorch_transforms_active


def define(schema, implementation, fake):
    """The operator of this schema, for both kinds of device."""
    name = schema.partition("(")[0]
    _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    for key in ("CPU", "CUDA"):
        _LIBRARY.impl(name, implementation, key)
    torch.library.register_fake(f"tilewright::{name}", fake, lib=_LIBRARY)
    return getattr(torch.ops.tilewright, name).default


def differentiate(operator, tensors, keep, backward, expect=None):
    """Gives an operator gradients. The first so many arguments are tensors or None;
    keep(ctx, arguments, results) keeps what backward(ctx, *gradients) needs, and expect(*arguments)
    is told before that it is to come."""
    below_autograd = torch._C._AutoDispatchBelowAutograd

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *arguments):
            with below_autograd():
                results = operator(*arguments)
            keep(ctx, arguments, results)
            return results

    Function.backward = staticmethod(backward)

    def call(*arguments):
        refuse_tangents(operator.name(), arguments[:tensors])
        if torch.is_grad_enabled():
            for tensor in arguments[:tensors]:
                if tensor is not None and tensor.requires_grad:
                    if under_transforms():
                        refuse(f"torch.func differentiates {operator.name()}, which it cannot",
                               "use torch.autograd.grad, or PyTorch's own function there")
                    if expect is not None:
                        expect(*arguments)
                    return Function.apply(*arguments)
        with below_autograd():
            return operator(*arguments)

    _LIBRARY.impl(operator.name(), call, "Autograd")


def refuse_tangents(name, tensors):
    if forward_ad._current_level < 0:
        return
    for tensor in tensors:
        if tensor is not None and forward_ad.unpack_dual(tensor).tangent is not None:
            refuse(f"{name} is differentiated in forward mode, and has no such gradient",
                   "use torch.autograd.grad, or PyTorch's own function there")


def refuse_gradients(operator, tensors, said, fix):
    """Of an operator that has none, where one of its first arguments wants them."""
    def refuse_backward(ctx, *_):
        refuse(said, fix)

    differentiate(operator, tensors, lambda *_: None, refuse_backward)


def refuse_second_gradients(operator, tensors, of):
    """Of an operator that computes the gradients of `of`."""
    refuse_gradients(operator, tensors, *_second_gradients(of))


def _second_gradients(of):
    return (f"the gradients of {of} are differentiated, and have no gradient",
            "leave create_graph=True out, or use PyTorch's own function there")


def refuse_second(of):
    refuse(*_second_gradients(of))


def is_usable(tensor):
    """Whether a kernel can take it in place: its last axis is not strided, nothing is expanded, and
    on a GPU its rows begin at multiples of 16 bytes."""
    alignment = ALIGNMENT if tensor.is_cuda else 1
    if tensor.data_ptr() % alignment != 0:
        return False
    if tensor.is_contiguous():
        return True
    *rows, last = zip(tensor.shape, tensor.stride())
    step = alignment // tensor.element_size() or 1
    return (last[0] <= 1 or last[1] == 1) and all(
        size <= 1 or (stride > 0 and stride % step == 0) for size, stride in rows)


def readable(tensor):
    """The tensor, or a copy of it that a kernel can take."""
    if is_usable(tensor):
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)


def _described(tensor):
    if tensor.dtype == torch.float64:
        return tensor.data_ptr(), "f64", tuple(tensor.shape), tuple(tensor.stride())
    return describe(tensor)


class Call:
    """A kernel on tensors of these shapes, wherever they lie. For one thread."""

    def __init__(self, kernel, tensors):
        self.kernel, self.arguments = kernel, arguments_of(tensors, _described)
        self.places = list(self.arguments)
        self.is_double = any(tensor.dtype == torch.float64 for tensor in tensors)

    def run(self, tensors, stream):
        self.place(tensors)
        self.start(stream)

    def place(self, tensors):
        """Where they lie: returns all their addresses' bits."""
        bits = 0
        for place, tensor in zip(self.places, tensors):
            place.data = address = tensor.data_ptr()
            bits |= address
        return bits

    def start(self, stream):
        if self.is_double:
            self.kernel.run_in_float64(self.arguments)
        else:
            self.kernel.run(self.arguments, stream)


def run(name, settings, options, target, tensors):
    """Queues a run on the current stream of the tensors' GPU; on the host it is done at return. The
    kernel's options are those of options(), which depend on `settings` and the tensors' shapes."""
    first = tensors[0]
    if not first.is_cuda:
        if target == "cuda":
            refuse(f"target is cuda, and the tensors are on {first.device}",
                   "leave target out, or move the tensors to a GPU")
        call_of(name, settings, options, target or "cpu", 0, tensors).run(tensors, None)
        return
    if target not in ("", "cuda"):
        refuse(f"target is {target}, and the tensors are on {first.device}",
               "leave target out, or move the tensors to the CPU")
    index = first.get_device()
    if index == torch.cuda.current_device():
        _run_on_gpu(name, settings, options, index, tensors)
        return
    with torch.cuda.device(index):
        _run_on_gpu(name, settings, options, index, tensors)


def _run_on_gpu(name, settings, options, index, tensors):
    call = call_of(name, settings, options, "cuda", index, tensors)
    call.run(tensors, torch._C._cuda_getCurrentRawStream(index))


def call_of(name, settings, options, target, device, tensors):
    """Made once for tensors that lie so."""
    key = (name, settings, target, device,
           *[(tensor.dtype, tensor.shape, tensor.stride()) for tensor in tensors])
    calls = _calls.__dict__
    call = calls.get(key)
    if call is None:
        call = Call(_kernel(name, options(), target, device), tensors)
        make_room(calls, MOST_CALLS)
        calls[key] = call
    return call


def make_room(calls, most):
    """Empties what a thread keeps if it is full, or if its kernels may have been forgotten."""
    if len(calls) > most or calls.get("times forgotten") != _times_forgotten:
        calls.clear()
        calls["times forgotten"] = _times_forgotten


def _forget_host_kernels():
    """All of them, where there are too many: a scale that changes in each step makes one a step. A
    GPU's stay, since a CUDA graph may hold them."""
    global _times_forgotten
    keys = [key for key in tuple(_kernels) if key[1] != "cuda"]
    if len(keys) < MOST_HOST_KERNELS:
        return
    for key in keys:
        _kernels.pop(key, None)
        _making.pop(key, None)
    _times_forgotten += 1
    for forget in on_forgetting:
        forget()


def _kernel(name, options, target, device):
    key = (name, target, device, *options.values())
    if target == "cuda" and key not in _kernels and torch.cuda.is_current_stream_capturing():
        refuse(f"{name} is not built, and a CUDA graph is being captured",
               "call it once with these sizes on the capture's stream before the capture")
    with _making.setdefault(key, threading.Lock()):
        kernel = _kernels.get(key)
        if kernel is None:
            if target != "cuda":
                _forget_host_kernels()
            kernel = _kernels[key] = Kernel(name, target=target, device=device, **options)
        return kernel


def build_ahead(name, options, device):
    """Begins to build a kernel that will be called soon. The call waits for what is left of it."""
    key = (name, "cuda", device, *options.values())
    if key in _ahead or key in _kernels:
        return
    _ahead.add(key)
    lock = _making.setdefault(key, threading.Lock())

    def build():
        try:
            _kernels[key] = Kernel(name, target="cuda", device=device, **options)
        except TilewrightError:
            pass  # its call says so, if there is one
        finally:
            lock.release()

    if lock.acquire(blocking=False):  # here, so that the call waits from now on
        try:
            threading.Thread(target=build, name=f"tilewright builds {name}").start()
        except RuntimeError:  # there can be no more threads
            lock.release()

"""Kernels and operations over ranks of the library."""

import ctypes
import sys

from . import binding
from .binding import TilewrightError, check_device
from .reports import setting
from .tensor import (
    checked_stream,
    named_arguments_of,
    note_written,
    require_place,
    require_writable,
)


class Kernel:
    """A kernel by its name and options (`tilewright list`), for a target: cuda, on the GPU of this
    number, cpu, interpreter or sim:sm_90a; without one cuda where there is a GPU that is compiled
    for, else cpu. With a group it is an operation over ranks, on GPUs alone, made by all of them:
    each calls it with the tensors of its own rank."""

    def __init__(self, name, target=None, device=0, group=None, library=None, **options):
        self._handle, self._name, self._tensors = None, name, None
        self._library = library or (group._library if group else binding.load_library())
        self._group = group
        for what, value in (("name", name), ("target", target or "")):
            if not isinstance(value, str):
                such = "'gemm'" if what == "name" else "'cpu' or 'cuda'"
                raise TilewrightError(f"error: the {what} of a kernel is {value!r}\n"
                                      f"  fix: write it as text, such as {such}")
        check_device(device)
        text = _as_c_text("options", _options_text(name, options))
        named = target and _as_c_text("target", target)
        create, made = self._library.kernel_create, (_as_c_text("name", name), text, named, device)
        if group:
            if target not in (None, "cuda"):
                raise TilewrightError(
                    f"error: {name} of a group of processes, and target={target!r}\n"
                    "  fix: leave target out, since such a kernel runs on GPUs; on the host "
                    "tilewright.torch.distributed has it of a group, and without group= it takes "
                    "the tensors of all ranks")
            create = self._library.kernel_create_in_group
            made = (_as_c_text("name", name), text, group._open(), device)
        self._handle = self._library.make(create, *made)
        self._made_of = name, target, device, options
        self._is_on_gpu = (target or self._library.default_target().decode()) == "cuda"

    def close(self):
        if self._handle:
            self._library.kernel_destroy(self._handle)
            self._handle = self._tensors = None

    def __del__(self):
        if "_handle" in self.__dict__:
            self.close()

    def __repr__(self):
        if not self._handle:
            return f"Kernel({self._name!r}), closed"
        return f"Kernel({self._name!r}) of {', '.join(self.tensors)}"

    def __reduce__(self):
        """A copy is made anew, also one by pickle."""
        if self._group:
            raise TilewrightError(f"error: {self._name} of a group of processes cannot be copied\n"
                                  "  fix: make it in each of them, by its name and options")
        return _again, self._made_of

    @property
    def handle(self):
        """Its address, as the C interface has it."""
        return self._handle.value

    @property
    def tensors(self):
        """Their names, in the order in which a call takes them."""
        if self._tensors is None:  # each call asks for them
            count = self._library.kernel_tensor_count(self._handle)
            self._tensors = [(self._library.kernel_tensor_name(self._handle, i).decode(),
                              bool(self._library.kernel_tensor_is_output(self._handle, i)))
                             for i in range(count)]
            self._written = [i for i, (_, is_output) in enumerate(self._tensors) if is_output]
        return [name for name, _ in self._tensors]

    def __call__(self, *tensors, stream=None):
        """On cuda queues a run on the stream, a number as torch.cuda.Stream.cuda_stream is, and
        returns: the tensors must stay until it has ended. Elsewhere it is done at return."""
        self._refuse_closed()
        names = self.tensors
        arguments = named_arguments_of(self._name, names, tensors, self._dtype_of)
        if len(tensors) != len(names):
            raise TilewrightError(f"error: {self._name} takes {len(names)} tensors, and "
                                  f"{len(tensors)} are given\n  fix: pass {', '.join(names)}; "
                                  "outputs too")
        if self._group is None:  # whose memory may be the host's, for its GPUs
            require_place(self._name, names, tensors, self._is_on_gpu)
        for (name, is_output), tensor in zip(self._tensors, tensors):
            if is_output:
                require_writable(self._name, name, tensor)
        self._refuse_gradients(names, tensors)
        self.run(arguments, checked_stream(self._name, stream))
        note_written([tensors[i] for i in self._written])

    def _dtype_of(self, number):
        return self._library.kernel_tensor_dtype(self._handle, number).decode()

    def _refuse_closed(self):
        if not self._handle:
            raise TilewrightError(f"error: {self._name} was closed, and cannot be called\n"
                                  "  fix: make another Kernel, or close() this one later")

    def _refuse_gradients(self, names, tensors):
        """PyTorch would not know what was written, as of its own functions with out=."""
        torch = sys.modules.get("torch")
        if torch is None or not torch.is_grad_enabled():
            return
        forward_ad = torch.autograd.forward_ad
        for name, tensor in zip(names, tensors):
            if forward_ad._current_level >= 0 and isinstance(tensor, torch.Tensor) and \
                    forward_ad.unpack_dual(tensor).tangent is not None:
                raise TilewrightError(
                    f"error: {self._name}: {name} has a tangent, and a Kernel has no gradients\n"
                    f"  fix: pass {name}.detach()")
            if getattr(tensor, "requires_grad", False):
                raise TilewrightError(
                    f"error: {self._name}: {name} requires a gradient, and a Kernel records none\n"
                    f"  fix: call it under torch.no_grad(), or pass {name}.detach(); "
                    "tilewright.torch has what has gradients")

    def run(self, arguments, stream=None):
        """The same of what arguments_of(tensors) has made."""
        self._library.kernel_run(self._handle, arguments, len(arguments), stream)

    def run_in_float64(self, arguments):
        """What it means in float64, where floats are doubles of the dtype "f64": on the target
        interpreter, for checks of gradients."""
        self._library.kernel_run_in_float64(self._handle, arguments, len(arguments))

    def shared(self, arguments):
        """Of an operation over the ranks of a group, for each tensor of what arguments_of(tensors)
        has made: whether other ranks reach it, so that it must lie in memory that they share."""
        shared = (ctypes.c_int32 * len(arguments))()
        self._library.kernel_shared_tensors(self._handle, arguments, len(arguments), shared)
        return [bool(each) for each in shared]

    def synchronize(self):
        """Of an operation over the ranks of a group, by all of them: returns when all have ended
        its runs, and raises for a rank that has died, for which a stream would wait for ever."""
        self._library.kernel_synchronize(self._handle)


def _as_c_text(what, value):
    try:
        text = value.encode()
    except UnicodeEncodeError:
        text = None
    if text is None or b"\0" in text:
        verb = "are" if what == "options" else "is"
        raise TilewrightError(f"error: the {what} of a kernel {verb} {value!r}\n  fix: write whole "
                              "characters, and no NUL")
    return text


def _options_text(kernel, options):
    settings = {key: setting(value) for key, value in options.items()}
    for key, value in settings.items():
        if "," in value:
            raise TilewrightError(f"error: {kernel}: {key} is the list {value}\n  fix: leave "
                                  "lengths out, as a Kernel takes those of its tensors, and give "
                                  "other options one value")
    return ",".join(f"{key}={value}" for key, value in settings.items())


def _again(name, target, device, options):
    return Kernel(name, target, device, **options)

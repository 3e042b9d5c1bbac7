"""One's own kernels: functions over tensors, from a file or a plug-in."""

import ctypes
import math
import os
import pathlib
import shutil
import sys
import tempfile
import weakref

from . import binding, reports
from .binding import TilewrightError, check_device
from .reports import Check, Difference
from .tensor import (
    checked_stream,
    describe,
    is_on_gpu,
    named_arguments_of,
    note_written,
    on_host,
    require_place,
    require_writable,
)

_TAKE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
_NO_SUCH_KERNEL = -1
# Of outputs of a type against a reference in float64: a few of its own roundings.
_ALLOWED = {"f32": 1e-5, "f16": 2e-3, "bf16": 1e-2, "f8e4m3": 0.1}


def load(path, name=None, *, target=None, device=0, gradient=None, gradients=None, schedule=None):
    """A kernel of one's own as a function over tensors.

        softmax = tilewright.load("softmax_rows.tw")            # a kernel's text
        softmax = tilewright.load("libmine.so", "softmax_rows")  # of a plug-in of C++
        y = softmax(x, temperature=0.5)

    It takes the kernel's inputs in their order or by name, its scalars by name, and returns its
    outputs; `out=` is a tensor or a tuple of them to write to. A file NAME.tw is what
    TILEWRIGHT_DUMP=DIR has a program write, and a plug-in is a library with TILEWRIGHT_PLUGIN
    (tilewright/plugin.h), whose only kernel needs no name.

    `target` is cuda, cpu, interpreter or sim:sm_90a; without one cuda for tensors of a GPU, of the
    number `device`, and cpu for those of the host. `schedule` is a dict as {"stages": 3}.

    `gradient` is the kernel that computes its gradients, as a file, a name in the plug-in or what
    load gives. Tensors of PyTorch then have gradients. It takes the forward pass's inputs and
    outputs by their names, dY for the gradient of an output Y, and has an output dX for each input
    X with a gradient; `gradients` maps other names to those that they are the gradients of.
    """
    try:
        path = pathlib.Path(path)
    except TypeError:
        raise TilewrightError(f"error: load is given {path!r}\n  fix: pass the path of a file .tw, "
                              "or of a plug-in") from None
    for what, given, kinds, such in (
            ("name", name, str, "text, that of a kernel in a plug-in"),
            ("target", target, str, "text, such as 'cpu' or 'cuda'"),
            ("schedule", schedule, dict, "a dict as {'stages': 3}"),
            ("gradients", gradients, dict, "a dict as {'dX': 'X'}"),
            ("gradient", gradient, (str, os.PathLike, LoadedKernel),
             "a file, a name in the plug-in, or what load gives")):
        if given is not None and not isinstance(given, kinds):
            raise TilewrightError(f"error: {what} is {given!r}\n  fix: pass {such}")
    check_device(device)
    text, file = _text_of(path, name)
    made = LoadedKernel(text, file, target, device, schedule)
    if gradient is not None:
        if not isinstance(gradient, LoadedKernel):
            of_plugin = path.suffix != ".tw" and pathlib.Path(gradient).suffix != ".tw"
            place = (path, gradient) if of_plugin else (gradient,)
            gradient = load(*place, target=target, device=device)
        made.set_gradient(gradient, gradients or {})
    return made


def _text_of(path, name):
    """Of the kernel, and what errors call the text."""
    if path.suffix == ".tw":
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise TilewrightError(f"error: {path} cannot be read: {why}\n"
                                  "  fix: name a file that a program writes with "
                                  "TILEWRIGHT_DUMP=DIR in its environment") from None
        if name is not None and f'kernel "{name}"' not in text:
            raise TilewrightError(f"error: {path} has no kernel {name}\n  fix: leave name out: a "
                                  "file has one kernel")
        return text, str(path)
    kernels, failed = _kernels_of_plugin(path)
    if name is None and len(kernels) == 1:
        name = next(iter(kernels))
    if name in kernels:
        return kernels[name], name + ".tw"
    if failed:
        raise TilewrightError(failed[0])
    raise TilewrightError(f"error: {path}: " + ("which of its kernels is meant is not said"
                                                if name is None else f"there is no kernel {name}") +
                          f"\n  fix: name one of {', '.join(kernels)}")


def _kernels_of_plugin(path):
    """Their texts by their names, and what is wrong with others."""
    try:
        give = ctypes.CDLL(str(path.resolve())).tilewright_plugin_kernel
    except (OSError, AttributeError) as error:
        raise TilewrightError(f"error: {path} is no plug-in: {error}\n  fix: name a file .tw, or a "
                              "library that says TILEWRIGHT_PLUGIN(...)") from None
    give.argtypes = [ctypes.c_int, ctypes.c_void_p, _TAKE]
    kernels, failed = {}, []

    @_TAKE
    def take(_, name, text):
        if name is None:
            failed.append(text.decode())
        else:
            kernels[name.decode()] = text.decode()

    number = 0
    while give(number, None, take) != _NO_SUCH_KERNEL:
        number += 1
    return kernels, failed


class _Parameter:
    def __init__(self, library, handle, number):
        self.number = number
        self.name = library.kernel_tensor_name(handle, number).decode()
        self.dtype = library.kernel_tensor_dtype(handle, number).decode()
        self.rank = library.kernel_tensor_rank(handle, number)
        self.is_input = bool(library.kernel_tensor_is_input(handle, number))
        self.is_output = bool(library.kernel_tensor_is_output(handle, number))


class LoadedKernel:
    """What load() gives."""

    def __init__(self, text, file, target, device, schedule):
        self._library = binding.load_library()
        self._text, self._file, self._target, self._device = text, file, target, device
        self._made_of = text, file, target, device, schedule
        self._schedule = ",".join(f"{field}={reports.setting(value)}"
                                  for field, value in (schedule or {}).items())
        self._handles = {}
        self._folder = None
        handle = self._handle(target or self._library.default_target().decode())
        count = self._library.kernel_tensor_count(handle)
        self._parameters = [_Parameter(self._library, handle, i) for i in range(count)]
        self.inputs = [each.name for each in self._parameters if each.is_input]
        # Of these, those that a run writes in place.
        self.updated = {each.name for each in self._parameters if each.is_input and each.is_output}
        self.outputs = [each.name for each in self._parameters if not each.is_input]
        self.scalars = [self._library.kernel_scalar_name(handle, i).decode()
                        for i in range(self._library.kernel_scalar_count(handle))]
        self.name = text.split('"')[1]
        self.gradient, self.gradients = None, {}

    def __del__(self):
        for handle in self.__dict__.get("_handles", {}).values():
            self._library.kernel_destroy(handle)

    def __reduce__(self):
        """A copy is made anew, also one by pickle."""
        return _again, (self._made_of, self.gradient, self.gradients)

    def __repr__(self):
        scalars = [f"{name}=" for name in self.scalars]
        returned = f" -> {', '.join(self.outputs)}" if self.outputs else ""
        return f"{self.name}({', '.join(self.inputs + scalars)}){returned}"

    def __fspath__(self):
        """A file with its text, for the command: its own, or a temporary one of a plug-in's."""
        if os.path.exists(self._file):
            return self._file
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="tilewright-")
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            pathlib.Path(self._folder, self._file).write_text(self._text)
        return os.path.join(self._folder, self._file)

    def _handle(self, target):
        if target not in self._handles:
            self._handles[target] = self._library.make(
                self._library.kernel_create_from_text, self._text.encode(), self._file.encode(),
                self._schedule.encode(), target.encode(), self._device)
        return self._handles[target]

    def set_gradient(self, gradient, names):
        """`names`: by the name of one of its tensors, that which it is the gradient of."""
        known = {*self.inputs, *self.outputs}
        for name in gradient.inputs + gradient.outputs:
            of = names.get(name, name[1:] if name.startswith("d") else name)
            if name not in known and of not in known:
                raise TilewrightError(
                    f"error: {gradient.name} has a tensor {name}, and {self.name} has none of that "
                    f"name, and no {of}\n  fix: call the gradient of X dX, or say of what it is in "
                    "gradients=")
        self.gradient, self.gradients = gradient, dict(names)
        if all(self.gradient_of(name) is None for name in gradient.outputs):
            raise TilewrightError(f"error: {gradient!r} computes no gradient of {self!r}\n"
                                  "  fix: name a kernel with an output dX for an input X, or say "
                                  "in gradients= what its outputs are the gradients of")

    def gradient_of(self, name):
        """Of which tensor the gradient kernel's tensor is the gradient; None where it is one of the
        forward pass's."""
        if name in self.gradients:
            return self.gradients[name]
        return None if name in (*self.inputs, *self.outputs) else name[1:]

    def __call__(self, *tensors, out=None, stream=None, **named):
        scalars = [self._scalar(name, named) for name in self.scalars]
        given = self._given(tensors, named)
        # Only who has imported PyTorch can have its tensors.
        torch = sys.modules.get("torch")
        if torch and any(isinstance(tensor, torch.Tensor) for tensor in given):
            from .torch import _own
            return _own.call(self, given, scalars, out, stream)
        outputs = self.outputs_for(given, out, _allocate)
        self.run(given, outputs, scalars, stream, on_gpu=is_on_gpu(given[0]) if given else False)
        return self._returned(outputs)

    def _scalar(self, name, named):
        if name in named:
            value = named.pop(name)
            if getattr(value, "requires_grad", False) and sys.modules["torch"].is_grad_enabled():
                raise TilewrightError(f"error: {self.name}: the scalar {name} requires a gradient, "
                                      f"and none is computed\n  fix: pass {name}.detach()")
            try:
                if isinstance(value, str):
                    raise TypeError
                return float(value)
            except (TypeError, ValueError, RuntimeError, OverflowError):
                raise TilewrightError(f"error: {self.name}: the scalar {name} is {value!r}\n  fix: "
                                      "pass a number") from None
        raise TilewrightError(f"error: {self.name}: the scalar {name} is not given\n  fix: pass "
                              f"{name}=")

    def _given(self, tensors, named):
        """The inputs in their order."""
        if len(tensors) > len(self.inputs):
            raise TilewrightError(f"error: {self.name} takes {len(self.inputs)} inputs, and "
                                  f"{len(tensors)} are given\n  fix: pass {', '.join(self.inputs)}"
                                  "; outputs are returned, or written to out=")
        given = dict(zip(self.inputs, tensors))
        for name, tensor in named.items():
            if name not in self.inputs or name in given:
                raise TilewrightError(
                    f"error: {self.name}: {name} is " +
                    ("given twice" if name in given else "none of its inputs and scalars") +
                    f"\n  fix: it is {self!r}")
            given[name] = tensor
        for name in self.inputs:
            if name not in given:
                raise TilewrightError(f"error: {self.name}: the input {name} is not given\n  fix: "
                                      f"it is {self!r}")
        return [given[name] for name in self.inputs]

    def outputs_for(self, given, out, allocate):
        """Those that the caller gives, or new ones by allocate(like, dtype, shape)."""
        if out is not None:
            outputs = list(out) if isinstance(out, (tuple, list)) else [out]
            if len(outputs) != len(self.outputs):
                raise TilewrightError(
                    f"error: {self.name} has {len(self.outputs)} outputs, and out has "
                    f"{len(outputs)}\n  fix: pass {', '.join(self.outputs)}")
            return outputs
        return [allocate(given[0] if given else None, each.dtype, self._shape_of(each, given))
                for each in self._parameters if not each.is_input]

    def _shape_of(self, output, given):
        arguments = (binding.TensorArgument * len(self._parameters))()
        dtypes = [each.dtype for each in self._parameters if each.is_input]
        of_inputs = iter(named_arguments_of(self.name, self.inputs, given, dtypes.__getitem__))
        for parameter, place in zip(self._parameters, arguments):
            if parameter.is_input:
                argument = next(of_inputs)
                place.data, place.dtype, place.rank = argument.data, argument.dtype, argument.rank
                place.shape, place.strides = argument.shape, argument.strides
        shape = (ctypes.c_int64 * output.rank)()
        any_handle = next(iter(self._handles.values()))
        try:
            self._library.kernel_tensor_shape(any_handle, arguments, len(arguments), output.number,
                                              shape)
        except TilewrightError as error:
            if " has no value: " not in str(error):
                raise  # of the inputs alone, whatever the outputs are
            raise TilewrightError(f"{error}\n  fix: or pass out=, whose axes say it",
                                  error.status) from None
        return tuple(shape)

    def run(self, inputs, outputs, scalars, stream, on_gpu):
        """On the tensors' own device; on a GPU it is queued."""
        of_inputs, of_outputs = iter(inputs), iter(outputs)
        tensors = [next(of_inputs if each.is_input else of_outputs) for each in self._parameters]
        target = self._target or ("cuda" if on_gpu else "cpu")
        names = [each.name for each in self._parameters]
        arguments = named_arguments_of(self.name, names, tensors,
                                       lambda number: self._parameters[number].dtype)
        require_place(self.name, names, tensors, target == "cuda")
        for each, tensor in zip(self._parameters, tensors):
            if each.is_output:
                require_writable(self.name, each.name, tensor)
        handle = self._handle(target)
        numbers = (ctypes.c_double * len(scalars))(*scalars)
        self._library.kernel_run_with_scalars(handle, arguments, len(tensors), numbers,
                                              len(scalars), checked_stream(self.name, stream))
        note_written(tensor for each, tensor in zip(self._parameters, tensors) if each.is_output)

    def _returned(self, outputs):
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    # What the command says of it. `sizes` are its dims and scalars by name.

    def simulate(self, **how):
        """tilewright.simulate of it."""
        return reports.simulate(self, **how, **self._fields())

    def explain(self, **how):
        """tilewright.explain of it."""
        return reports.explain(self, **how, **self._fields())

    def check_gradients(self, backward=None, **how):
        """tilewright.check_gradients of it and its gradient kernel, or another one."""
        backward = backward or self.gradient
        if backward is None:
            raise TilewrightError(f"error: {self.name} has no gradient kernel\n"
                                  "  fix: pass it here, or as gradient= of load()")
        return reports.check_gradients(self, backward, **how)

    def time(self, **how):
        """tilewright.time of it, on the target that it was loaded for."""
        return reports.time(self, **{"target": self._target, **how}, **self._fields())

    def tune(self, **how):
        """tilewright.tune of it."""
        return reports.tune(self, **how)

    def check(self, reference, *tensors, tolerance=None, **named):
        """Compares its outputs with reference(*inputs, **scalars), which is given the inputs in
        float64 and returns an output or a tuple: of NumPy's arrays or PyTorch's tensors, as the
        inputs are. `tolerance` is the relative error that is allowed, else what the outputs' types
        explain."""
        for what, given, kind in (("reference", reference, "a function"),
                                  ("tolerance", tolerance, "a number")):
            if not (callable(given) if kind == "a function" else
                    given is None or isinstance(given, (int, float))):
                raise TilewrightError(f"error: {self.name}: {what} is {given!r}\n"
                                      f"  fix: pass {kind}")
        outputs = self(*tensors, **named)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        scalars = {name: named[name] for name in self.scalars}
        given = self._given(tensors, {name: value for name, value in named.items()
                                      if name not in scalars})
        wanted = reference(*[_in_float64(tensor) for tensor in given], **scalars)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        if len(wanted) != len(outputs):
            raise TilewrightError(f"error: the reference returns {len(wanted)} outputs, and "
                                  f"{self.name} {len(outputs)}\n  fix: return "
                                  f"{', '.join(self.outputs)}")
        for name, ours, right in zip(self.outputs, outputs, wanted):
            shape = getattr(right, "shape", None)
            if shape is None or tuple(shape) != tuple(describe(ours)[2]):
                said = type(right).__name__ if shape is None else f"of the shape {tuple(shape)}"
                raise TilewrightError(f"error: {self.name}: {name} of the reference is {said}\n  "
                                      f"fix: return an array {tuple(describe(ours)[2])}")
        dtypes = [each.dtype for each in self._parameters if not each.is_input]
        differences = [
            Difference(name, _relative_error(ours, right), tolerance or _ALLOWED.get(dtype, 0.0))
            for name, dtype, ours, right in zip(self.outputs, dtypes, outputs, wanted)]
        return Check(self.name, self._target or "the tensors' own target", differences)

    def _fields(self):
        fields = filter(None, self._schedule.split(","))
        return {"schedule." + name: value
                for name, value in (field.split("=") for field in fields)}


def _again(made_of, gradient, gradients):
    made = LoadedKernel(*made_of)
    made.gradient, made.gradients = gradient, gradients
    return made


def _allocate(like, dtype, shape):
    if like is not None and is_on_gpu(like):
        package = type(like).__module__.partition(".")[0]
        if package != "cupy":
            raise TilewrightError(f"error: outputs on a GPU beside a tensor of {package} are not "
                                  "allocated\n  fix: pass them as out=")
        return sys.modules["cupy"].empty(shape, _numpy_name(dtype))
    if "numpy" in sys.modules and _numpy_name(dtype):
        return sys.modules["numpy"].empty(shape, _numpy_name(dtype))
    return on_host(dtype, shape)


def _numpy_name(dtype):
    return {"f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "i8": "int8",
            "u8": "uint8"}.get(dtype)


def _in_float64(tensor):
    if hasattr(tensor, "is_floating_point"):
        return tensor.double() if tensor.is_floating_point() else tensor
    import numpy
    array = numpy.asarray(tensor)
    return array.astype("float64") if array.dtype.kind == "f" else array


def _relative_error(ours, wanted):
    """NaN, which no bound allows, where one of them has one."""
    squares = squared_errors = 0.0
    pairs = zip(_numbers(ours, describe(ours)[2]), _numbers(wanted, tuple(wanted.shape)))
    for mine, right in pairs:
        squares += right * right
        squared_errors += (mine - right) ** 2
    return math.sqrt(squared_errors / squares) if squares else math.sqrt(squared_errors)


def _numbers(tensor, shape):
    if hasattr(tensor, "detach"):
        return tensor.detach().double().flatten().tolist()
    import numpy
    return numpy.asarray(tensor).reshape(math.prod(shape)).astype("float64").tolist()

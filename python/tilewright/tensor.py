"""Tensors as the library takes them: those of others, and memory of a group's."""

import ctypes
import functools
import math
import sys

from . import _dlpack
from .binding import TensorArgument, TilewrightError

# Bytes of an element, and the type as __array_interface__ has it, if it knows such a type.
DTYPES = {"f32": (4, "<f4"), "f16": (2, "<f2"), "bf16": (2, None), "f8e4m3": (1, None),
          "i64": (8, "<i8"), "i32": (4, "<i4"), "i8": (1, "|i1"), "u8": (1, "|u1")}
_BY_INTERFACE = {type_text: name for name, (_, type_text) in DTYPES.items() if type_text}
_BY_FORMAT = {"f": "f32", "e": "f16", "q": "i64", "l": "i64", "i": "i32", "b": "i8", "B": "u8"}
_BY_TORCH = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "float8_e4m3fn": "f8e4m3",
             "int64": "i64", "int32": "i32", "int8": "i8", "uint8": "u8"}


class Tensor:
    """Elements in row-major order at an address: on the host, or on a GPU. What has the memory is
    kept as long as this is."""

    def __init__(self, address, dtype, shape, owner, on_gpu, copies=None):
        self.address, self.dtype, self.shape = address, dtype, tuple(shape)
        self.on_gpu = on_gpu
        self._owner = owner
        self._copies = copies  # (write, read), which take an address of the host's and bytes

    @property
    def size_bytes(self):
        return math.prod(self.shape) * DTYPES[self.dtype][0]

    def write(self, data):
        """All of it, from bytes or whatever has a buffer of as many."""
        view = memoryview(data).cast("B")
        self._check(len(view))
        source = (ctypes.c_char * len(view)).from_buffer_copy(view)
        self._copies[0](ctypes.addressof(source), len(view))

    def read(self):
        """All of it, as bytes."""
        target = ctypes.create_string_buffer(max(self.size_bytes, 1))
        self._copies[1](ctypes.addressof(target), self.size_bytes)
        return target.raw[:self.size_bytes]

    def view(self):
        """The memory itself, on the host: what is written there is there for all ranks."""
        if self.on_gpu:
            raise TilewrightError("error: the memory of a GPU has no view on the host\n"
                                  "  fix: read() and write() copy it")
        array = (ctypes.c_char * self.size_bytes).from_address(self.address)
        array._owner = self._owner
        return memoryview(array).cast("B")

    def _check(self, size):
        if size != self.size_bytes:
            raise TilewrightError(f"error: {size} bytes for a tensor of {self.size_bytes}: "
                                  f"{self.dtype} {list(self.shape)}\n  fix: all of its elements")

    def _interface(self):
        type_text = DTYPES[self.dtype][1]
        if type_text is None:
            raise AttributeError(f"{self.dtype} is no type of array interfaces")
        return {"shape": self.shape, "typestr": type_text, "data": (self.address, False),
                "version": 3}

    @property
    def __cuda_array_interface__(self):
        if not self.on_gpu:
            raise AttributeError("the memory is the host's")
        return self._interface()

    @property
    def __array_interface__(self):
        if self.on_gpu:
            raise AttributeError("the memory is a GPU's")
        return self._interface()


_CONVERT = "convert it to one of " + ", ".join(DTYPES)
_PASS = ("a tensor of PyTorch, NumPy or CuPy, one of a group's, what has __cuda_array_interface__, "
         "__array_interface__ or __dlpack__, or a writable buffer")


def _refuse(tensor, why, fix=_PASS):
    raise TilewrightError(f"error: {type(tensor).__name__} as a tensor: {why}\n  fix: {fix}")


def _of_interface(tensor, interface):
    dtype = _BY_INTERFACE.get(interface["typestr"])
    if dtype is None:
        _refuse(tensor, f"elements of type {interface['typestr']}", _CONVERT)
    strides = interface.get("strides")
    size = DTYPES[dtype][0]
    if strides is not None:
        if any(stride % size for stride in strides):
            _refuse(tensor, f"strides of {strides} bytes for elements of {size}")
        strides = tuple(stride // size for stride in strides)
    return interface["data"][0], dtype, tuple(interface["shape"]), strides


@functools.lru_cache(maxsize=None)  # there are few
def _of_torch(dtype):
    return _BY_TORCH.get(str(dtype).rpartition(".")[2])


def describe(tensor):
    """Address, dtype, shape, and strides in elements or None."""
    if isinstance(tensor, Tensor):
        return tensor.address, tensor.dtype, tensor.shape, None
    if hasattr(tensor, "data_ptr"):
        dtype = _of_torch(tensor.dtype)
        if dtype is None:
            _refuse(tensor, f"elements of type {str(tensor.dtype).rpartition('.')[2]}", _CONVERT)
        if hasattr(tensor, "is_neg") and tensor.is_neg():
            _refuse(tensor, "its numbers are those in memory, negated", "pass resolve_neg() of it")
        try:
            return tensor.data_ptr(), dtype, tuple(tensor.shape), tensor.stride()
        except RuntimeError:
            if str(tensor.layout) == "torch.strided":
                _refuse(tensor, "it has no numbers of its own, as under tracers and torch.vmap",
                        "register an operator that calls the kernel, as docs/python.md shows")
            _refuse(tensor, f"its layout is {tensor.layout}, and it has no address and strides",
                    "pass a dense one, such as to_dense() gives")
    if hasattr(tensor, "mask") and hasattr(tensor, "filled"):  # one of numpy.ma
        _refuse(tensor, "its mask would not be seen", "pass filled() of it")
    for attribute in ("__cuda_array_interface__", "__array_interface__"):
        interface = getattr(tensor, attribute, None)
        if interface is not None:
            return _of_interface(tensor, interface)
    if hasattr(tensor, "__dlpack__"):
        try:
            return _dlpack.describe(tensor)
        except (TypeError, ValueError, BufferError) as error:
            _refuse(tensor, str(error))
    try:
        view = memoryview(tensor)
        if view.readonly:
            _refuse(tensor, "it is read-only", "pass a bytearray, an array, or a memoryview of one")
        if not view.c_contiguous:
            _refuse(tensor, "it is not in row-major order", "pass a copy in that order")
        return _of_buffer(view)
    except (TypeError, KeyError):
        _refuse(tensor, "it says neither where it lies nor what it holds")


def _of_buffer(view):
    """Of a writable one in row-major order, such as those of the standard library."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(view))
    return address, _BY_FORMAT[view.format], view.shape, None


def _axes_of(shape, strides):
    """Both as C takes them. Of an axis with one element any stride is that of a row-major tensor:
    what such axes have in PyTorch and NumPy says nothing."""
    if strides is not None:
        strides = list(strides)
        dense = 1
        for axis in reversed(range(len(shape))):
            if shape[axis] <= 1:
                strides[axis] = dense
            dense = strides[axis] * max(shape[axis], 1)
    axes = ctypes.c_int64 * len(shape)
    return axes(*shape), axes(*strides) if strides is not None else None


@functools.lru_cache(maxsize=4096)
def _argument_of(dtype, shape, strides):
    """One without an address. A copy keeps what it points to."""
    argument = TensorArgument(dtype=dtype.encode(), rank=len(shape))
    argument.shape, argument.strides = _axes_of(shape, strides)
    return argument


def arguments_of(tensors, describe=describe):
    """The descriptions that a run takes; the tensors themselves must be kept meanwhile."""
    arguments = (TensorArgument * len(tensors))()
    for i, tensor in enumerate(tensors):
        address, dtype, shape, strides = describe(tensor)
        arguments[i] = _argument_of(dtype, shape, strides)
        arguments[i].data = address
    return arguments


def named_arguments_of(kernel, names, tensors, dtype_of=None):
    """The same; errors say which of them they are about, and what dtype_of(number) is."""
    try:
        return arguments_of(tensors)
    except TilewrightError as error:
        for number, (name, tensor) in enumerate(zip(names, tensors)):
            try:
                arguments_of([tensor])
            except TilewrightError as of_tensor:
                text = str(of_tensor).replace("error: ", f"error: {kernel}: {name}: ", 1)
                if dtype_of:
                    text = text.replace(_CONVERT, f"convert it to {dtype_of(number)}")
                raise TilewrightError(text, of_tensor.status) from None
        raise error


def require_writable(kernel, name, tensor):
    """Of an output. What says nothing is taken to be."""
    interface = getattr(tensor, "__array_interface__", None)
    if interface is not None and interface["data"][1]:
        raise TilewrightError(f"error: {kernel}: {name} is written, and this array is read-only\n"
                              f"  fix: pass a writable one as {name}")


def note_written(tensors):
    """Tells PyTorch of those of its own that a kernel has written: so a gradient that needs what
    was there before is an error."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and not tensor.is_inference():
            torch.autograd.graph.increment_version(tensor)


def checked_stream(kernel, stream):
    """The number of a stream, or of what has one as PyTorch's do."""
    number = getattr(stream, "cuda_stream", stream)
    if number is not None and not isinstance(number, int):
        raise TilewrightError(f"error: {kernel}: stream is {stream!r}\n  fix: pass a number as "
                              "torch.cuda.Stream.cuda_stream is")
    return number


def is_on_gpu(tensor):
    if isinstance(tensor, Tensor):
        return tensor.on_gpu
    if hasattr(tensor, "is_cuda"):
        return tensor.is_cuda
    return hasattr(tensor, "__cuda_array_interface__") or _dlpack.is_on_gpu(tensor)


def require_place(kernel, names, tensors, on_gpu):
    """That all lie where the kernel runs."""
    for name, tensor in zip(names, tensors):
        if is_on_gpu(tensor) != on_gpu:
            places = ("a GPU", "the host")
            raise TilewrightError(
                f"error: {kernel}: {name} lies on {places[on_gpu]}, and the kernel runs on "
                f"{places[not on_gpu]}\n  fix: pass {name} on {places[not on_gpu]}, or make the "
                f"kernel for the target {'cpu' if on_gpu else 'cuda'}")


def on_host(dtype, shape):
    """A new tensor of zeros in the host's memory."""
    size = math.prod(shape) * DTYPES[dtype][0]
    memory = ctypes.create_string_buffer(max(size, 1))
    address = ctypes.addressof(memory)
    return Tensor(address, dtype, shape, memory, on_gpu=False,
                  copies=(lambda source, count: ctypes.memmove(address, source, count),
                          lambda target, count: ctypes.memmove(target, address, count)))

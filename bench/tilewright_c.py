"""The kernels of libtilewright.so on PyTorch's tensors, by ctypes (include/tilewright/c_api.h)."""

import ctypes
import pathlib

import torch

_DTYPES = {torch.bfloat16: b"bf16", torch.float16: b"f16", torch.float32: b"f32",
           torch.float8_e4m3fn: b"f8e4m3",
           torch.int64: b"i64", torch.int32: b"i32", torch.int8: b"i8", torch.uint8: b"u8"}


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_char_p),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]


class TilewrightError(RuntimeError):
    pass


def tensor_arguments(tensors):
    """The descriptions that a launch takes; the tensors themselves must be kept alive."""
    arguments = (_Tensor * len(tensors))()
    for argument, tensor in zip(arguments, tensors):
        axes = ctypes.c_int64 * tensor.dim()
        argument.data = tensor.data_ptr()
        argument.dtype = _DTYPES[tensor.dtype]
        argument.rank = tensor.dim()
        argument.shape = axes(*tensor.shape)
        argument.strides = axes(*tensor.stride())
    return arguments


class Library:
    def __init__(self, path):
        self.handle = ctypes.CDLL(str(pathlib.Path(path).resolve()))
        self.handle.tilewright_last_error.restype = ctypes.c_char_p
        self.handle.tilewright_version.restype = ctypes.c_char_p
        self.handle.tilewright_kernel_create.argtypes = [
            ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int32,
            ctypes.POINTER(ctypes.c_void_p)]
        self.handle.tilewright_kernel_destroy.argtypes = [ctypes.c_void_p]
        self.handle.tilewright_kernel_run.argtypes = [
            ctypes.c_void_p, ctypes.POINTER(_Tensor), ctypes.c_int32, ctypes.c_void_p]

    def check(self, status):
        if status != 0:
            raise TilewrightError(self.handle.tilewright_last_error().decode())

    def version(self):
        return self.handle.tilewright_version().decode()

    def kernel(self, name, **options):
        return Kernel(self, name, options)


class Kernel:
    """A kernel for the GPU that is PyTorch's current one."""

    def __init__(self, library, name, options):
        text = ",".join(f"{key}={str(value).lower()}" for key, value in options.items())
        self.library = library
        self.handle = ctypes.c_void_p()
        library.check(library.handle.tilewright_kernel_create(
            name.encode(), text.encode(), b"cuda", torch.cuda.current_device(),
            ctypes.byref(self.handle)))

    def __del__(self):
        if self.handle:
            self.library.handle.tilewright_kernel_destroy(self.handle)

    def bind(self, *tensors):
        """A function that queues one launch on these tensors."""
        arguments = tensor_arguments(tensors)
        run = self.library.handle.tilewright_kernel_run

        def launch(arguments=arguments, tensors=tensors):
            stream = torch.cuda.current_stream().cuda_stream
            self.library.check(run(self.handle, arguments, len(tensors), stream))

        return launch

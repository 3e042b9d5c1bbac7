"""Tensors by DLPack, the interface that array libraries share."""

import ctypes
import math

_NAMES = {(0, 8): "i8", (0, 32): "i32", (0, 64): "i64", (1, 8): "u8", (2, 16): "f16",
          (2, 32): "f32", (4, 16): "bf16", (10, 8): "f8e4m3"}
_ON_HOST, _ON_GPU, _PINNED = 1, 2, 3


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.argtypes, _pointer_of.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p


def describe(tensor):
    """Address, dtype or a refusal's text, shape, strides in elements or None. The capsule is given
    back at once: the memory stays as long as the tensor does."""
    capsule = tensor.__dlpack__()
    given = _DLTensor.from_address(_pointer_of(capsule, b"dltensor"))
    shape = tuple(given.shape[:given.ndim])
    strides = tuple(given.strides[:given.ndim]) if given.strides else None
    name = _NAMES.get((given.code, given.bits)) if given.lanes == 1 else None
    if given.device_type not in (_ON_HOST, _ON_GPU, _PINNED):
        raise TypeError(f"it lies on a device of DLPack's type {given.device_type}")
    if name is None:
        raise TypeError(f"elements of DLPack's type {given.code} with {given.bits} bits")
    address = (given.data or 0) + given.byte_offset
    return address if math.prod(shape) else 0, name, shape, strides


def is_on_gpu(tensor):
    device = getattr(tensor, "__dlpack_device__", None)
    return device is not None and device()[0] == _ON_GPU

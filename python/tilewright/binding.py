"""libtilewright.so: where it is, what its functions take, and what becomes of their errors."""

import atexit
import ctypes
import functools
import os
import pathlib
import re

_PACKAGE = pathlib.Path(__file__).resolve().parent
# Beside an installed package, and of this repository.
_PLACES = (_PACKAGE / "lib/libtilewright.so",
           _PACKAGE.parents[1] / "build/release/lib/libtilewright.so")

USAGE, UNAVAILABLE = 2, 3


_PLACE = re.compile(r"^(.+?):(\d+): error: ", re.MULTILINE)


class TilewrightError(RuntimeError):
    """What a call has to say, with the fix. `status` is that of tilewright_status; `file` and
    `line` are the place in a kernel's source that it is about, or None."""

    def __init__(self, text, status=USAGE):
        super().__init__(text)
        self.status = status
        place = _PLACE.search(text)
        self.file, self.line = (place[1], int(place[2])) if place else (None, None)


class TensorArgument(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_char_p),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]


class GroupOptions(ctypes.Structure):
    _fields_ = [
        ("rank", ctypes.c_int32),
        ("size", ctypes.c_int32),
        ("address", ctypes.c_char_p),
        ("patience", ctypes.c_double),
        ("silence", ctypes.c_double),
    ]


_text, _handle, _i32, _i64 = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64

SetFunction = ctypes.CFUNCTYPE(_i32, _handle, _text, ctypes.POINTER(ctypes.c_char), _i64)
GetFunction = ctypes.CFUNCTYPE(_i32, _handle, _text, ctypes.POINTER(ctypes.c_char), _i64,
                               ctypes.POINTER(_i64))
WaitFunction = ctypes.CFUNCTYPE(_i32, _handle, _text, ctypes.c_double)
LogFunction = ctypes.CFUNCTYPE(None, _handle, _i32, _text)


class Store(ctypes.Structure):
    _fields_ = [("context", _handle), ("set", SetFunction), ("get", GetFunction),
                ("wait", WaitFunction)]


_made = ctypes.POINTER(_handle)
_options = ctypes.POINTER(GroupOptions)
_tensors = ctypes.POINTER(TensorArgument)
# What each function takes; those that answer with anything but a status stand below.
_PARAMETERS = {
    "kernel_create": [_text, _text, _text, _i32, _made],
    "kernel_create_checked": [_text, _text, _text, _i32, _made],
    "kernel_create_in_group": [_text, _text, _handle, _i32, _made],
    "kernel_create_from_text": [_text, _text, _text, _text, _i32, _made],
    "kernel_destroy": [_handle],
    "kernel_tensor_count": [_handle],
    "kernel_tensor_name": [_handle, _i32],
    "kernel_tensor_is_output": [_handle, _i32],
    "kernel_tensor_is_input": [_handle, _i32],
    "kernel_tensor_dtype": [_handle, _i32],
    "kernel_tensor_rank": [_handle, _i32],
    "kernel_tensor_shape": [_handle, _tensors, _i32, _i32, ctypes.POINTER(_i64)],
    "kernel_scalar_count": [_handle],
    "kernel_scalar_name": [_handle, _i32],
    "kernel_prepare": [_handle],
    "kernel_run": [_handle, _tensors, _i32, _handle],
    "kernel_run_with_scalars": [_handle, _tensors, _i32, ctypes.POINTER(ctypes.c_double), _i32,
                                _handle],
    "kernel_run_in_float64": [_handle, _tensors, _i32],
    "kernel_prepare_run": [_handle, _tensors, _i32, _handle],
    "kernel_run_on_gpus": [_handle, _tensors, _i32, ctypes.POINTER(_handle), _i32],
    "kernel_shared_tensors": [_handle, _tensors, _i32, ctypes.POINTER(_i32)],
    "kernel_synchronize": [_handle],
    "group_create_by_file": [_text, _options, _made],
    "group_create_by_socket": [_text, _i32, _text, _options, _made],
    "group_create_by_environment": [_options, _made],
    "group_create_by_mpi": [_options, _made],
    "group_create_by_store": [ctypes.POINTER(Store), _text, _options, _made],
    "group_destroy": [_handle],
    "group_rank": [_handle],
    "group_size": [_handle],
    "group_barrier": [_handle, _text],
    "group_all_gather": [_handle, _text, _text, _i64, ctypes.POINTER(_handle),
                         ctypes.POINTER(_i64)],
    "group_lost": [_handle, ctypes.POINTER(_i32), _i32],
    "group_require_all": [_handle, _text],
    "symmetric_create": [_handle, _i64, _text, _text, _i32, _made],
    "symmetric_destroy": [_handle],
    "symmetric_size": [_handle],
    "symmetric_address": [_handle, _i32],
    "symmetric_allocate": [_handle, _i64, _text, _i64, ctypes.POINTER(_i64)],
    "symmetric_write": [_handle, _i32, _i64, _handle, _i64],
    "symmetric_read": [_handle, _i32, _i64, _handle, _i64],
    "last_error": [],
    "version": [],
    "set_log": [LogFunction, _handle],
    "default_target": [],
}
_ANSWERS = {"kernel_tensor_name": _text, "kernel_tensor_dtype": _text,
            "kernel_scalar_name": _text, "last_error": _text, "version": _text,
            "default_target": _text, "symmetric_address": _handle, "symmetric_size": _i64,
            "set_log": None, "kernel_destroy": None, "group_destroy": None,
            "symmetric_destroy": None}
# These are no statuses: what they answer is for the caller.
_COUNTS = {"kernel_tensor_count", "kernel_tensor_is_output", "kernel_tensor_is_input",
           "kernel_tensor_rank", "kernel_scalar_count", "group_rank", "group_size",
           "group_lost"}


class Library:
    """The functions of libtilewright.so without their prefix; a failing one raises."""

    def __init__(self, path):
        try:
            self._handle = ctypes.CDLL(str(path))
        except OSError as error:
            raise TilewrightError(
                f"error: libtilewright.so cannot be loaded: {error}\n"
                "  fix: build it, or set TILEWRIGHT_LIBRARY to its path", UNAVAILABLE) from None
        self.path = str(path)
        self.has_command = hasattr(self._handle, "tilewright_command")
        for name, parameters in _PARAMETERS.items():
            function = getattr(self._handle, "tilewright_" + name, None)
            if function is None:
                raise TilewrightError(
                    f"error: {path} has no function tilewright_{name}: it is another library, or "
                    "an older one\n"
                    "  fix: set TILEWRIGHT_LIBRARY to the libtilewright.so of this version",
                    UNAVAILABLE)
            function.argtypes = parameters
            function.restype = _ANSWERS.get(name, _i32)
            is_status = name not in _ANSWERS and name not in _COUNTS
            setattr(self, name, self._checked(function) if is_status else function)

    def _checked(self, function):
        def call(*arguments):
            status = function(*arguments)
            if status != 0:
                raise TilewrightError(self.last_error().decode(), status)

        return call

    def make(self, create, *arguments):
        """The handle that such a function makes."""
        handle = ctypes.c_void_p()
        create(*arguments, ctypes.byref(handle))
        return handle


def check_device(device):
    """Whether it is the number of a GPU."""
    if not isinstance(device, int):
        raise TilewrightError(f"error: device is {device!r}\n  fix: pass the number of a GPU, and "
                              "what it runs on as target=")


def library_path():
    """Where the library is, or the name by which the system's loader may find it."""
    chosen = os.environ.get("TILEWRIGHT_LIBRARY")
    return chosen or str(next((place for place in _PLACES if place.exists()), "libtilewright.so.0"))


_log = LogFunction()  # NULL


def set_log(log, library=None):
    """log(text, is_warning) is told what the library does: which kernel it has compiled, in what
    time, or has found where, and what costs time. None: warnings go to standard error again."""
    global _log
    if log is not None and not callable(log):
        raise TilewrightError(f"error: log is {log!r}\n"
                              "  fix: pass a function of a text and of whether it warns, or None")
    kept = LogFunction() if log is None else LogFunction(
        lambda _, is_warning, text: log(text.decode(errors="replace"), bool(is_warning)))
    (library or load_library()).set_log(kept, None)
    _log = kept  # only now is the one before called no more
    atexit.unregister(set_log)
    if log is not None:
        atexit.register(set_log, None, library)


@functools.lru_cache(maxsize=None)
def load_library(path=None):
    """The library, once for a path."""
    return Library(path or library_path())

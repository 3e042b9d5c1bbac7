"""Tilewright's kernels, one's own ones and groups of processes from Python, by ctypes
(tilewright/c_api.h).

Nothing but libtilewright.so is needed. It is looked for where TILEWRIGHT_LIBRARY says, then in the
package itself, then in the build folder of this repository, then by the system's loader. Tensors
are those of PyTorch, NumPy, CuPy, whatever has __cuda_array_interface__, __array_interface__ or
__dlpack__, a writable buffer, and the symmetric ones of a group. What fails raises TilewrightError.
tilewright.torch has operators of PyTorch.
"""

from .binding import Library, TilewrightError, load_library, set_log
from .group import Group, SymmetricMemory
from .kernel import Kernel
from .own import LoadedKernel, load
from .reports import check_gradients, explain, simulate, time, tune
from .tensor import DTYPES, Tensor

__all__ = ["DTYPES", "Group", "Kernel", "Library", "LoadedKernel", "SymmetricMemory", "Tensor",
           "TilewrightError", "check_gradients", "explain", "load", "load_library", "set_log",
           "simulate", "time", "tune"]


def __getattr__(name):
    if name == "__version__":
        return load_library().version().decode()
    raise AttributeError(f"module 'tilewright' has no attribute {name!r}: what is over PyTorch's "
                         "tensors is in tilewright.torch")

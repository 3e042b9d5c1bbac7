"""Calls like an earlier one, which go to the kernel without PyTorch's dispatcher: tensors that lie
so were checked then, and the kernel was made. Where PyTorch describes its tensors in C (from 2.10
on) a function of the library's own does all of it, and ctypes has no part either."""

import ctypes
import threading

import torch

from ..binding import TilewrightError, load_library
from ._plain import TENSORS, is_followed, is_plain, is_watched
from ._run import ALIGNMENT, MOST_CALLS, call_of, is_usable, make_room, on_forgetting

_made = threading.local()
_unread = {}
_MOST_UNREAD = 1 << 16  # elements
_in_c = None  # (call, remember, forget) of the library, () if there are none
_making_in_c = threading.Lock()

OUT, LSE = -1, -2


class Elsewhere(Exception):
    """This call must go the whole way: its tensors lie on a GPU that is not the current one, or
    begin where a kernel takes none, or something is wrong with them."""


class Direct:
    """A kernel whose results are `out` and `lse`, on given tensors that lie so. For one thread.

    order  of the kernel's tensors: OUT, LSE, or the number of one of those that are given, and
           behind them of those in `fixed`, which are the same in each call
    """

    def __init__(self, name, settings, options, target, tensors, order, out, lse, fixed=()):
        # empty_like() costs half of new_empty(). They hold no memory of their size.
        self._out_like, self._lse_like = (t.new_empty(1).expand(t.shape) for t in (out, lse))
        self._unread = _unread_like(lse)
        self._order, self._fixed = order, fixed
        self._misaligned = ALIGNMENT - 1 if out.is_cuda else 0
        self._call = call_of(name, settings, options, "cuda" if out.is_cuda else target or "cpu",
                             max(out.get_device(), 0), tensors)

    def check(self, *given):
        """Whether the kernel can have what they hold."""
        return True

    def record(self, *given):
        """The same where gradients are recorded."""
        raise Elsewhere

    def run(self, given, wants_lse):
        """The results, or None."""
        try:
            if torch.is_grad_enabled():
                for tensor in given:
                    if tensor is not None and tensor.requires_grad:
                        return self.record(*given)
            if not self.check(*given):
                return None
            return self.launch(given, wants_lse)
        except Elsewhere:
            return None

    def launch(self, given, wants_lse=True):
        """The results, whatever the tensors hold."""
        out, lse = torch.empty_like(self._out_like), self._unread
        if wants_lse or lse is None:
            lse = torch.empty_like(self._lse_like)
        if self._place(given, out, lse) & self._misaligned:
            raise Elsewhere
        self._call.start(stream_of(given[0]))
        return out, lse

    def _place(self, given, out, lse):
        pool = (*given, *self._fixed, lse, out)
        return self._call.place([pool[number] for number in self._order])

    def in_c(self, given):
        """What the library's remember() takes of it; None if it cannot be called there."""
        if self._call.is_double:
            return None
        self._place(given, self._out_like, self._lse_like)
        kernel, arguments = self._call.kernel, self._call.arguments
        has_check = type(self).check is not Direct.check and not self._out_like.is_cuda
        return (kernel.handle, ctypes.addressof(arguments), self._order, self._out_like,
                self._lse_like, self._unread, self._misaligned, self.check if has_check else None,
                self.run, (kernel, arguments))


def _unread_like(lse):
    """A place for a log-sum-exp that nobody reads; None for a large one, whose allocation costs
    little beside its kernel. On a GPU all share one that stays, since CUDA graphs write there."""
    if lse.numel() > _MOST_UNREAD:
        return None
    if not lse.is_cuda:
        return lse
    key = lse.device, lse.dtype
    if key not in _unread:
        _unread[key] = lse.new_empty(_MOST_UNREAD)
    return _unread[key][:lse.numel()].view(lse.shape)


def stream_of(tensor):
    """The current one of its GPU, None on the host."""
    device = tensor.get_device()  # -1: the host
    if device < 0:
        return None
    if torch._C._cuda_getDevice() != device:
        raise Elsewhere
    return torch._C._cuda_getCurrentRawStream(device)


def _lie(tensor):
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.device


def _key(settings, tensors):
    """None where anything is no tensor, or one whose memory holds other numbers than it says."""
    key = [settings, stream_of(tensors[0])]
    for tensor in tensors:
        if tensor is None:
            key.append(None)
        elif type(tensor) not in TENSORS or tensor.is_neg():
            return None
        else:
            key += _lie(tensor)
    return tuple(key)


def _in_python(settings, wants_lse, *tensors):
    if is_watched():
        return None
    try:
        made = _made.__dict__.get(_key(settings, tensors))
    # A setting that is none, what has no device or no strides, another GPU.
    except (TypeError, AttributeError, RuntimeError, Elsewhere):
        return None
    return made.run(tensors, wants_lse) if made is not None else None


# call(settings, wants_lse, *tensors), of which some may be None: the results of a call like an
# earlier one; None for others, and where anybody but autograd has a part in it. What compiles sees
# no C: not to be called then.
call = _in_python


def remember(settings, tensors, make):
    """For calls with these settings on tensors that lie as these do, what make() gives."""
    given = [tensor for tensor in tensors if tensor is not None]
    if not is_plain(*given) or not all(is_usable(tensor) for tensor in given):
        return
    try:
        # What a capture allocates stays its own.
        if stream_of(tensors[0]) is not None and torch.cuda.is_current_stream_capturing():
            return
        made = make()
        key = _key(settings, tensors)
    except Elsewhere:
        return
    in_c = _functions()
    if in_c:
        what = made.in_c(tensors)
        if what is not None:
            in_c[1](settings, tensors, MOST_CALLS, *what)
        return
    make_room(_made.__dict__, MOST_CALLS)
    _made.__dict__[key] = made


def forget():
    """All of this thread's; in C all."""
    _made.__dict__.clear()
    if _in_c:
        _in_c[2]()


on_forgetting.append(forget)


def _functions():
    global _in_c, call
    with _making_in_c:
        if _in_c is None:
            _in_c = _found_in_c()
            if _in_c:
                call = _in_c[0]
        return _in_c


def _found_in_c():
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if exchange is None:
        return ()
    library = load_library()
    try:
        make = ctypes.PyDLL(library.path).tilewright_python_calls
        make.argtypes, make.restype = [ctypes.py_object], ctypes.py_object
        return make((exchange, *TENSORS, is_followed, torch.is_grad_enabled, torch.Tensor.is_neg,
                     torch.empty_like, getattr(torch._C, "_cuda_getDevice", None),
                     _fail)) or ()
    except (AttributeError, ValueError):  # another library, or another Python
        return ()


def _fail(status):
    raise TilewrightError(load_library().last_error().decode(), status)

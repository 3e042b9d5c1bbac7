"""Calls like an earlier one of their thread, which go to the kernel without PyTorch's dispatcher:
tensors that lie so were checked then, and the kernel was made."""

import itertools
import threading

import torch

from ._plain import TENSORS, is_plain, is_watched
from ._run import ALIGNMENT, MOST_CALLS, call_of, is_usable

_made = threading.local()
_unread = {}
_MOST_UNREAD = 1 << 16  # elements


class Elsewhere(Exception):
    """This call must go the whole way: its tensors lie on a GPU that is not the current one, or
    begin where a kernel takes none, or something is wrong with them."""


class Direct:
    """A kernel whose results are `out` and `lse`, on tensors that lie so. For one thread."""

    def __init__(self, name, settings, options, target, tensors, out, lse):
        # empty_like() costs half of new_empty(). They hold no memory of their size.
        self._out_like, self._lse_like = (t.new_empty(1).expand(t.shape) for t in (out, lse))
        self._unread = _unread_like(lse)
        self._device = out.get_device()  # -1: the host
        self._misaligned = ALIGNMENT - 1 if out.is_cuda else 0
        self._call = call_of(name, settings, options, "cuda" if out.is_cuda else target or "cpu",
                             max(self._device, 0), tensors)

    def stream(self):
        """The current one, None on the host."""
        if self._device < 0:
            return None
        if torch._C._cuda_getDevice() != self._device:
            raise Elsewhere
        return torch._C._cuda_getCurrentRawStream(self._device)

    def launch(self, stream, before, after=(), wants_lse=True):
        """The results. Of the kernel's tensors `before` come before them, and `after` behind."""
        out, lse = torch.empty_like(self._out_like), self._unread
        if wants_lse or lse is None:
            lse = torch.empty_like(self._lse_like)
        if self._call.place((*before, out, lse, *after)) & self._misaligned:
            raise Elsewhere
        self._call.start(stream)
        return out, lse


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


def _lie(tensor):
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.device


def find(settings, *tensors):
    """What remember() was given for a call like this one; None for others, and where anybody but
    autograd has a part in it."""
    if is_watched():
        return None
    key = [settings]
    try:
        for tensor in tensors:
            if type(tensor) not in TENSORS or tensor.is_neg():
                return None
            key += _lie(tensor)
        return _made.__dict__.get(tuple(key))
    except (TypeError, RuntimeError):  # a setting that is none, a tensor that has no strides
        return None


def remember(settings, tensors, make):
    """For calls with these settings on tensors that lie as these do, what make() gives."""
    if not is_plain(*tensors) or not all(is_usable(tensor) for tensor in tensors):
        return
    if len(_made.__dict__) >= MOST_CALLS:
        _made.__dict__.clear()
    _made.__dict__[(settings, *itertools.chain.from_iterable(map(_lie, tensors)))] = make()


def forget():
    """All of this thread's."""
    _made.__dict__.clear()

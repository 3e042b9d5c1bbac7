"""Calls in which nobody but autograd has a part. They go to the kernels without PyTorch's
dispatcher, whose two passes through Python cost more than all else of a short call."""

import functools
import threading

import torch
from torch.autograd import forward_ad

TENSORS = (torch.Tensor, torch.nn.Parameter)
_keys_of = torch._C._dispatch_keys
_included = torch._C._dispatch_tls_local_include_set
_excluded = torch._C._dispatch_tls_local_exclude_set
_functions_watched = torch._C._len_torch_function_stack
is_compiling = torch.compiler.is_compiling
_is_traced = torch._C._is_tracing


def _state():
    return _included().raw_repr(), _excluded().raw_repr()


def _in_new_thread(look):
    """What look() gives where no mode is on."""
    found = []
    thread = threading.Thread(target=lambda: found.append(look()))
    thread.start()
    thread.join()
    return found[0]


class _InBackward(torch.autograd.Function):
    """Gives its gradient's `states` what there is."""

    @staticmethod
    def forward(ctx, x, states):
        ctx.states = states
        return x.clone()

    @staticmethod
    def backward(ctx, d_x):
        ctx.states.add(_state())
        return d_x, None


@functools.lru_cache(maxsize=None)
def _plain_states():
    def look():
        with torch.inference_mode():
            states = {_state()}
        states.add(_state())
        _InBackward.apply(torch.zeros(1, requires_grad=True), states).backward()
        return states

    return frozenset(_in_new_thread(look))


@functools.lru_cache(maxsize=None)
def _plain_keys(device):
    """The keys of tensors there that are no views of another kind: not of a batch of vmap, not
    negated, not functional."""
    def look():
        with torch.inference_mode():
            inference = torch.empty(0, device=device)
        return {_keys_of(tensor).raw_repr()
                for tensor in (torch.empty(0, device=device), inference)}

    return frozenset(_in_new_thread(look))


_RECORDERS = [torch._C._TorchDispatchModeKey.FAKE, torch._C._TorchDispatchModeKey.PROXY,
              torch._C._TorchDispatchModeKey.FUNCTIONAL]


def is_recorded():
    """Whether what is called is written down, or runs on tensors without numbers."""
    return _is_traced() or any(torch._C._get_dispatch_mode(key) is not None for key in _RECORDERS)


def is_watched():
    """Whether a tracer, transform, mode or autocast is on."""
    return is_compiling() or is_followed()


def is_followed():
    """The same of one that runs what it follows."""
    return (_is_traced() or forward_ad._current_level >= 0 or
            _functions_watched() or _state() not in _plain_states())


def is_plain(*tensors):
    """Whether a call on these tensors, all on one kind of device, is seen by no tracer, transform,
    mode or autocast, and none of them is a subclass's."""
    if is_watched() or not all(type(tensor) in TENSORS for tensor in tensors):
        return False
    keys = _plain_keys(tensors[0].device.type)
    return all(_keys_of(tensor).raw_repr() in keys for tensor in tensors)

"""Operations over the ranks of a group on PyTorch's tensors: made once for tensors of these sizes,
by all ranks, which then run them in the same order.

On GPUs each rank queues its own part on its stream. On the host rank 0 runs the part of all of
them, on tensors that were copied to memory that the ranks share.
"""

import math

import torch

from ..binding import TilewrightError
from ..group import Group
from ..kernel import Kernel
from ..reports import Report
from ..tensor import arguments_of
from ._checks import DTYPES, refuse, short, sizes_text
from ._run import readable

MOST_OPERATIONS = 64  # of other sizes each, that a group keeps with their memory


def require_group(group):
    if not isinstance(group, Group):
        refuse(f"group is {short(group)}", "pass what join() of this module gives")


def empty(group, shape, dtype, name, *, device="cpu"):
    """A tensor that every rank has, and that all ranks of one machine reach: a list with that of
    each rank, this one's at [group.rank]. By all ranks. Its memory is the host's or a GPU's, stays
    while one of the list's tensors is there, and holds anything."""
    if not isinstance(shape, (tuple, list)) or not all(
            isinstance(size, int) and size >= 0 for size in shape):
        refuse(f"shape is {short(shape)}", "pass a tuple of sizes")
    if not isinstance(dtype, torch.dtype):
        refuse(f"dtype is {short(dtype)}", "pass one of PyTorch's, such as torch.bfloat16")
    if not isinstance(name, str):
        refuse(f"name is {short(name)}", "write as text what errors shall call the memory")
    try:
        device = torch.device(device)
    except (RuntimeError, TypeError):
        refuse(f"device is {device!r}", "allocate on cpu or cuda")
    on_gpu = device.type == "cuda"
    if not on_gpu and device.type != "cpu":
        refuse(f"device is {device}", "allocate on cpu or cuda")
    require_group(group)
    index = (device.index if device.index is not None else torch.cuda.current_device()) \
        if on_gpu else 0
    size = math.prod(shape) * torch.empty(0, dtype=dtype).element_size()
    memory = group.symmetric((size,), "u8", name, "gpu" if on_gpu else "host", index)
    place = torch.device("cuda", index) if on_gpu else device
    return [_as_torch(bytes_of_rank, place, dtype).view(shape) for bytes_of_rank in memory]


def _as_torch(memory, device, dtype):
    if memory.size_bytes == 0:
        return torch.empty(0, dtype=dtype, device=device)
    if device.type == "cuda":
        return torch.as_tensor(memory, device=device).view(dtype)
    return torch.frombuffer(memory.view(), dtype=torch.uint8).view(dtype)


def run_over(group, name, options, target, tensors, outputs, out=None):
    """What an operation gives for this rank: `tensors` are its own by their names, without those
    that are None, and `outputs` the shape and dtype of each result. `out`: where results go."""
    if group.size == 1:
        refuse(f"{name} is of a group of one rank",
               "start 2 to 8 processes, or call what tilewright.torch has for one")
    tensors = {each: tensor for each, tensor in tensors.items() if tensor is not None}
    first = next(iter(tensors.values()))
    for other, tensor in tensors.items():
        if tensor.device != first.device:
            refuse(f"{other} is on {tensor.device}, and others on {first.device}",
                   f"move it to {first.device}")
    if first.is_cuda and target not in (None, "cuda"):
        refuse(f"target is {target}, and the tensors are on {first.device}",
               "leave target out, or move the tensors to the CPU")
    how = (name, target or "cpu", first.device, *options.items())
    key = (how, *((tensor.dtype, tensor.shape) for tensor in tensors.values()))
    operations = _operations_of(group)
    operation = operations.get(key)
    if operation is None or not first.is_cuda:  # a GPU's calls wait for no other rank
        _require_alike(group, name, tensors, options)
    if operation is None:
        if len(operations) >= MOST_OPERATIONS:  # so do all ranks
            if first.is_cuda:
                torch.cuda.synchronize(first.device)
            operations.pop(next(iter(operations)))
        made = _OnGpus if first.is_cuda else _OnHost
        operation = operations[key] = made(group, how, options, tensors, outputs)
    return operation.run(tensors, _checked_out(out, outputs, first))


def _checked_out(out, outputs, first):
    """By name; nothing where it is None."""
    if out is None:
        return {}
    out = out if isinstance(out, (tuple, list)) else (out,)
    if len(out) != len(outputs):
        refuse(f"out has {len(out)} tensors, and there are {len(outputs)} results",
               "pass " + ", ".join(outputs))
    for tensor, (name, (shape, dtype)) in zip(out, outputs.items()):
        if tuple(tensor.shape) != tuple(shape) or tensor.dtype != dtype or \
                tensor.device != first.device or not tensor.is_contiguous():
            refuse(f"out for {name} is {sizes_text(tensor)} of {tensor.dtype} on {tensor.device}",
                   f"pass it row-major, {_said(shape, dtype)} on {first.device}")
    return dict(zip(outputs, out))


def _require_alike(group, operation, tensors, options):
    """Whether all ranks have tensors of these sizes, and the same options."""
    own = [", ".join(f"{name} {_said(tensor.shape, tensor.dtype)}"
                     for name, tensor in tensors.items()),
           *(f"{name}={value}" for name, value in options.items())]
    said = [each.decode().split("\n") for each in
            group.all_gather("\n".join(own).encode(), f"the tensors of {operation}")]
    for rank, other in enumerate(said):
        for theirs, first in zip(other, said[0]):
            if theirs != first:
                refuse(f"{operation}: rank {rank} passes {theirs}, and rank 0 passes {first}",
                       "pass tensors of the same sizes, and the same options, in all ranks")


def _operations_of(group):
    return group.__dict__.setdefault("_torch_operations", {})


def _kernel_of(group, how, make):
    """Of any sizes."""
    kernels = group.__dict__.setdefault("_torch_kernels", {})
    if how not in kernels:
        kernels[how] = make()
    return kernels[how]


class Copies(Report):
    """What each operation of a group copies beside its own work, in `data`."""

    def __str__(self):
        lines = []
        for each in self.data["operations"]:
            calls = each["calls"]
            lines.append(f"{each['name']} {each['where']}: {calls} call{'s' * (calls != 1)}")
            lines += [f"  {tensor['name']} {tensor['shape']}: {tensor['copied']}"
                      for tensor in each["tensors"]]
        return "\n".join(lines) or "no operation has run"


def copies_of(group):
    return Copies({"operations": [each.told() for each in _operations_of(group).values()]})


class _Operation:
    """Of tensors by name: `inputs` of the caller, and `outputs` that are made."""

    def __init__(self, group, how, tensors, outputs):
        self.group, self.name, self.calls = group, how[0], 0
        self.inputs = {each: (tuple(tensor.shape), tensor.dtype)
                       for each, tensor in tensors.items()}
        self.outputs = outputs
        self.all = {**self.inputs, **outputs}

    def told(self):
        return {"name": self.name, "where": self.where, "calls": self.calls,
                "tensors": [{"name": name, "shape": _said(*each), "copied": self.copied(name)}
                            for name, each in self.all.items()]}


def _said(shape, dtype):
    return "{" + ", ".join(map(str, shape)) + "} " + {**DTYPES, torch.int32: "i32"}[dtype]


class _OnHost(_Operation):
    where = "on the host, by rank 0"

    def __init__(self, group, how, options, tensors, outputs):
        super().__init__(group, how, tensors, outputs)
        self._how, self._options = how, options
        self._places = {
            each: empty(group, shape, dtype, f"{each} of {self.name}")
            for each, (shape, dtype) in self.all.items()}

    def copied(self, name):
        return "copied to memory that rank 0 reaches" if name in self.inputs else \
            "copied from memory that rank 0 reaches"

    def run(self, tensors, out):
        self.calls += 1
        own = self.group.rank
        for name, tensor in tensors.items():
            self._places[name][own].copy_(tensor.detach())
        self.group.barrier(f"the inputs of {self.name}")
        said = self.group.all_gather(self._run_all() if own == 0 else b"",
                                     f"the results of {self.name}")[0]
        if said:
            raise TilewrightError(said.decode())
        return tuple(out[name].copy_(self._places[name][own]) if name in out else
                     self._places[name][own].clone() for name in self.outputs)

    def _run_all(self):
        """What is wrong, if anything, which all ranks are told."""
        try:
            kernel = _kernel_of(self.group, self._how, lambda: Kernel(
                self.name, target=self._how[1], ranks=self.group.size, **self._options))
            names = kernel.tensors[:len(kernel.tensors) // self.group.size]
            kernel(*(self._places[name][rank] for rank in range(self.group.size)
                     for name in names))
        except TilewrightError as error:
            return str(error).encode()
        return b""


class _OnGpus(_Operation):
    where = "on GPUs"

    def __init__(self, group, how, options, tensors, outputs):
        super().__init__(group, how, tensors, outputs)
        device = how[2]
        self._kernel = _kernel_of(group, how, lambda: Kernel(
            self.name, group=group, device=device.index, **options))
        self._names = self._kernel.tensors
        like = [torch.empty(*self.all[each][:1], dtype=self.all[each][1], device=device)
                for each in self._names]
        shared = self._kernel.shared(arguments_of(like))
        self._device = device
        self._shared = {
            each: empty(group, *self.all[each], f"{each} of {self.name}", device=device)[group.rank]
            for each, is_shared in zip(self._names, shared) if is_shared}

    def copied(self, name):
        if name not in self._shared:
            return "where it lies"
        return ("copied to" if name in self.inputs else "copied from") + \
            " memory that the other ranks reach"

    def run(self, tensors, out):
        self.calls += 1
        with torch.cuda.device(self._device):
            placed = {name: readable(tensor.detach()) for name, tensor in tensors.items()}
            for name, (shape, dtype) in self.outputs.items():
                if name in out:
                    placed[name] = out[name]
                elif name not in self._shared:
                    placed[name] = torch.empty(shape, dtype=dtype, device=self._device)
            for name, memory in self._shared.items():
                if name in out:
                    continue
                if name in self.inputs:
                    memory.copy_(placed[name])
                placed[name] = memory
            self._kernel(*(placed[name] for name in self._names),
                         stream=torch.cuda.current_stream().cuda_stream)
            return tuple(placed[name].clone() if name in self._shared and name not in out
                         else placed[name] for name in self.outputs)

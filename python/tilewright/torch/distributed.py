"""Ranks of PyTorch's process groups: a group of Tilewright's by their store, tensors that all ranks
reach, and whole tensors as the parts that ranks have.

    ranks = join()                                            # those of the default process group
    own, *others = tensors = empty(ranks, (4096, 1024), torch.bfloat16, "x", device="cuda")
    multiply = tilewright.Kernel("gemm_reduce_scatter", group=ranks)    # docs/distributed.md
"""

import math

import torch
import torch.distributed

from ..group import Group
from ._checks import refuse, sizes_text

_SHARDS = ("contiguous", "zig_zag")


def join(process_group=None, *, name="tilewright", **options):
    """The Group of a process group's ranks, which meet at its store. By all of them: it returns
    when all have come. `name` tells several groups of the same ranks apart; options as Group's."""
    group = process_group or torch.distributed.group.WORLD
    if group is None:
        refuse("there is no process group", "call torch.distributed.init_process_group() before")
    return Group.by_store(_store_of(group), key=name, rank=group.rank(), size=group.size(),
                          **options)


def _store_of(group):
    if hasattr(group, "get_group_store"):
        return group.get_group_store()
    return torch.distributed.distributed_c10d._get_process_group_store(group)


def empty(group, shape, dtype, name, *, device="cpu"):
    """A tensor that every rank has, and that all ranks of one machine reach: a list with that of
    each rank, this one's at [group.rank]. By all ranks. Its memory is the host's or a GPU's, stays
    while one of the list's tensors is there, and holds anything."""
    device = torch.device(device)
    on_gpu = device.type == "cuda"
    if not on_gpu and device.type != "cpu":
        refuse(f"device is {device}", "allocate on cpu or cuda")
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


def shard(whole, dim, ranks, how="contiguous"):
    """What each of so many ranks has of `whole`, along this axis: a list, of views where they are
    contiguous. Has gradients.

    contiguous  rank r the r-th run
    zig_zag     the r-th of as many runs as there are ranks, then the r-th from the end of as many
                more: under a causal mask every rank then has as much to do
    """
    _check_how(how)
    size = whole.shape[dim]
    if ranks < 1 or size % ranks != 0:
        refuse(f"axis {dim} of {sizes_text(whole)} is divided among {ranks} ranks",
               "pass an axis whose size is a multiple of the ranks")
    each = size // ranks
    if how == "contiguous":
        return list(whole.split(each, dim)) if each else [whole] * ranks
    return [torch.cat([whole.narrow(dim, start, count) for start, count in runs], dim)
            for runs in _zig_zag(each, ranks)]


def unshard(shards, dim, how="contiguous"):
    """The whole of what shard() gives. Has gradients."""
    _check_how(how)
    if len({tensor.shape for tensor in shards}) != 1:
        refuse("shards are " + ", ".join(sizes_text(tensor) for tensor in shards),
               "pass one of the same shape of each rank")
    if how == "contiguous":
        return torch.cat(list(shards), dim)
    each, ranks = shards[0].shape[dim], len(shards)
    runs = {}
    for tensor, places in zip(shards, _zig_zag(each, ranks)):
        (first, count), (second, rest) = places
        runs[first, 0] = tensor.narrow(dim, 0, count)
        runs[second, 1] = tensor.narrow(dim, count, rest)
    return torch.cat([runs[place] for place in sorted(runs)], dim)


def _zig_zag(each, ranks):
    """Of each rank the start and size of its two runs; the first has a row more where `each` is
    odd."""
    first, second = (each + 1) // 2, each // 2
    return [((rank * first, first), (ranks * first + (ranks - 1 - rank) * second, second))
            for rank in range(ranks)]


def _check_how(how):
    if how not in _SHARDS:
        refuse(f"how is {how!r}", "write " + " or ".join(_SHARDS))

"""Ranks of PyTorch's process groups: a group of Tilewright's by their store, operations over its
ranks with gradients, tensors that all ranks reach, and whole tensors as the parts that ranks have.

    ranks = join()                                            # those of the default process group
    y = gemm_reduce_scatter(x, weight.t(), group=ranks)       # all ranks call it, in the same order

On GPUs each rank has its own, and every call is queued on its current stream. On the host, for
tests, rank 0 computes for all of them.
"""

import torch
import torch.distributed

from ..group import Group
from ._checks import check_is_tensor, refuse, sizes_text
from ._over_ranks import (
    all_gather,
    all_gather_gemm,
    all_reduce,
    all_to_all,
    all_to_all_back,
    broadcast,
    gemm_reduce_scatter,
    reduce_scatter,
    sequence_parallel_attention,
)
from ._ranks import copies_of, empty

__all__ = ["all_gather", "all_gather_gemm", "all_reduce", "all_to_all", "all_to_all_back",
           "broadcast", "empty", "explain", "gemm_reduce_scatter", "join", "reduce_scatter",
           "sequence_parallel_attention", "shard", "unshard"]

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


def explain(group):
    """What the operations of a group have copied, beside what they do: a report, which prints as
    text. On a GPU results that other ranks write come by way of memory that the ranks share, unless
    out= has such memory of empty()."""
    return copies_of(group)


def shard(whole, dim, ranks, how="contiguous"):
    """What each of so many ranks has of `whole`, along this axis: a list, of views where they are
    contiguous. Has gradients.

    contiguous  rank r the r-th run
    zig_zag     the r-th of as many runs as there are ranks, then the r-th from the end of as many
                more: under a causal mask every rank then has as much to do
    """
    _check_how(how)
    check_is_tensor("whole", whole)
    if not -whole.dim() <= dim < whole.dim():
        refuse(f"dim is {dim}, and whole is {sizes_text(whole)}", "name an axis of whole")
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
    if isinstance(shards, torch.Tensor):
        refuse(f"shards is a tensor {sizes_text(shards)}", "pass a list, of each rank's")
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

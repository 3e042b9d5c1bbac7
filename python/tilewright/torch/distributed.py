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
from ._checks import refuse, short
from ._exchanges import all_to_all, all_to_all_back, projection_all_to_all
from ._over_nodes import all_gather_nodes, all_to_all_nodes, reduce_scatter_nodes
from ._over_ranks import (
    all_gather,
    all_gather_gemm,
    all_reduce,
    broadcast,
    gemm_reduce_scatter,
    reduce_scatter,
    sequence_parallel_attention,
)
from ._ranks import copies_of, empty, require_group
from ._shards import shard, unshard

__all__ = ["all_gather", "all_gather_gemm", "all_gather_nodes", "all_reduce", "all_to_all",
           "all_to_all_back", "all_to_all_nodes", "broadcast", "empty", "explain",
           "gemm_reduce_scatter", "join", "projection_all_to_all", "reduce_scatter",
           "reduce_scatter_nodes", "sequence_parallel_attention", "shard", "unshard"]


def join(process_group=None, *, name="tilewright", **options):
    """The Group of a process group's ranks, which meet at its store. By all of them: it returns
    when all have come. `name` tells several groups of the same ranks apart; options as Group's."""
    group = process_group or torch.distributed.group.WORLD
    if group is None:
        refuse("there is no process group", "call torch.distributed.init_process_group() before")
    if not isinstance(group, torch.distributed.ProcessGroup):
        refuse(f"process_group is {short(group)}",
               "pass what torch.distributed.new_group() gives, or leave it out")
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
    require_group(group)
    return copies_of(group)

"""Whole tensors as the parts that ranks have of one axis."""

import torch

from ._checks import check_integer, check_is_tensor, refuse, sizes_text

_SHARDS = ("contiguous", "zig_zag")


def shard(whole, dim, ranks, how="contiguous"):
    """What each of so many ranks has of `whole`, along this axis: a list, of views where they are
    contiguous. Has gradients.

    contiguous  rank r the r-th run
    zig_zag     the r-th of as many runs as there are ranks, then the r-th from the end of as many
                more: under a causal mask every rank then has as much to do
    """
    _check_how(how)
    check_is_tensor("whole", whole)
    _check_dim(dim, "whole", whole)
    check_integer("ranks", ranks, "set it to how many ranks there are")
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
    shards = list(shards)
    for tensor in shards:
        check_is_tensor("each of shards", tensor)
    if len({tensor.shape for tensor in shards}) != 1:
        refuse("shards are " + (", ".join(map(sizes_text, shards)) or "none"),
               "pass one of the same shape of each rank")
    _check_dim(dim, "a shard", shards[0])
    if how == "contiguous":
        return torch.cat(shards, dim)
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


def _check_dim(dim, name, tensor):
    fix = f"name an axis of {name}"
    check_integer("dim", dim, fix)
    if not -tensor.dim() <= dim < tensor.dim():
        refuse(f"dim is {dim}, and {name} is {sizes_text(tensor)}", fix)


def _check_how(how):
    if how not in _SHARDS:
        refuse(f"how is {how!r}", "write " + " or ".join(_SHARDS))

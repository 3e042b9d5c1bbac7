"""Collectives over ranks of several nodes as operators. The gradient of each is one of them too."""

from ..group import Group
from ._checks import check_integer, check_tensor, refuse
from ._over_ranks import (
    call_or_into,
    collective,
    define_collective,
    divided,
    gathered_shape,
    how_of,
    over,
    scattered_shape,
)


def _checked_nodes(nodes, group):
    fix = f"pass how many nodes the {group.size} ranks are on: a divisor"
    check_integer("nodes", nodes, fix)
    if nodes < 1 or group.size % nodes != 0:
        refuse(f"nodes is {nodes}, and there are {group.size} ranks", fix)
    return nodes


@over
def all_gather_nodes(x, *, nodes, group, out=None, target=None):
    """`all_gather` over nodes: between them each rank sends its own rows, then in its node what it
    has of all of them. Its gradient is reduce_scatter_nodes.

    nodes   how many there are, each of as many ranks, which follow each other
    """
    check_tensor("x", x, ("rows", "..."))
    return call_or_into(_all_gather, _gather, (x,), (_checked_nodes(nodes, group),), group, target,
                        out)


@over
def reduce_scatter_nodes(x, *, nodes, group, out=None, target=None):
    """`reduce_scatter` over nodes: a node's ranks add, in their order, and these sums are added in
    the order of the nodes, all in f32. Its gradient is all_gather_nodes."""
    check_tensor("x", x, ("rows", "..."))
    divided("number of rows of x", x.shape[0], group)
    return call_or_into(_reduce_scatter, _scatter, (x,), (_checked_nodes(nodes, group),), group,
                        target, out)


@over
def all_to_all_nodes(x, *, nodes, group, out=None, target=None):
    """Of x {ranks * rows, ...} each rank gets the part of its number from each of them, in their
    order: {ranks * rows, ...} again. Its gradient is another one."""
    check_tensor("x", x, ("rows", "..."))
    divided("number of rows of x", x.shape[0], group)
    return call_or_into(_all_to_all, _exchange, (x,), (_checked_nodes(nodes, group),), group,
                        target, out)


def _gather(x, nodes, group, target, out=None):
    shape = gathered_shape(x, group)
    return collective("all_gather_nodes", x.reshape(-1), shape, (_size(group), x.numel()), group,
                      target, out, nodes=nodes)


def _scatter(x, nodes, group, target, out=None):
    parts = x.reshape(_size(group), -1)
    return collective("reduce_scatter_nodes", parts, scattered_shape(x, group), parts.shape[1:],
                      group, target, out, nodes=nodes)


def _exchange(x, nodes, group, target, out=None):
    parts = x.reshape(_size(group), -1)
    return collective("all_to_all_nodes", parts, x.shape, parts.shape, group, target, out,
                      nodes=nodes)


def _size(group):
    return Group.named(group).size


def _define(name, implementation, shape, gradient):
    """An operator whose shape is shape(x, group), and whose gradient is that function's."""
    return define_collective(
        name + "(Tensor x, int nodes, str group, str target) -> Tensor", implementation,
        lambda x, nodes, group, *_: shape(x, group),
        lambda ctx, d_y: gradient(d_y, nodes=ctx.settings[0], **how_of(ctx)))


_all_gather = _define("all_gather_nodes", _gather, gathered_shape, reduce_scatter_nodes)
_reduce_scatter = _define("reduce_scatter_nodes", _scatter, scattered_shape, all_gather_nodes)
_all_to_all = _define("all_to_all_nodes", _exchange, lambda x, _: x.shape, all_to_all_nodes)

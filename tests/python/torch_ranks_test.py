"""Operations of tilewright.torch.distributed over ranks, and their gradients: processes of a gloo
group, each of which holds its own part against the whole in float64. On the host, and where there
are GPUs for them on those."""

import multiprocessing
import queue
import tempfile
import traceback
import unittest

import torch
import torch.distributed
from tilewright import TilewrightError
from tilewright.torch import distributed as ranks_of
from tilewright.torch.distributed import shard
from torch._dynamo.testing import CompileCounterWithBackend
from torch_reference import ALLOWED, attention, leaves, normal, opcheck

PATIENCE = 60
DEVICE, DTYPE = torch.device("cpu"), torch.float32  # of a rank


def work(rank, size, on_gpus, folder, names, answers):
    """What a rank does: some functions of this file, and what is wrong in each."""
    global DEVICE, DTYPE
    torch.set_num_threads(1)
    if on_gpus:
        DEVICE, DTYPE = torch.device("cuda", rank), torch.bfloat16
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                                         world_size=size)
    said = {}
    with ranks_of.join(patience=PATIENCE) as group:
        for name in names:
            try:
                globals()[name](group)
                group.barrier(f"the end of {name}")
                said[name] = ""
            except BaseException:  # whatever it is, the test says it
                said[name] = f"rank {rank}:\n{traceback.format_exc()}"
                break  # the ranks are no longer at the same place
        answers.put(said)
    torch.distributed.destroy_process_group()


def require(what, ours, wanted, times=1):
    assert ours.shape == wanted.shape, f"{what}: {ours.shape}, wanted {wanted.shape}"
    error = (ours.detach().cpu().double() - wanted).abs().max().item() if wanted.numel() else 0.0
    allowed = times * ALLOWED[ours.dtype] * max(wanted.abs().max().item(), 1) \
        if wanted.numel() else 0.0
    assert error <= allowed, f"{what}: {error} of {allowed} allowed"  # not, where it is NaN


def given(*tensors):
    """Of this rank, as it passes them."""
    return leaves(*(tensor.to(DEVICE, DTYPE) for tensor in tensors))


def whole(*shapes, seed=0):
    """In float64, with gradients, and no finer than what ranks pass."""
    return leaves(*(normal(*shape, seed=seed + i).to(DTYPE).double()
                    for i, shape in enumerate(shapes)))


def of_ranks(group, *shape, seed=0):
    """A tensor of each rank, the same list in all of them."""
    return whole(*[shape] * group.size, seed=7 * seed)


def collectives(group):
    xs = of_ranks(group, 2 * group.size, 8)
    wanted = {"all_gather": [torch.cat(xs)] * group.size,
              "reduce_scatter": shard(sum(xs), 0, group.size),
              "all_reduce": [sum(xs)] * group.size, "broadcast": [xs[0]] * group.size}
    for name, of_all in wanted.items():
        x, = given(xs[group.rank])
        y = getattr(ranks_of, name)(x, group=group)
        require(name, y, of_all[group.rank])
        seeds = of_ranks(group, *of_all[0].shape, seed=1)
        d_xs = torch.autograd.grad(of_all, xs, seeds, retain_graph=True, allow_unused=True)
        d_xs = [torch.zeros_like(x) if d_x is None else d_x for x, d_x in zip(xs, d_xs)]
        d_x, = torch.autograd.grad(y, x, given(seeds[group.rank])[0])
        require("gradient of " + name, d_x, d_xs[group.rank])
    shape = (x.shape[0] * group.size, 8)
    place = torch.full(shape, torch.nan, dtype=DTYPE, device=DEVICE)
    if DEVICE.type == "cuda":
        place = ranks_of.empty(group, shape, DTYPE, "place", device=DEVICE)[group.rank]
    with torch.no_grad():
        y = ranks_of.all_gather(x, group=group, out=place)
    assert y.data_ptr() == place.data_ptr()
    require("out", place, wanted["all_gather"][0])
    told = str(ranks_of.explain(group))
    assert f"all_gather {where_of_operations()}: 2 calls" in told and "copied" in told, told


def where_of_operations():
    return "on GPUs" if DEVICE.type == "cuda" else "on the host, by rank 0"


def over_nodes(group):
    """All ranks on one node, and each on its own."""
    size, own = group.size, group.rank
    xs = of_ranks(group, 2 * size, 3, 4)
    exchanged = [torch.cat([shard(x, 0, size)[rank] for x in xs]) for rank in range(size)]
    wanted = {"all_gather_nodes": [torch.cat(xs)] * size,
              "reduce_scatter_nodes": shard(sum(xs), 0, size), "all_to_all_nodes": exchanged}
    for name, of_all in wanted.items():
        seeds = of_ranks(group, *of_all[0].shape, seed=1)
        d_xs = torch.autograd.grad(of_all, xs, seeds, retain_graph=True)
        for nodes in {1, size}:
            x, = given(xs[own])
            y = getattr(ranks_of, name)(x, nodes=nodes, group=group)
            require(f"{name} over {nodes} nodes", y, of_all[own])
            d_x, = torch.autograd.grad(y, x, given(seeds[own])[0])
            require(f"gradient of {name} over {nodes} nodes", d_x, d_xs[own])
    assert f"all_to_all_nodes {where_of_operations()}" in str(ranks_of.explain(group))


def products(group):
    size = group.size
    on_host = ((3, 5, 4), (1, 1, 1), (16, 24, 40))
    for rows, n, k in on_host if DEVICE.type == "cpu" else ((8, 16, 32), (136, 256, 72)):
        a, b = of_ranks(group, size * rows, k), of_ranks(group, n, k, seed=5)
        summed = shard(sum(x @ y.t() for x, y in zip(a, b)), 0, size)
        seeds = of_ranks(group, rows, n, seed=9)
        wanted = torch.autograd.grad(summed, [*a, *b], seeds)
        x, weight, seed = given(*(each[group.rank] for each in (a, b, seeds)))
        c = ranks_of.gemm_reduce_scatter(x, weight.t(), group=group)
        require("gemm_reduce_scatter", c, summed[group.rank])
        d_x, d_weight = torch.autograd.grad(c, [x, weight], seed)
        require("its gradient of a", d_x, wanted[group.rank])
        require("its gradient of b", d_weight, wanted[size + group.rank])

        summed = shard(sum(x @ y.t() for x, y in zip(a, b)) * 0.5, 0, size)
        bias, = whole((n,), seed=2)
        wanted = torch.autograd.grad([each + bias for each in summed], [*a, *b, bias], seeds)
        own_bias = bias.detach().to(DEVICE, DTYPE).requires_grad_()
        c = ranks_of.gemm_reduce_scatter(x, weight.t(), bias=own_bias, group=group,
                                         scale=torch.tensor([0.5], device=DEVICE))
        require("with scale and bias", c, summed[group.rank] + bias)
        found = torch.autograd.grad(c, [x, weight, own_bias], seed)
        for what, d, of_whole in zip(
                ("a", "b", "bias"), found,
                (wanted[group.rank], wanted[size + group.rank], wanted[-1])):
            require(f"with scale and bias, gradient of {what}", d, of_whole)

        a = of_ranks(group, rows, k, seed=3)
        gathered = [torch.cat(a) @ y.t() for y in b]
        seeds = of_ranks(group, size * rows, n, seed=4)
        wanted = torch.autograd.grad(gathered, [*a, *b], seeds)
        x, seed = given(a[group.rank], seeds[group.rank])
        c = ranks_of.all_gather_gemm(x, weight.t(), group=group)
        require("all_gather_gemm", c, gathered[group.rank])
        d_x, d_weight = torch.autograd.grad(c, [x, weight], seed)
        require("its gradient of a", d_x, wanted[group.rank])
        require("its gradient of b", d_weight, wanted[size + group.rank])
    # What only one of the operands asks for is computed alone, by all ranks.
    c = ranks_of.all_gather_gemm(x.detach(), weight.t(), group=group)
    assert torch.autograd.grad(c, weight, torch.ones_like(c))[0].shape == weight.shape


def exchanges(group):
    """Attention by all_to_all and back, which is attention to the whole."""
    size = group.size
    for kv_heads in (2 * size, size, 1):
        inputs = whole((2, 3 * size, 2 * size, 16), (2, 5 * size, kv_heads, 16),
                       (2, 5 * size, kv_heads, 8))
        out, _ = attention(*inputs)
        seed, = whole(out.shape, seed=5)
        wanted = torch.autograd.grad(out, inputs, seed)

        def mine(tensor):
            return shard(tensor, 1, size)[group.rank]

        q, k, v, d_out = given(*map(mine, (*inputs, seed)))
        of_heads, _ = attention(*ranks_of.all_to_all(q, k, v, group=group))
        back = ranks_of.all_to_all_back(of_heads.to(DTYPE), group=group)
        require("attention", back, mine(out))
        for name, d, of_whole in zip("qkv", torch.autograd.grad(back, [q, k, v], d_out), wanted):
            require(f"its gradient of {name} with {kv_heads} heads", d, mine(of_whole), times=2)


def own_heads(tensor, group):
    """Of the last axes, heads and dim."""
    heads = tensor.shape[-2]
    count = max(heads // group.size, 1)
    first = group.rank * heads // group.size
    return tensor[..., first:first + count, :]


def exchanges_packed(group):
    """Each rank has parts of three sequences, and rows of none behind them."""
    size, tokens = group.size, 7
    ends = [[0, 2 + rank % 2, 2 + rank % 2, 6 - rank % 3] for rank in range(size)]
    parts = torch.tensor(ends, dtype=torch.int32, device=DEVICE)
    full = torch.tensor([[0, 2, 4, tokens]] * size, dtype=torch.int32, device=DEVICE)
    for kv_heads in (2 * size, 1):
        inputs = whole((size, tokens, 2 * size, 16), *[(size, tokens, kv_heads, 16)] * 2)
        rows = [(rank, row) for b in range(3) for rank in range(size)
                for row in range(ends[rank][b], ends[rank][b + 1])]
        wanted, seeds = [], []
        for number, tensor in enumerate(inputs):
            of_rows = [tensor[rank, row] for rank, row in rows]
            of_none = [torch.zeros_like(of_rows[0])] * (size * tokens - len(rows))
            wanted.append(torch.stack(of_rows + of_none))
            heads = max(wanted[-1].shape[-2], size)
            seeds.append(whole((size * tokens, heads, 16), seed=5 + number)[0])
        each = [seed.unflatten(-2, (right.shape[-2], -1)).sum(-2)  # of ranks with the same head
                for right, seed in zip(wanted, seeds)]
        exact = torch.autograd.grad(wanted, inputs, each)

        own = given(*(tensor[group.rank] for tensor in inputs))
        filled = ranks_of.all_to_all(*own, cu_seqlens=full, group=group)[0].detach()
        assert torch.equal(ranks_of.all_to_all_back(filled, cu_seqlens=full, group=group), own[0])
        got = ranks_of.all_to_all(*own, cu_seqlens=parts, group=group)
        for name, mine, right in zip("qkv", got, wanted):
            require(f"{name} of {kv_heads} heads", mine, own_heads(right, group))
        d_all = [own_heads(seed, group).to(mine) for seed, mine in zip(seeds, got)]
        for name, d, right in zip("qkv", torch.autograd.grad(got, own, d_all), exact):
            require(f"gradient of {name}", d, right[group.rank])
        back = ranks_of.all_to_all_back(got[0].detach(), cu_seqlens=parts, group=group)
        inside = torch.arange(tokens, device=DEVICE) < ends[group.rank][-1]
        assert torch.equal(back, own[0].where(inside[:, None, None], 0))
        through, = given(got[0].detach())
        d_back, = torch.autograd.grad(
            ranks_of.all_to_all_back(through, cu_seqlens=parts, group=group), through, own[0])
        assert torch.equal(d_back, got[0])


def projects(group):
    size, dim, width = group.size, 16, 24
    for kv_heads, packed in ((2 * size, False), (1, False), (size, True)):
        heads, rows = 2 * size, (2 * size + 2 * kv_heads) * dim
        shape = (size * 4, width) if packed else (2, size * 4, width)
        x, weight, bias = whole(shape, (rows, width), (rows,))
        y = (x @ weight.t() + bias).unflatten(-1, (-1, dim))
        wanted = y.split([heads, kv_heads, kv_heads], -2)
        seeds = whole(*((*shape[:-1], max(right.shape[-2], size), dim) for right in wanted),
                      seed=5)
        each = [seed.unflatten(-2, (right.shape[-2], -1)).sum(-2)
                for right, seed in zip(wanted, seeds)]
        exact = torch.autograd.grad(wanted, (x, weight, bias), each)
        axis, options = len(shape) - 2, {}
        if packed:  # one sequence, of which each rank has as much
            options["cu_seqlens"] = torch.tensor([[0, 4]] * size, dtype=torch.int32, device=DEVICE)
        own = given(shard(x, axis, size)[group.rank], weight, bias)
        got = ranks_of.projection_all_to_all(*own[:2], bias=own[2], heads=heads, kv_heads=kv_heads,
                                             group=group, **options)
        for name, mine, right in zip("qkv", got, wanted):
            require(f"{name} of {kv_heads} heads", mine, own_heads(right, group), times=2)
        d_all = [own_heads(seed, group).to(mine) for seed, mine in zip(seeds, got)]
        d_x, *others = torch.autograd.grad(got, own, d_all)
        require("gradient of x", d_x, shard(exact[0], axis, size)[group.rank], times=2)
        for name, mine, right in zip(("weight", "bias"), others, exact[1:]):
            require(f"gradient of {name}", ranks_of.all_reduce(mine, group=group), right, times=2)


def attends(group):
    size = group.size
    for options, shards, sunk in (
            ({}, "contiguous", False), ({"causal": True}, "zig_zag", False),
            ({"causal": True, "window": 3, "softcap": 2.0}, "contiguous", True),
            ({"scale": 0.3}, "zig_zag", True), ({"causal": True, "ring": True}, "zig_zag", True)):
        length, dim = (4, 16) if DEVICE.type == "cpu" else (192, 64)
        ring = options.pop("ring", False)
        kv_heads = 1 if ring else size  # the others have heads of their own
        inputs = whole((2, length * size, 2 * size, dim),
                       *[(2, length * size, kv_heads, dim)] * 2)
        sinks = leaves(normal(2 * size, seed=3).double()) if sunk else []
        out, lse = attention(*inputs, sinks=sinks[0] if sunk else None, **options)
        seeds = whole(out.shape, lse.shape, seed=5)
        wanted = torch.autograd.grad((out, lse), inputs + sinks, seeds)

        def mine(tensor, axis=1, how=shards):
            return shard(tensor, axis, size, how)[group.rank]

        own = given(*map(mine, inputs))
        own_sinks = leaves(*(tensor.float().to(DEVICE) for tensor in sinks))
        o, own_lse = ranks_of.sequence_parallel_attention(
            *own, group=group, shards=shards, sinks=own_sinks[0] if sunk else None, ring=ring,
            return_lse=True, **options)
        require(f"attention {options}", o, mine(out))
        require(f"its log-sum-exp {options}", own_lse, mine(lse, 2), times=4)
        d_o, = given(mine(seeds[0]))
        d_l = mine(seeds[1], 2).float().to(DEVICE)
        found = torch.autograd.grad((o, own_lse), own + own_sinks, (d_o, d_l))
        for name, d, of_whole in zip("qkv", found, wanted):
            require(f"gradient of {name} {options}", d, mine(of_whole))
        if sunk:
            exact = DTYPE == torch.float32
            require(f"gradient of sinks {options}", found[3] if exact else found[3].to(DTYPE),
                    wanted[3])


def attends_packed(group):
    """Sequences that begin anywhere, tokens of none behind them; heads that do not divide."""
    size, length = group.size, 12 if DEVICE.type == "cpu" else 160
    dim, kv_heads = (16, 1) if DEVICE.type == "cpu" else (64, 1)
    total = length * size
    offsets = torch.tensor([2, 5, 5, total - 3], dtype=torch.int32)
    inputs = whole((total, 2, dim), *[(total, kv_heads, dim)] * 2)
    runs = list(zip(offsets[:-1].tolist(), offsets[1:].tolist()))
    out = torch.cat([torch.zeros(2, 2, dim, dtype=torch.float64),
                     *(attention(*(each[None, begin:end] for each in inputs), causal=True)[0][0]
                       for begin, end in runs), torch.zeros(3, 2, dim, dtype=torch.float64)])
    seed, = whole(out.shape, seed=5)
    wanted = torch.autograd.grad(out, inputs, seed)
    for shards, ring in (("contiguous", False), ("zig_zag", True)):
        def mine(tensor, how=shards):
            return shard(tensor, 0, size, how)[group.rank]

        own = given(*map(mine, inputs))
        o = ranks_of.sequence_parallel_attention(
            *own, group=group, shards=shards, causal=True, ring=ring,
            cu_seqlens=offsets.to(DEVICE))
        require(f"packed attention, ring={ring}", o, mine(out))
        found = torch.autograd.grad(o, own, given(mine(seed))[0])
        for name, d, of_whole in zip("qkv", found, wanted):
            require(f"its gradient of {name}, ring={ring}", d, mine(of_whole))


def trains(group):
    """A layer that is divided both ways: its whole gradient, from each rank's part."""
    size = group.size
    inputs = whole((8 * size, 16), (8 * size, 16), (16, 8 * size))
    x, up, down = inputs
    y = torch.nn.functional.silu(x @ up.t()) @ down.t()
    wanted = torch.autograd.grad(y.square().sum(), inputs)
    axes = (0, 0, 1)
    own = given(*(shard(t, axis, size)[group.rank] for t, axis in zip(inputs, axes)))
    own_x, own_up, own_down = own
    middle = torch.nn.functional.silu(ranks_of.all_gather_gemm(own_x, own_up.t(), group=group))
    out = ranks_of.gemm_reduce_scatter(middle, own_down.t(), group=group)
    found = torch.autograd.grad(out.float().square().sum(), own)
    for name, d, of_whole, axis in zip(("x", "up", "down"), found, wanted, axes):
        require("gradient of " + name, d, shard(of_whole, axis, size)[group.rank], times=4)


def compiled(group):
    """One graph, whatever the lengths, with the bits of eager calls."""
    size = group.size
    counter = CompileCounterWithBackend("aot_eager")

    offsets = torch.tensor([1, 3, 3 * size], dtype=torch.int32)

    def layer(x, up, down):
        hidden = ranks_of.all_gather_gemm(x, up.t(), group=group)
        q = hidden.view(1, x.shape[0] * size, 2, 16)
        o = ranks_of.sequence_parallel_attention(q, q, q, group=group, causal=True)
        o = o + ranks_of.sequence_parallel_attention(q[0], q[0], q[0], group=group, ring=True,
                                                     cu_seqlens=offsets)
        q, k, v = ranks_of.all_to_all(o, o, o, group=group)
        q = q + ranks_of.projection_all_to_all(o.flatten(2), up.repeat(2, 2), heads=2, kv_heads=1,
                                               group=group)[0]
        o = ranks_of.all_to_all_back(q + k * v, group=group)
        y = ranks_of.gemm_reduce_scatter(o.reshape(x.shape[0] * size, 32), down.t(), group=group)
        y = ranks_of.all_gather(ranks_of.reduce_scatter(ranks_of.all_gather(y, group=group),
                                                        group=group), group=group)
        return ranks_of.broadcast(ranks_of.all_reduce(y, group=group), group=group)

    in_one_graph = torch.compile(layer, fullgraph=True, dynamic=True, backend=counter)
    first = 0  # how often the first call compiles
    for rows in (4, 6, 10):
        own = given(normal(rows, 16, seed=group.rank), normal(32, 16, seed=9 + group.rank),
                    normal(16, 32, seed=20 + group.rank))
        results = [f(*own) for f in (layer, in_one_graph)]
        gradients = [torch.autograd.grad(y.square().sum(), own) for y in results]
        assert torch.equal(*results), rows
        for ours, eager in zip(*gradients):
            assert torch.equal(ours, eager), rows
        first = first or counter.frame_count
    assert counter.frame_count == first, (first, counter.frame_count)


def operators(group):
    """PyTorch's own checks, in which all ranks call the same operators in the same order."""
    ops = torch.ops.tilewright
    size = group.size
    x, b, bias, scale = normal(2 * size, 6), normal(6, 5), normal(5), torch.tensor([0.5])
    q, k, v = normal(1, size, 4, 8), normal(1, size, 2, 8, seed=1), normal(1, size, 2, 8, seed=2)
    how, masked = (group.name, ""), (True, 0, 0.0, 0.0, "contiguous", False)
    offsets = [torch.tensor([0, 1, size * size], dtype=torch.int32)] * 2
    dense, packed = (q, k, v, None, None, None), (q[0], k[0], v[0], None, *offsets)
    cases = {"all_gather": (x,), "reduce_scatter": (x,), "all_reduce": (x,), "broadcast": (x, 0),
             "all_gather_nodes": (x, 2), "reduce_scatter_nodes": (x, 2),
             "all_to_all_nodes": (x, size),
             "gemm_reduce_scatter": (x, b, bias, scale), "all_gather_gemm": (x, b),
             "all_to_all": (q, k, v, None, None), "all_to_all_back": (q, None),
             "projection_all_to_all": (normal(2, 4, 6), normal(8, 6), normal(8), None, 2, 1),
             "sequence_parallel_attention": (*dense, *masked)}
    cases = list(cases.items()) + [("sequence_parallel_attention", (*packed, *masked))]
    for passed in (dense, packed):
        out, lse = ops.sequence_parallel_attention(*passed, *masked, *how)
        cases.append(("sequence_parallel_attention_backward",
                      (passed[0], None, *passed, out, lse, *masked)))
    for name, passed in cases:
        own = [t.clone().requires_grad_(t is not scale and not name.endswith("backward"))
               if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in passed]
        opcheck(getattr(ops, name).default, (*own, *how))


def refusals(group):
    def refused(call, *parts):
        try:
            call()
        except TilewrightError as error:
            for part in (*parts, "fix: "):
                assert part in str(error), f"{part} is not in {error}"
        else:
            raise AssertionError(f"nothing is refused: {parts}")

    x = normal(4, 4)
    refused(lambda: ranks_of.all_gather(normal(2 + group.rank, 3), group=group),
            "rank 1 passes X {9} f32, and rank 0 passes X {6} f32")
    refused(lambda: ranks_of.gemm_reduce_scatter(normal(3, 4), x, group=group),
            "number of rows of a is 3", "2 ranks")
    refused(lambda: ranks_of.all_gather_gemm(x, normal(3, 4), group=group), "the k of b is 3")
    refused(lambda: ranks_of.all_to_all(*[normal(1, 2, 3, 4)] * 3, group=group),
            "number of heads of q is 3")
    refused(lambda: ranks_of.sequence_parallel_attention(*[normal(1, 2, 2, 4)] * 3, group=group,
                                                         shards="random"), "'random'", "zig_zag")
    for rows in (2, 3):  # both sizes are known then, and nobody makes anything for them
        ranks_of.all_gather(normal(rows, 3), group=group)
    refused(lambda: ranks_of.all_gather(normal(2 + group.rank, 3), group=group),
            "rank 1 passes X {9} f32, and rank 0 passes X {6} f32")
    dense = [normal(1, 4, 2, 4)] * 3
    refused(lambda: ranks_of.sequence_parallel_attention(*dense, group=group,
                                                         causal=group.rank == 0),
            "rank 1 passes causal=False, and rank 0 passes causal=True")
    packed = [normal(4, 2, 4)] * 3
    refused(lambda: ranks_of.sequence_parallel_attention(
        *packed, group=group, cu_seqlens=torch.tensor([0, 3 + group.rank], dtype=torch.int32)),
        "rank 1 passes cu_seqlens [0, 4] and [0, 4], and rank 0 passes [0, 3] and [0, 3]")
    refused(lambda: ranks_of.sequence_parallel_attention(
        *packed, group=group, cu_seqlens=torch.tensor([0, 99], dtype=torch.int32)),
        "[0, 99], of 8 rows")
    refused(lambda: ranks_of.sequence_parallel_attention(*packed, group=group), "q")
    refused(lambda: ranks_of.sequence_parallel_attention(*[normal(1, 2, 2, 4)] * 3, group=group,
                                                         ring="yes"), "ring is 'yes'")
    parts = torch.tensor([[0, 4], [0, 4 + group.rank]], dtype=torch.int32)
    refused(lambda: ranks_of.all_to_all(*packed, group=group, cu_seqlens=parts),
            "rank 1 passes cu_seqlens [[0, 4], [0, 5]] and", "the same in all ranks")
    refused(lambda: ranks_of.all_to_all_back(packed[0], group=group, cu_seqlens=parts[:1]),
            "shape (1, 2)", "{2, sequences + 1}")
    parts[:] = torch.tensor([[0, 4], [0, 9]])
    project = ranks_of.projection_all_to_all
    refused(lambda: project(normal(4, 6), normal(12, 6), heads=2, cu_seqlens=parts, group=group),
            "cu_seqlens of rank 1 is [0, 9], of 4 rows")
    refused(lambda: project(normal(1, 4, 6), normal(13, 6), heads=2, group=group), "13 rows")
    refused(lambda: project(normal(1, 4, 6), normal(12, 6), heads=3, group=group), "heads is 3")
    refused(lambda: project(normal(1, 4, 6), normal(12, 6), heads="2", group=group), "heads is")
    refused(lambda: ranks_of.all_gather(leaves(x)[0], group=group, out=x), "out is given")
    refused(lambda: ranks_of.broadcast(x, root=2, group=group), "root is 2", "below 2")
    refused(lambda: ranks_of.all_gather_nodes(x, nodes=3, group=group), "nodes is 3", "2 ranks")
    refused(lambda: ranks_of.all_to_all_nodes(x, nodes="2", group=group), "nodes is", "divisor")
    refused(lambda: ranks_of.reduce_scatter_nodes(x[:3], nodes=2, group=group),
            "number of rows of x is 3")
    refused(lambda: ranks_of.all_gather_nodes(x, nodes=1 + group.rank, group=group),
            "rank 1 passes nodes=2, and rank 0 passes nodes=1")
    for name, said in (("bias", "the n of bias"), ("scale", "scale is {3}")):
        given = {name: normal(3)}
        refused(lambda g=given: ranks_of.gemm_reduce_scatter(x, x, group=group, **g), said)
    refused(lambda: ranks_of.all_gather(x, group=group, out=normal(4, 4)), "out is {4, 4}",
            "{8, 4}")
    refused(lambda: ranks_of.all_reduce(x, group=group, target="sim:sm_1"), "sm_1")
    # Each tensor of each function, as it is not taken.
    heads = normal(1, 4, 2, 4)
    for name, given, more in (
            ("all_gather", {"x": x}, {}), ("reduce_scatter", {"x": x}, {}),
            ("all_reduce", {"x": x}, {}), ("broadcast", {"x": x}, {}),
            ("all_gather_nodes", {"x": x}, {"nodes": 1}),
            ("reduce_scatter_nodes", {"x": x}, {"nodes": 1}),
            ("all_to_all_nodes", {"x": x}, {"nodes": 1}),
            ("gemm_reduce_scatter", {"a": x, "b": x, "bias": normal(4)}, {}),
            ("all_gather_gemm", {"a": x, "b": x}, {}),
            ("all_to_all", {"q": heads, "k": heads, "v": heads}, {}),
            ("all_to_all_back", {"o": heads}, {}),
            ("projection_all_to_all", {"x": normal(1, 4, 6), "weight": normal(12, 6),
                                       "bias": normal(12)}, {"heads": 2}),
            ("sequence_parallel_attention", {"q": heads, "k": heads, "v": heads}, {})):
        for each in given:
            for wrong, said in ((given[each].long(), f"{each} has elements of torch.int64"),
                                (given[each].to_sparse(), f"{each} is torch.sparse_coo")):
                refused(lambda n=name, g={**given, each: wrong}, m=more: getattr(ranks_of, n)(
                    **g, **m, group=group), said)


def said_by_ranks(size, names, on_gpus=False):
    """By each function's name what is wrong in some ranks. All are called in the same processes,
    which take long to start."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=work, args=(rank, size, on_gpus, folder, names, answers))
                 for rank in range(size)]
        for process in ranks:
            process.start()
        wrong = {name: [] for name in names}
        try:
            for said in (answers.get(timeout=240) for _ in ranks):
                for name in names:
                    wrong[name] += filter(None, [said.get(name, "it was not reached")])
        except queue.Empty:
            wrong[names[0]].append("a rank says nothing")
        for process in ranks:
            process.join(10)
            process.kill()
    return wrong


class TwoRanks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.wrong = said_by_ranks(2, ["collectives", "over_nodes", "products", "exchanges",
                                      "exchanges_packed", "projects", "attends", "attends_packed",
                                      "trains", "compiled", "operators", "refusals"])

    def test_collectives(self):
        self.assertEqual(self.wrong["collectives"], [])

    def test_collectives_over_nodes(self):
        self.assertEqual(self.wrong["over_nodes"], [])

    def test_products(self):
        self.assertEqual(self.wrong["products"], [])

    def test_exchanges(self):
        self.assertEqual(self.wrong["exchanges"], [])

    def test_packed_exchanges(self):
        self.assertEqual(self.wrong["exchanges_packed"], [])

    def test_projections(self):
        self.assertEqual(self.wrong["projects"], [])

    def test_attention(self):
        self.assertEqual(self.wrong["attends"], [])

    def test_packed_attention(self):
        self.assertEqual(self.wrong["attends_packed"], [])

    def test_a_layer_in_training(self):
        self.assertEqual(self.wrong["trains"], [])

    def test_compiled_in_one_graph(self):
        self.assertEqual(self.wrong["compiled"], [])

    def test_opcheck(self):
        self.assertEqual(self.wrong["operators"], [])

    def test_what_cannot_be_done(self):
        self.assertEqual(self.wrong["refusals"], [])


class MoreRanks(unittest.TestCase):
    maxDiff = None

    def test_three(self):
        names = ["collectives", "over_nodes", "products", "exchanges", "exchanges_packed",
                 "projects", "attends_packed"]
        self.assertEqual(said_by_ranks(3, names), {name: [] for name in names})

    def test_on_gpus(self):
        if torch.cuda.device_count() < 2:
            self.skipTest("there are no two GPUs")
        names = ["collectives", "products", "exchanges", "exchanges_packed", "projects", "attends",
                 "attends_packed", "trains"]
        for size in {2, min(torch.cuda.device_count(), 4)}:
            with self.subTest(ranks=size):
                self.assertEqual(said_by_ranks(size, names, on_gpus=True),
                                 {name: [] for name in names})

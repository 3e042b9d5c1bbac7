"""Exchanges and collectives over ranks: what one rank has of a row of gpu_distributed.py that
multiplies nothing, and NCCL on it."""

import torch
import torch.distributed as dist

from distributed_products import gathered

OPERATIONS = ("all_to_all", "all_to_all_back", "all_gather", "reduce_scatter", "all_reduce",
              "broadcast")
SIZES = "1 38 256".split()  # MiB: the larger of what a rank passes and what it gets
SCHEDULES = {"all_to_all": ("push", "copy"), "all_to_all_back": ("push", "copy"),
             "all_gather": ("push",), "reduce_scatter": ("push",),
             "all_reduce": ("one_shot", "two_shots"), "broadcast": ("one_shot", "two_shots")}
# Of the packed Q, K and V: 8 KiB for each token. O has as many.
HEADS, KV_HEADS, DIM = 16, 8, 128
ALL_HEADS = HEADS + 2 * KV_HEADS
MIB = 1 << 20


def bytes_that_leave(operation, mib, ranks):
    """A rank, as few as can be."""
    share = {"all_reduce": 2 * (ranks - 1) / ranks, "broadcast": 1}.get(operation,
                                                                      (ranks - 1) / ranks)
    return share * float(mib) * MIB


class ExchangeSide:
    """NCCL exchanges parts that lie in one piece: heads are packed before it, or behind it on the
    way back, by a copy on the GPU."""

    def __init__(self, operation, mib, ranks, device, symmetric):
        def empty(*shape):
            return torch.empty(*shape, device=device, dtype=torch.bfloat16)

        self.operation, self.ranks, self.rank = operation, ranks, dist.get_rank()
        elements = int(float(mib) * MIB) // 2
        self.heads = {}
        if operation == "all_to_all":
            tokens = elements // (ALL_HEADS * DIM)
            self.heads = {"heads": HEADS, "kv_heads": KV_HEADS, "dim": DIM, "dim_v": DIM}
            shapes = [(1, tokens, heads, DIM) for heads in (HEADS, KV_HEADS, KV_HEADS)]
            results = [(1, tokens * ranks, shape[2] // ranks, DIM) for shape in shapes]
        elif operation == "all_to_all_back":
            tokens = elements // (ALL_HEADS * DIM)
            self.heads = {"heads": ALL_HEADS, "dim_v": DIM}
            shapes = [(1, tokens * ranks, ALL_HEADS // ranks, DIM)]
            results = [(1, tokens, ALL_HEADS, DIM)]
        else:
            part = elements // ranks
            shapes = [{"all_gather": (part,), "reduce_scatter": (ranks, part)}.get(
                operation, (elements,))]
            results = [{"all_gather": (ranks, part), "reduce_scatter": (part,)}.get(
                operation, (elements,))]
        self.inputs = [empty(*shape).normal_() for shape in shapes]
        self.results = [symmetric(*shape) for shape in results]
        if operation.startswith("all_to_all"):
            self.tokens = empty(tokens, ranks, ALL_HEADS // ranks, DIM).normal_()
            self.packed = empty(ranks, tokens, ALL_HEADS // ranks, DIM).normal_()
            self.other = torch.empty_like(self.packed)

    def options(self):
        return {**self.heads, **({"root": 0} if self.operation == "broadcast" else {})}

    def tensors(self):
        """Of ours."""
        return self.inputs + self.results

    def outputs(self):
        return self.results

    def wanted(self):
        all_of = [gathered(own, self.ranks) for own in self.inputs]
        if self.operation == "all_to_all":
            return [torch.cat([of_rank.chunk(self.ranks, 2)[self.rank] for of_rank in each], 1)
                    for each in all_of]
        if self.operation == "all_to_all_back":
            return [torch.cat([of_rank.chunk(self.ranks, 1)[self.rank] for of_rank in all_of[0]],
                              2)]
        if self.operation == "all_gather":
            return [all_of[0]]
        if self.operation == "broadcast":
            return [all_of[0][0]]
        scatters = self.operation == "reduce_scatter"
        total = torch.zeros_like(self.results[0], dtype=torch.float32)
        for part in all_of[0]:  # in the order of the ranks
            total += (part[self.rank] if scatters else part).float()
        return [total.bfloat16()]

    def error(self):
        """How many elements have other bits than they should."""
        return sum((result.view(torch.int16) != wanted.view(torch.int16)).sum().item()
                   for result, wanted in zip(self.results, self.wanted()))

    def launches(self, _):
        def collective():
            if self.operation.startswith("all_to_all"):
                dist.all_to_all_single(self.other, self.packed)
            elif self.operation == "all_gather":
                dist.all_gather_into_tensor(self.results[0], self.inputs[0])
            elif self.operation == "reduce_scatter":
                dist.reduce_scatter_tensor(self.results[0], self.inputs[0])
            elif self.operation == "all_reduce":
                dist.all_reduce(self.results[0])
            else:
                dist.broadcast(self.results[0], 0)

        def in_turn():
            if self.operation == "all_to_all":
                self.packed.copy_(self.tokens.transpose(0, 1))
            collective()
            if self.operation == "all_to_all_back":
                self.tokens.transpose(0, 1).copy_(self.other)

        return {"collective": collective, "in turn": in_turn}

"""Products over ranks: what one rank has of a row of gpu_distributed.py, and the peers on it."""

import torch
import torch.distributed as dist

import measure


def gathered(tensor, ranks):
    """All ranks' tensors."""
    all_of = torch.empty(ranks, *tensor.shape, dtype=tensor.dtype, device=tensor.device)
    dist.all_gather_into_tensor(all_of, tensor.contiguous())
    return all_of


class ProductSide:
    def __init__(self, operation, m, n, k, ranks, device, _):
        def normal(*shape):
            return torch.randn(*shape, device=device, dtype=torch.bfloat16)

        def empty(*shape):
            return torch.empty(*shape, device=device, dtype=torch.bfloat16)

        self.ranks, self.rank = ranks, dist.get_rank()
        self.scatters = operation == "gemm_reduce_scatter"
        if self.scatters:
            self.a, self.b = normal(m, k // ranks), normal(n, k // ranks)
            self.product, self.c = empty(m, n), empty(m // ranks, n)
        else:
            self.a, self.b = normal(m // ranks, k), normal(n // ranks, k)
            self.all_a, self.product = empty(m, k), empty(m, n // ranks)

    def options(self):
        return {}

    def tensors(self):
        """Of ours."""
        if self.scatters:
            return self.a.unflatten(0, (self.ranks, -1)), self.b, self.c
        return self.a, self.b, self.product.unflatten(0, (self.ranks, -1))

    def outputs(self):
        return [self.tensors()[2]]

    def alone(self):
        return "gemm", {}, (self.a if self.scatters else self.all_a, self.b, self.product)

    def error(self):
        """Against f32."""
        if not self.scatters:
            wanted = gathered(self.a, self.ranks).flatten(0, 1).float() @ self.b.float().T
            return measure.relative_rms(self.product, wanted.double())
        # Of each rank the rows of A that are this rank's, and B.
        rows = torch.empty_like(self.a)
        dist.all_to_all_single(rows, self.a)
        wanted = torch.zeros_like(self.c, dtype=torch.float32)
        for a, b in zip(rows.chunk(self.ranks), gathered(self.b, self.ranks)):
            wanted += a.float() @ b.float().T
        return measure.relative_rms(self.c, wanted.double())

    def launches(self, group):
        def collective():
            if self.scatters:
                dist.reduce_scatter_tensor(self.c, self.product)
            else:
                dist.all_gather_into_tensor(self.all_a, self.a)

        def gemm():
            torch.mm(self.a if self.scatters else self.all_a, self.b.T, out=self.product)

        def in_turn():
            first, second = (gemm, collective) if self.scatters else (collective, gemm)
            first()
            second()

        def fused():
            if self.scatters:
                torch.ops.symm_mem.fused_matmul_reduce_scatter(self.a, self.b.T, "sum", 0, group)
            else:
                torch.ops.symm_mem.fused_all_gather_matmul(self.a, [self.b.T], 0, group)

        return {"gemm": gemm, "collective": collective, "in turn": in_turn, "fused": fused}


class ProjectionSide:
    """Heads of 128 columns, two of Q for each of K and of V. NCCL exchanges parts that lie in one
    piece: what the product gives is packed by a copy before it."""

    def __init__(self, _, m, n, k, ranks, device, symmetric):
        def normal(*shape):
            return torch.randn(*shape, device=device, dtype=torch.bfloat16)

        self.ranks, self.rank = ranks, dist.get_rank()
        self.heads, self.kv_heads = n // 256, n // 512
        tokens = m // ranks
        self.x, self.w = normal(1, tokens, k), normal(n, k)
        self.results = [symmetric(1, m, heads // ranks, 128)
                        for heads in (self.heads, self.kv_heads, self.kv_heads)]
        self.product = torch.empty(tokens, n, device=device, dtype=torch.bfloat16)
        self.packed = torch.empty(ranks, tokens, n // ranks, device=device, dtype=torch.bfloat16)
        self.other = torch.empty_like(self.packed)

    def options(self):
        return {"heads": self.heads, "kv_heads": self.kv_heads, "dim": 128}

    def tensors(self):
        """Of ours."""
        return self.x, self.w, *self.results

    def outputs(self):
        return self.results

    def alone(self):
        return "gemm", {}, (self.x.flatten(0, 1), self.w, self.product)

    def error(self):
        """Against f32, the worst of the three."""
        worst, first = 0, 0
        parts = [gathered(each, self.ranks) for each in (self.x.flatten(0, 1), self.w)]
        for heads, result in zip((self.heads, self.kv_heads, self.kv_heads), self.results):
            of_rank = slice(first + self.rank * heads // self.ranks * 128,
                            first + (self.rank + 1) * heads // self.ranks * 128)
            wanted = torch.cat([x.float() @ w[of_rank].float().T for x, w in zip(*parts)])
            worst = max(worst, measure.relative_rms(result.view(wanted.shape), wanted.double()))
            first += heads * 128
        return worst

    def launches(self, _):
        def gemm():
            torch.mm(self.x.flatten(0, 1), self.w.T, out=self.product)

        def collective():
            dist.all_to_all_single(self.other, self.packed)

        def in_turn():
            gemm()
            self.packed.copy_(self.product.unflatten(1, (self.ranks, -1)).transpose(0, 1))
            collective()

        return {"gemm": gemm, "collective": collective, "in turn": in_turn}

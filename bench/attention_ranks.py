"""Attention over ranks: what one rank has of a row of gpu_attention_ranks.py, and FlashAttention-3
over NCCL on it, as its users put the two together."""

import torch
import torch.distributed as dist

import measure
from distributed_products import gathered

SAMPLES = 8  # rows of each rank that are held against float64

def attention(q, k, v, causal):
    """O and the log-sum-exp {batch, heads, queries}."""
    import flash_attn_interface
    return flash_attn_interface.flash_attn_func(q, k, v, causal=causal, return_attn_probs=True)


def merged(one, other):
    """The attention to two sets of keys, from the attention to each."""
    if one is None:
        return other
    (o1, lse1), (o2, lse2) = one, other
    lse = torch.logaddexp(lse1, lse2)
    def scaled(o, of):
        return o * (of - lse).exp().transpose(1, 2).unsqueeze(-1).to(o.dtype)
    return scaled(o1, lse1) + scaled(o2, lse2), lse


class AttentionSide:
    """Zig-zag shards under a causal mask."""

    def __init__(self, _, batch, length, heads, kv_heads, dim, causal, ranks, device, symmetric):
        def normal(*shape):
            return torch.randn(*shape, device=device, dtype=torch.bfloat16)

        self.rank, self.ranks, self.causal = dist.get_rank(), ranks, causal
        self.own, self.heads, self.kv_heads, self.dim = length // ranks, heads, kv_heads, dim
        self.q = normal(batch, self.own, heads, dim)
        # K and V go together.
        self.kv = normal(2, batch, self.own, kv_heads, dim)
        self.o = symmetric(*self.q.shape)  # by heads other ranks write it
        self.lse = torch.empty(batch, heads, self.own, device=device)
        self.all_kv = torch.empty(ranks, *self.kv.shape, device=device, dtype=torch.bfloat16)
        share = max(kv_heads // ranks, 1)
        self.share = (normal(batch, length, heads // ranks, dim), normal(batch, length, share, dim),
                      normal(batch, length, share, dim))

    def options(self):
        return {"heads": self.heads, "kv_heads": self.kv_heads, "dim": self.dim,
                "causal": self.causal, "shards": "zig_zag" if self.causal else "contiguous"}

    def tensors(self):
        """Of ours."""
        return self.q, self.kv[0], self.kv[1], self.o, self.lse

    def outputs(self):
        return [self.o, self.lse]

    def alone(self):
        q, k, v = self.share
        options = {"heads": q.shape[2], "kv_heads": k.shape[2], "dim": self.dim,
                   "causal": self.causal}
        lse = torch.empty(q.shape[0], q.shape[2], q.shape[1], device=q.device)
        return "attention_forward", options, (q, k, v, torch.empty_like(q), lse)

    def places(self, rank):
        """Which rows of the whole a rank has."""
        rows = torch.arange(self.own * self.ranks)
        if not self.causal:
            return rows.chunk(self.ranks)[rank]
        pieces = rows.chunk(2 * self.ranks)
        return torch.cat((pieces[rank], pieces[2 * self.ranks - 1 - rank]))

    def error(self):
        """Of some rows against float64."""
        whole = torch.empty(2, self.q.shape[0], self.own * self.ranks, *self.kv.shape[3:],
                            dtype=self.kv.dtype, device=self.kv.device)
        for rank, of_rank in enumerate(gathered(self.kv, self.ranks)):
            whole[:, :, self.places(rank).to(whole.device)] = of_rank
        last, places = self.own - 1, self.places(self.rank)
        rows = [0, last // 2, last // 2 + 1, last,
                *torch.randint(self.own, (SAMPLES - 4,)).tolist()]
        wanted = torch.stack([self.exact(whole, row, places[row].item()) for row in rows], 1)
        return measure.relative_rms(self.o[:, rows], wanted)

    def exact(self, whole, row, place):
        """{batch, heads, dim}"""
        k, v = whole[:, :, :place + 1 if self.causal else None].double()
        queries = self.q[:, row].double().unflatten(1, (self.kv_heads, -1)) * self.dim**-0.5
        weights = torch.einsum("bkgd,bnkd->bkgn", queries, k).softmax(-1)
        return torch.einsum("bkgn,bnkd->bkgd", weights, v).flatten(1, 2)

    def gather(self):
        dist.all_gather_into_tensor(self.all_kv, self.kv)

    def in_turn(self):
        self.gather()
        half, last = self.own // 2, 2 * self.ranks - 1
        if not self.causal:
            k, v = (self.all_kv[:, i].transpose(0, 1).flatten(1, 2) for i in (0, 1))
            return attention(self.q, k, v, False)
        pieces = [self.all_kv[min(p, last - p), :, :, slice(half) if p < self.ranks
                              else slice(half, None)] for p in range(2 * self.ranks)]
        whole = torch.cat(pieces, 2)
        for piece, rows in ((self.rank, slice(half)), (last - self.rank, slice(half, None))):
            k, v = whole[:, :, :(piece + 1) * half]
            attention(self.q[:, rows], k, v, True)

    def ring(self):
        """Keys go around while attention to those that are there runs."""
        current, out = self.kv, None
        half = self.own // 2
        for step in range(self.ranks):
            work, following = [], None
            if step + 1 < self.ranks:
                following = torch.empty_like(current)
                work = dist.batch_isend_irecv([
                    dist.P2POp(dist.isend, current, (self.rank + 1) % self.ranks),
                    dist.P2POp(dist.irecv, following, (self.rank - 1) % self.ranks)])
            k, v = current
            source = (self.rank - step) % self.ranks
            if not self.causal or source == self.rank:
                out = merged(out, attention(self.q, k, v, self.causal))
            elif source < self.rank:
                out = merged(out, attention(self.q, k[:, :half], v[:, :half], False))
            else:
                late = merged((out[0][:, half:], out[1][:, :, half:]),
                              attention(self.q[:, half:], k, v, False))
                out = (torch.cat((out[0][:, :half], late[0]), 1),
                       torch.cat((out[1][:, :, :half], late[1]), 2))
            for each in work:
                each.wait()
            current = following

    def launches(self, _):
        return {"FA3 alone": lambda: attention(*self.share, self.causal), "collective": self.gather,
                "in turn": self.in_turn, "ring": self.ring}

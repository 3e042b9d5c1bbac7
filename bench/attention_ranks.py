"""Attention over ranks: what one rank has of a row of gpu_attention_ranks.py, and FlashAttention-3
over NCCL on it, as its users put the two together."""

import bisect
import itertools

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
    """Sequences of one length, in zig-zag shards under a causal mask."""

    def __init__(self, _, batch, length, heads, kv_heads, dim, causal, ranks, device, symmetric):
        def normal(*shape):
            return torch.randn(*shape, device=device, dtype=torch.bfloat16)

        self.rank, self.ranks, self.causal = dist.get_rank(), ranks, causal
        self.own, self.heads, self.kv_heads, self.dim = length // ranks, heads, kv_heads, dim
        self.q = normal(batch, self.own, heads, dim)
        # K and V go together.
        self.kv = normal(2, batch, self.own, kv_heads, dim)
        # By heads other ranks write them.
        self.o = symmetric(*self.q.shape)
        self.lse = symmetric(batch, heads, 2 * self.own).view(torch.float32)
        self.all_kv = torch.empty(ranks, *self.kv.shape, device=device, dtype=torch.bfloat16)
        share = max(kv_heads // ranks, 1)
        self.share = (normal(batch, length, heads // ranks, dim), normal(batch, length, share, dim),
                      normal(batch, length, share, dim))

    def options(self):
        return {"heads": self.heads, "kv_heads": self.kv_heads, "dim": self.dim,
                "causal": self.causal, "shards": "zig_zag" if self.causal else "contiguous"}

    def of_ours(self, *tensors):
        """Q, K, V and what comes behind them, as ours takes them."""
        return tensors

    def tensors(self):
        """Of ours."""
        return self.of_ours(self.q, *self.kv, self.o, self.lse)

    def outputs(self):
        return [self.o, self.lse]

    def alone(self):
        q, k, v = self.share
        options = {"heads": q.shape[2], "kv_heads": k.shape[2], "dim": self.dim,
                   "causal": self.causal}
        lse = torch.empty(q.shape[0], q.shape[2], q.shape[1], device=q.device)
        return "attention_forward", options, self.of_ours(q, k, v, torch.empty_like(q), lse)

    def places(self, rank):
        """Which rows of the whole a rank has."""
        rows = torch.arange(self.own * self.ranks)
        if not self.causal:
            return rows.chunk(self.ranks)[rank]
        pieces = rows.chunk(2 * self.ranks)
        return torch.cat((pieces[rank], pieces[2 * self.ranks - 1 - rank]))

    def whole(self, own):
        """All rows, of which each rank has its own."""
        rows = torch.empty(own.shape[0], self.own * self.ranks, *own.shape[2:], dtype=own.dtype,
                           device=own.device)
        for rank, of_rank in enumerate(gathered(own.contiguous(), self.ranks)):
            rows[:, self.places(rank).to(rows.device)] = of_rank
        return rows

    def attend(self, q, k, v):
        """Attention to whole sequences by FlashAttention-3: O and LSE."""
        return attention(q, k, v, self.causal)

    def sequence(self, _):
        """The rows of the sequence that has the one at a place."""
        return 0, self.own * self.ranks

    def seen(self, place):
        """The keys that a row sees."""
        first, end = self.sequence(place)
        return slice(first, place + 1 if self.causal else end)

    def seen_by(self, place):
        """The rows that see a key."""
        first, end = self.sequence(place)
        return slice(place if self.causal else first, end)

    def samples(self):
        """Some of the rank's rows, each with its place in the whole."""
        last = self.own - 1
        rows = [0, last // 2, last // 2 + 1, last,
                *torch.randint(self.own, (SAMPLES - 4,)).tolist()]
        return rows, self.places(self.rank)[rows].tolist()

    def error(self):
        """Of some rows against float64."""
        k, v = self.whole(self.kv[0]), self.whole(self.kv[1])
        rows, places = self.samples()
        wanted = torch.stack([self.exact(k, v, *each) for each in zip(rows, places)], 1)
        return measure.relative_rms(self.o[:, rows], wanted)

    def in_groups(self, heads):
        """{batch, heads, dim} by the heads of keys that they see."""
        return heads.double().unflatten(1, (self.kv_heads, -1))

    def exact(self, k, v, row, place):
        """{batch, heads, dim}"""
        seen = self.seen(place)
        scores = torch.einsum("bkgd,bnkd->bkgn", self.in_groups(self.q[:, row]),
                              k[:, seen].double())
        weights = (scores * self.dim**-0.5).softmax(-1)
        return torch.einsum("bkgn,bnkd->bkgd", weights, v[:, seen].double()).flatten(1, 2)

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
        return {"FA3 alone": lambda: self.attend(*self.share), "collective": self.gather,
                "in turn": self.in_turn, "ring": self.ring}


class Gradients:
    """The same of the backward pass; O and LSE are FlashAttention-3's. Stands before the side whose
    rows it has."""

    def __init__(self, operation, *row):
        super().__init__(operation, *row)
        symmetric = row[-1]
        o, lse = self.attend(*map(self.whole, (self.q, *self.kv)))
        places = self.places(self.rank).to(o.device)
        self.o, self.lse = o[:, places].contiguous(), lse[:, :, places].contiguous()
        self.d_o = torch.randn_like(self.o)
        # Others write them.
        self.gradients = [symmetric(*each.shape) for each in (self.q, *self.kv)]

    def tensors(self):
        return self.of_ours(self.q, *self.kv, self.o, self.lse, self.d_o, *self.gradients)

    def outputs(self):
        return self.gradients

    def alone(self):
        name, options, _ = super().alone()
        o, lse = self.attend(*self.share)
        return name.replace("forward", "backward"), options, self.of_ours(
            *self.share, o, lse, torch.randn_like(o), *map(torch.empty_like, self.share))

    def error(self):
        """The worst of the three."""
        k, v = self.whole(self.kv[0]), self.whole(self.kv[1])
        of_queries = [self.whole(each) for each in (self.q, self.o, self.d_o)]
        lse = self.whole(self.lse.transpose(1, 2))
        rows, places = self.samples()
        wanted = zip(*([self.exact_query(k, v, row, place),
                        *self.exact_key(*of_queries, lse, row, place)]
                       for row, place in zip(rows, places)))
        return max(measure.relative_rms(got[:, rows], torch.stack(each, 1))
                   for got, each in zip(self.gradients, wanted))

    def exact_query(self, k, v, row, place):
        """dQ of one row, {batch, heads, dim}."""
        seen = self.seen(place)
        k, v = k[:, seen].double(), v[:, seen].double()
        d_o, o = self.in_groups(self.d_o[:, row]), self.in_groups(self.o[:, row])
        scores = torch.einsum("bkgd,bnkd->bkgn", self.in_groups(self.q[:, row]), k)
        weights = (scores * self.dim**-0.5).softmax(-1)
        d_weights = torch.einsum("bkgd,bnkd->bkgn", d_o, v) - (d_o * o).sum(-1, keepdim=True)
        gradient = torch.einsum("bkgn,bnkd->bkgd", weights * d_weights, k) * self.dim**-0.5
        return gradient.flatten(1, 2)

    def exact_key(self, q, o, d_o, lse, row, place):
        """dK and dV of one row, {batch, kv_heads, dim} each."""
        seen = self.seen_by(place)
        q, o, d_o, lse = (each[:, seen].double().unflatten(2, (self.kv_heads, -1))
                          for each in (q, o, d_o, lse))
        k, v = self.kv[:, :, row].double()
        weights = (torch.einsum("bnkgd,bkd->bnkg", q, k) * self.dim**-0.5 - lse).exp()
        d_weights = torch.einsum("bnkgd,bkd->bnkg", d_o, v) - (d_o * o).sum(-1)
        d_k = torch.einsum("bnkg,bnkgd->bkd", weights * d_weights, q) * self.dim**-0.5
        return d_k, torch.einsum("bnkg,bnkgd->bkd", weights, d_o)

    def launches(self, _):
        inputs = [each.detach().requires_grad_() for each in self.share]
        output = self.attend(*inputs)[0]
        d_output = torch.randn_like(output)
        return {"FA3 alone": lambda: torch.autograd.grad(output, inputs, d_output,
                                                         retain_graph=True)}


class GradientSide(Gradients, AttentionSide):
    """Of sequences of one length."""


class PackedSide(AttentionSide):
    """Sequences of any lengths behind each other, as one of them all is divided. A batch of one."""

    def __init__(self, operation, lengths, heads, kv_heads, dim, causal, ranks, device, symmetric):
        self.ends = [0, *itertools.accumulate(lengths)]
        self.longest = max(lengths)
        self.first_rows = torch.tensor(self.ends, device=device, dtype=torch.int32)
        super().__init__(operation, 1, self.ends[-1], heads, kv_heads, dim, causal, ranks, device,
                         symmetric)

    def of_ours(self, *tensors):
        q, k, v, *others = (each[0] for each in tensors)
        return q, k, v, self.first_rows, self.first_rows, *others

    def alone(self):
        name, options, tensors = super().alone()
        return name.replace("attention", "attention_varlen"), options, tensors

    def attend(self, q, k, v):
        import flash_attn_interface
        o, lse = flash_attn_interface.flash_attn_varlen_func(
            q[0], k[0], v[0], self.first_rows, self.first_rows, self.longest, self.longest,
            causal=self.causal, return_attn_probs=True)
        return o[None], lse[None]

    def sequence(self, place):
        number = bisect.bisect_right(self.ends, place)
        return self.ends[number - 1], self.ends[number]


class PackedGradientSide(Gradients, PackedSide):
    """Of these."""

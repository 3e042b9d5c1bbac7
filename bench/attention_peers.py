"""FlashAttention-3 over NCCL, as its users put the two together: for distributed_peers.Peers."""

import torch
import torch.distributed as dist


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
    """What one rank has of a row; zig-zag shards under a causal mask."""

    def __init__(self, batch, length, heads, kv_heads, dim, causal, ranks, device):
        def normal(*shape):
            return torch.randn(*shape, device=device, dtype=torch.bfloat16)

        self.rank, self.ranks, self.causal = dist.get_rank(), ranks, causal
        self.own = length // ranks
        self.q = normal(batch, self.own, heads, dim)
        # K and V go together.
        self.kv = normal(2, batch, self.own, kv_heads, dim)
        self.all_kv = normal(ranks, *self.kv.shape)
        self.share = (normal(batch, length, heads // ranks, dim),
                      normal(batch, length, max(kv_heads // ranks, 1), dim),
                      normal(batch, length, max(kv_heads // ranks, 1), dim))

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
        return {"alone": lambda: attention(*self.share, self.causal), "collective": self.gather,
                "in turn": self.in_turn, "ring": self.ring}

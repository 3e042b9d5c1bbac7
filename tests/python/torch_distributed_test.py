"""tilewright.torch.distributed: two processes of a gloo group on the host's memory, and shards."""

import multiprocessing
import tempfile
import unittest

import torch
import torch.distributed
from tilewright.torch.distributed import empty, join, shard, unshard
from torch_reference import leaves, normal, require_refusal


def meet(rank, folder, answers):
    """What a rank does; it says what it has seen of the others."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                                         world_size=2)
    with join(patience=60) as group:
        tensors = empty(group, (3, 2), torch.bfloat16, "x")
        tensors[1 - rank].fill_(10 * rank + 1)
        group.barrier()
        own = tensors[group.rank]
        answers.put((group.rank, group.size, own.tolist(), tuple(own.shape), str(own.dtype),
                     empty(group, (0, 4), torch.float32, "none")[0].numel()))
        group.barrier("read")
    torch.distributed.destroy_process_group()


class Distributed(unittest.TestCase):
    def test_ranks_of_a_process_group_share_tensors(self):
        context = multiprocessing.get_context("spawn")
        answers = context.Queue()
        with tempfile.TemporaryDirectory() as folder:
            ranks = [context.Process(target=meet, args=(rank, folder, answers)) for rank in (0, 1)]
            for process in ranks:
                process.start()
            seen = sorted(answers.get(timeout=120) for _ in ranks)
            for process in ranks:
                process.join(60)
        self.assertEqual([process.exitcode for process in ranks], [0, 0])
        for rank, (number, size, own, *rest) in enumerate(seen):
            self.assertEqual((number, size), (rank, 2))
            self.assertEqual(own, [[11 - 10 * rank] * 2] * 3)
            self.assertEqual(rest, [(3, 2), "torch.bfloat16", 0])

    def test_shards(self):
        whole = torch.arange(12.0)
        for how, first in (("contiguous", [0, 1, 2]), ("zig_zag", [0, 1, 11])):
            parts = shard(whole, 0, 4, how)
            self.assertEqual(parts[0].tolist(), first)
            self.assertTrue(torch.equal(unshard(parts, 0, how), whole))
        for how in ("contiguous", "zig_zag"):
            for size in (0, 3, 15):
                (x,) = leaves(normal(2, size, 4))
                again = unshard(shard(x, 1, 3, how), 1, how)
                self.assertTrue(torch.equal(again, x))
                d_out = normal(2, size, 4, seed=1)
                self.assertTrue(torch.equal(torch.autograd.grad(again, x, d_out)[0], d_out))

    def test_what_cannot_be_done(self):
        for call, *parts in (
                (lambda: join(), "no process group", "init_process_group"),
                (lambda: empty(None, (1,), torch.float32, "x", device="meta"), "device is meta"),
                (lambda: shard(normal(5), 0, 2), "{5}", "2 ranks"),
                (lambda: shard(normal(4), 0, 2, "random"), "how is 'random'", "zig_zag"),
                (lambda: unshard([normal(2), normal(3)], 0), "{2}, {3}")):
            with self.subTest(parts[0]):
                require_refusal(self, call, *parts)


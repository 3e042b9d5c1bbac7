"""Row 1 of the faults that reviewers found in other programs: a benchmark that compares unlike
work. Here what ours and the peers launch on a row allocates nothing, works on the same tensors, and
is timed between the same barriers. Without a GPU or PyTorch."""

import pathlib
import sys
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

LOG = []  # what was called, in order


class Tensor:
    """Views have the memory of what they are views of."""

    def __init__(self, memory=None, shape=()):
        self.memory, self.shape = memory or object(), shape

    def view(self, *_):
        return Tensor(self.memory)

    unflatten = flatten = transpose = view

    @property
    def T(self):
        return Tensor(self.memory)

    def normal_(self):
        return self

    def copy_(self, other):
        LOG.append(("copy", self.memory, other.memory))


def made(*_, **__):
    LOG.append(("allocate",))
    return Tensor()


def call(name):
    def log(*arguments, **options):
        given = [*arguments, *options.values()]
        given += [each for one in given if isinstance(one, list) for each in one]
        LOG.append((name, *(each.memory for each in given if isinstance(each, Tensor))))
    return log


class Module(types.ModuleType):
    """Whatever is called of it and has no other meaning here is noted."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = call(name)
        setattr(self, name, value)
        return value


torch = Module("torch")
for function in ("empty", "randn", "empty_like", "zeros", "zeros_like", "cat"):
    setattr(torch, function, made)
torch.bfloat16 = "bfloat16"
torch.ops = types.SimpleNamespace(symm_mem=Module("symm_mem"))
dist = torch.distributed = Module("torch.distributed")
dist.get_rank = lambda: 0
torch.cuda = Module("torch.cuda")
torch.cuda.Event = lambda **_: types.SimpleNamespace(record=call("record"),
                                                     elapsed_time=lambda end: 6.0)
torch.multiprocessing = Module("torch.multiprocessing")
sys.modules.update({"torch": torch, "torch.distributed": dist,
                    "torch.multiprocessing": torch.multiprocessing,
                    "measure": Module("measure"), "tilewright": Module("tilewright")})

import distributed_exchanges  # noqa: E402
import distributed_products  # noqa: E402
import distributed_ranks  # noqa: E402

PRODUCTS = ("gemm_reduce_scatter", "all_gather_gemm")


def logged(launch):
    del LOG[:]
    launch()
    return list(LOG)


class LikeForLike(unittest.TestCase):
    def side(self, operation):
        if operation == "projection_all_to_all":
            return distributed_products.ProjectionSide(operation, 64, 512, 16, 2, "gpu", made)
        if operation in PRODUCTS:
            return distributed_products.ProductSide(operation, 64, 32, 16, 2, "gpu", made)
        return distributed_exchanges.ExchangeSide(operation, 1, 2, "gpu", made)

    def test_no_launch_allocates(self):
        for operation in (*PRODUCTS, "projection_all_to_all",
                          *distributed_exchanges.OPERATIONS):
            for name, launch in self.side(operation).launches("group").items():
                self.assertNotIn(("allocate",), logged(launch), f"{operation}, {name}")

    def test_products_are_of_the_same_tensors(self):
        for operation in PRODUCTS:
            side = self.side(operation)
            ours = {each.memory for each in side.tensors()}
            fused = logged(side.launches("group")["fused"])
            self.assertEqual(len(fused), 1)
            self.assertEqual(set(fused[0][1:]), {side.a.memory, side.b.memory})
            self.assertLessEqual({side.a.memory, side.b.memory}, ours)
            in_turn = {memory for one in logged(side.launches("group")["in turn"])
                       for memory in one[1:]}
            # What the peers hand from one step to the next is theirs alone.
            own = side.product.memory if side.scatters else side.all_a.memory
            self.assertEqual(in_turn - ours, {own})

    def test_all_are_timed_between_the_same_barriers(self):
        rank = distributed_ranks.Rank.__new__(distributed_ranks.Rank)
        around = []
        for name in ("ours", "in turn", "fused"):
            with mock.patch.object(rank, "launch_of", lambda _, name=name: call(name), create=True):
                log = logged(lambda: self.assertEqual(rank.seconds("what", 3), 2e-3))
            around.append(["launch" if one[0] == name else one[0] for one in log])
        self.assertEqual(around[0], around[1])
        self.assertEqual(around[0], around[2])
        self.assertEqual(around[0][:2], ["barrier", "synchronize"])
        self.assertEqual(around[0].count("launch"), 2 + 3)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""The Python package without a GPU: ranks are processes, on the host's memory and on a driver that
executes no kernel. Each test's ranks are this file with the name of a function."""

import array
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import tilewright  # noqa: E402
from tilewright.group import _StoreFunctions  # noqa: E402
from tilewright.tensor import arguments_of  # noqa: E402


class FileStore:
    """A store in a folder, with the methods of PyTorch's."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def set(self, key, value):
        made = self.folder / (key + ".new")
        made.write_bytes(value)
        made.rename(self.folder / key)

    def get(self, key):
        return (self.folder / key).read_bytes()

    def wait(self, keys, patience):
        end = time.monotonic() + patience.total_seconds()
        while not all((self.folder / key).exists() for key in keys):
            if time.monotonic() > end:
                raise TimeoutError("no " + keys[0])
            time.sleep(0.01)


def joined(rank, size, folder, **options):
    return tilewright.Group.by_file(folder + "/meeting", rank=rank, size=size, **options)


# What ranks do: each says one line.

def gather(group):
    names = group.all_gather(f"{group.rank}\0x".encode() * group.rank)
    group.barrier("gathered")
    return f"{group.rank} of {group.size}: {names}"


def by_file(rank, size, folder):
    with joined(rank, size, folder) as group:
        return gather(group)


def by_store(rank, size, folder):
    with tilewright.Group.by_store(FileStore(folder), rank=rank, size=size) as group:
        return gather(group)


def by_broken_store(rank, size, folder):
    store = FileStore(folder + "/nowhere")
    try:
        tilewright.Group.by_store(store, rank=rank, size=size, patience=0.3)
    except tilewright.TilewrightError as error:
        return f"{str(error).splitlines()[0]} from {type(error.__cause__).__name__}"


def by_socket(rank, size, folder):
    """Each says an address of its own. The last rank does not know the word."""
    token = "a word" if rank + 1 < size else "another"
    try:
        with tilewright.Group.by_socket("127.0.0.1", 29514, token, rank=rank, size=size,
                                        address="127.0.0.1", patience=1) as group:
            return gather(group)
    except tilewright.TilewrightError as error:
        return str(error).splitlines()[0]


def by_environment(rank, size, folder):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank),
                      LOCAL_WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT="29511",
                      TORCHELASTIC_RUN_ID=folder)
    with tilewright.Group.by_environment() as group:
        return gather(group)


def share(rank, size, folder):
    with joined(rank, size, folder) as group:
        tensors = group.symmetric((2, size), "i32", "numbers")
        for other in tensors:
            other.view().cast("i")[size + rank] = 10 * rank + 1
        group.barrier()
        own = tensors[rank]
        whole = tilewright.SymmetricMemory(group, 4096, "parts")
        offsets = [whole.allocate(100, "first"), whole.allocate(8, "second", 1024)]
        whole.tensor((rank + 1) % size, offsets[1], (2,), "f32").write(array.array("f", [rank, .5]))
        large = group.symmetric((3, 1000), "i32", "large")
        large[(rank + 1) % size].write(array.array("i", range(3000)))
        group.barrier()
        last = large[rank].view().cast("i")[2999]
        got = array.array("f", whole.tensor(rank, offsets[1], (2,), "f32").read()).tolist()
        numbers = list(own.view().cast("i"))
        return f"{numbers} {own.__array_interface__['typestr']} {offsets} {got} {whole.size} {last}"


def refusals(rank, size, folder):
    said = []

    def tell(action):
        try:
            action()
        except (tilewright.TilewrightError, AttributeError) as error:
            said.append(str(error).splitlines()[0])

    tell(lambda: joined(size, size, folder))
    tell(lambda: joined(rank, size, folder, patience=-1))
    by_file = tilewright.Group.by_file
    tell(lambda: by_file(folder + "/x", rank=str(rank), size=size))
    tell(lambda: by_file(folder + "/x", rank=rank, size=2.0))
    tell(lambda: by_file(folder + "/x", rank=2**32 + rank, size=size))
    tell(lambda: by_file(folder + "/x", rank=rank, size=size, patience="60"))
    tell(lambda: tilewright.Group.by_socket(b"127.0.0.1", 29514, "word", rank=rank, size=size))
    tell(lambda: tilewright.Group.by_socket("127.0.0.1", "29514", "word", rank=rank, size=size))
    with joined(rank, size, folder) as group:
        tell(lambda: group.symmetric((4,), "i32", "x", memory="disk"))
        tell(lambda: group.symmetric((2, -4), "i32", "negative"))
        tell(lambda: group.symmetric(4, "i32", "no tuple"))
        tell(lambda: group.symmetric((4,), "f99", "y"))
        tell(lambda: group.symmetric((2, 4) if rank else (4, 2), "i32", "turned"))
        tell(lambda: group.symmetric((4,), "i32" if rank else "f32", "typed"))
        tell(lambda: group.all_gather("a text", "texts"))
        tell(lambda: group.all_gather(5, "numbers"))
        tell(lambda: group.barrier(3))
        tell(lambda: group.symmetric((4,), "i32", "x", memory=0))
        tell(lambda: tilewright.Kernel("all_reduce", group=group, target="cpu"))
        whole = tilewright.SymmetricMemory(group, 64, "small")
        tell(lambda: whole.address(size))
        tell(lambda: whole.tensor(0, 60, (2,), "i32").write(b"12345678"))
        tell(lambda: whole.tensor(0, 0, (2,), "i32").write(b"1234"))
        tell(lambda: arguments_of([b"bytes"]))
        tell(lambda: tilewright.Kernel("gemm", group=group))
        tell(lambda: tilewright.Kernel("gemm_reduce_scatter", group=group, ranks=size + 1))
        group.barrier("before the last")
        tell(lambda: group.barrier(f"barrier of {rank}"))
    tell(group.barrier)
    tell(lambda: group.symmetric((4,), "i32", "late"))
    tell(lambda: tilewright.Kernel("gemm_reduce_scatter", group=group))
    return "; ".join(said)


def dies(rank, size, folder):
    group = joined(rank, size, folder)
    memory = group.symmetric((1,), "i32", "word")
    group.barrier("all are there")
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    try:
        group.barrier("the end")
    except tilewright.TilewrightError as error:
        memory[1].view().cast("i")[0] = 7  # still there
        quick = "at once" if time.monotonic() - begin < 5 else "late"
        # There may be less room than ranks.
        lost = (ctypes.c_int32 * 1)(-1)
        count = group._library.group_lost(group._open(), lost, 0)
        return f"{quick} {group.lost()} {error} {count} {lost[0]}"


def multiply(rank, size, folder):
    """On the fake driver: everything but the arithmetic."""
    m, n, k = 16, 24, 40
    with joined(rank, size, folder) as group:
        kernel = tilewright.Kernel("gemm_reduce_scatter", group=group, device=rank)
        names = kernel.tensors
        a = group.symmetric((size, m, k), "bf16", "A", "gpu", rank)[rank]
        b = group.symmetric((n, k), "bf16", "B", "gpu", rank)[rank]
        c = group.symmetric((m, n), "bf16", "C", "gpu", rank)[rank]
        for _ in range(3):
            kernel(a, b, c)
        kernel.synchronize()
        try:
            kernel(a, b, b)
        except tilewright.TilewrightError as error:
            return f"{names} {str(error).splitlines()[0]}"


def start(function, size, folder, **environment):
    command = [sys.executable, __file__, function]
    return [subprocess.Popen(command + [str(rank), str(size), folder], text=True,
                             env={**os.environ, **environment}, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT) for rank in range(size)]


class Stores(unittest.TestCase):
    def test_a_value_says_its_size_whatever_room_it_has(self):
        with tempfile.TemporaryDirectory() as folder:
            store = FileStore(folder)
            store.set("key", bytes(range(100)))
            functions = _StoreFunctions(store).functions
            value, size = ctypes.create_string_buffer(40), ctypes.c_int64()
            self.assertEqual(functions.get(None, b"key", value, 40, ctypes.byref(size)), 0)
            self.assertEqual(size.value, 100)
            self.assertEqual(value.raw, bytes(range(40)))


class Groups(unittest.TestCase):
    def said(self, function, size=2, **environment):
        with tempfile.TemporaryDirectory() as folder:
            ranks = start(function, size, folder, **environment)
            lines = [rank.communicate(timeout=90)[0].strip() for rank in ranks]
            self.left = sorted(path.name for path in pathlib.Path(folder).iterdir())
            return lines

    def test_ranks_find_each_other(self):
        gathered = [b"", b"1\0x", b"2\0x2\0x"]
        wanted = [f"{rank} of 3: {gathered}" for rank in range(3)]
        for way in ("by_file", "by_store", "by_environment"):
            with self.subTest(way):
                self.assertEqual(self.said(way, 3), wanted)
                self.assertEqual(self.left, ["tilewright"] if way == "by_store" else [])

    def test_who_shows_another_word_is_turned_away(self):
        first, other = self.said("by_socket")
        self.assertIn("rank 1 had another token, and was turned away", first)
        self.assertIn("rank 1 has another token than rank 0", other)

    def test_the_error_of_a_store_is_the_cause(self):
        line = self.said("by_broken_store")[0]
        self.assertIn("the store fails to set tilewright from FileNotFoundError", line)

    def test_memory_is_shared(self):
        for rank, line in enumerate(self.said("share")):
            self.assertEqual(
                line, f"[0, 0, 1, 11] <i4 [0, 1024] [{float(1 - rank)}, 0.5] 4096 2999")

    def test_mistakes_are_named(self):
        for rank, line in enumerate(self.said("refusals")):
            for text in ("rank 2 of 2 ranks", "a group's patience of -1 s",
                         f"a group's rank is '{rank}', of type str",
                         "a group's size is 2.0, of type float",
                         f"a group's rank is {2**32 + rank}",
                         "a group's patience is '60', of type str",
                         "a group's host is b'127.0.0.1', of type bytes",
                         "a group's port is '29514', of type str", "memory on 'disk'",
                         "the shape of negative is (2, -4)", "the shape of no tuple is 4",
                         "the dtype of y is 'f99'",
                         f"turned is i32 {[[2, 4], [4, 2]][rank]} in rank {1 - rank}",
                         f"typed is {['i32', 'f32'][rank]} [4] in rank {1 - rank}",
                         "what texts is given is 'a text', of type str",
                         "what numbers is given is 5, of type int",
                         "a group's barrier is 3, of type int",
                         "a group's memory is 0, of type int",
                         "all_reduce of a group of processes, and target='cpu'",
                         "symmetric memory of rank 2", "8 bytes at offset 60 of small",
                         "4 bytes for a tensor of 8", "bytes as a tensor",
                         "gemm runs on one GPU",
                         "; ".join([f"error: rank {rank} has closed the group"] * 3),
                         f"rank {1 - rank} is at barrier of {1 - rank}"):
                self.assertIn(text, line)

    def test_a_rank_that_dies_is_named(self):
        line = self.said("dies")[0]
        self.assertIn("at once [1] error: lost rank 1 (process ", line)
        self.assertIn("fix: ", line)
        self.assertTrue(line.endswith(" 1 -1"), line)

    def test_operations_over_ranks_take_their_own_tensors(self):
        fake = {"TILEWRIGHT_CUDA_DRIVER": os.environ.get("FAKE_CUDA", ""), "FAKE_CUDA_DEVICES": "2"}
        for line in self.said("multiply", **fake):
            if "NVRTC" in line:
                self.skipTest(line)
            self.assertIn("['A', 'B', 'C'] error: gemm_reduce_scatter_sm90: the dim m is 16", line)

    def test_the_example_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            ranks = []
            for rank in range(2):
                launcher = dict(RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank),
                                LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                                MASTER_PORT="29512", TORCHELASTIC_RUN_ID=folder)
                ranks.append(subprocess.Popen([sys.executable, ROOT / "examples/processes.py"],
                                              env={**os.environ, **launcher}, text=True,
                                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
            for number, rank in enumerate(ranks):
                line = rank.communicate(timeout=90)[0]
                self.assertEqual(line, f"rank {number} of 2: sum of numbers right\n")
                self.assertEqual(rank.returncode, 0)


def main():
    if len(sys.argv) != 5:
        return unittest.main()
    try:
        print(globals()[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
    except tilewright.TilewrightError as error:
        print(error)


if __name__ == "__main__":
    main()

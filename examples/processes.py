#!/usr/bin/env python3
"""Ranks of one job from Python, without PyTorch: what they share, and a product over all of them.

    torchrun --nproc-per-node 2 --no-python examples/processes.py
    for r in 0 1; do RANK=$r WORLD_SIZE=2 LOCAL_RANK=$r LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 \\
        MASTER_PORT=29500 examples/processes.py --gpu & done; wait

On the host's memory each rank writes a number into every other's. With --gpu each rank, on a GPU of
its own, also takes part in gemm_reduce_scatter and all_gather_gemm. Their inputs are small whole
numbers, so that the results are exact: the exit status is 1 where one element is not.
"""

import argparse
import os
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import tilewright  # noqa: E402


def sum_of_numbers(group):
    numbers = group.symmetric((group.size,), "i32", "numbers")
    for of_rank in numbers:
        of_rank.view().cast("i")[group.rank] = group.rank + 1
    group.barrier("all have written")
    return sum(numbers[group.rank].view().cast("i"))


def bf16_bytes(values):
    """bf16 is the upper half of f32."""
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def values_of(tensor):
    data = tensor.read()
    return [struct.unpack("<f", b"\0\0" + data[at:at + 2])[0] for at in range(0, len(data), 2)]


def number(seed, i):
    """-1, 0 or 1: sums of a hundred are exact in bf16."""
    return (seed * 7919 + i * 104729 + i * i * 31) % 3 - 1


class Matrices:
    """A, B and C of every rank in memory of the GPUs, and what A and B hold."""

    def __init__(self, group, device, shapes):
        self.group, self.device = group, device
        self.a, self.b, self.c = (
            group.symmetric(shape, "bf16", name, "gpu", device) for name, shape in shapes.items())
        self.a_values = [self.fill(self.a, rank, 1) for rank in range(group.size)]
        self.b_values = [self.fill(self.b, rank, 2) for rank in range(group.size)]
        self.c[group.rank].write(b"\xff" * self.c[group.rank].size_bytes)  # NaN
        group.barrier("filled")

    def fill(self, tensors, rank, seed):
        count = tensors[rank].size_bytes // 2
        values = [number(10 * rank + seed, i) for i in range(count)]
        if rank == self.group.rank:
            tensors[rank].write(bf16_bytes(values))
        return values

    def run(self, name):
        own = self.group.rank
        kernel = tilewright.Kernel(name, group=self.group, device=self.device)
        for _ in range(3):
            kernel(self.a[own], self.b[own], self.c[own])
        kernel.synchronize()
        return values_of(self.c[own])


def row_times_row(a, row_of_a, b, row_of_b, depth):
    a, b = a[row_of_a * depth:][:depth], b[row_of_b * depth:][:depth]
    return sum(x * y for x, y in zip(a, b))


def reduces_and_scatters(group, device, m=32, n=24, k=40):
    made = Matrices(group, device, {"A": (group.size, m, k), "B": (n, k), "C": (m, n)})
    wanted = [sum(row_times_row(a, group.rank * m + i, b, j, k)
                  for a, b in zip(made.a_values, made.b_values))
              for i in range(m) for j in range(n)]
    return made.run("gemm_reduce_scatter") == wanted


def gathers_and_multiplies(group, device, m=32, n=24, k=40):
    made = Matrices(group, device, {"A": (m, k), "B": (n, k), "C": (group.size, m, n)})
    b = made.b_values[group.rank]
    wanted = [row_times_row(a, i, b, j, k)
              for a in made.a_values for i in range(m) for j in range(n)]
    return made.run("all_gather_gemm") == wanted


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="products on a GPU for each rank too")
    arguments = parser.parse_args()
    with tilewright.Group.by_environment() as group:
        total, ranks = sum_of_numbers(group), group.size
        results = {"sum of numbers": total == ranks * (ranks + 1) // 2}
        if arguments.gpu:
            device = int(os.environ.get("LOCAL_RANK", group.rank))
            results["gemm_reduce_scatter"] = reduces_and_scatters(group, device)
            results["all_gather_gemm"] = gathers_and_multiplies(group, device)
        group.barrier("the end")
        for name, is_right in results.items():
            print(f"rank {group.rank} of {ranks}: {name} {'right' if is_right else 'WRONG'}")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

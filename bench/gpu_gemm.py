#!/usr/bin/env python3
"""gemm beside cuBLAS (torch.matmul, torch._scaled_mm), bf16, f16 or e4m3: C = A B^T.

    bench/gpu_gemm.py --library build/release/lib/libtilewright.so [4096 8192x8192x1024 ...]
    bench/gpu_gemm.py --group peers,ragged,random --seeds 7,8
    bench/gpu_gemm.py --dtype e4m3 8192
    bench/gpu_gemm.py --compare 128x256,128x128,72x128_t_split3 64x14336x4096
"""

import argparse
import concurrent.futures
import sys

import torch

import measure
import tilewright_c
from gemm_shapes import GROUPS, parse_size, random_sizes

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "e4m3": torch.float8_e4m3fn}

def sizes_of(arguments):
    sizes = list(arguments.sizes)
    groups = arguments.group or ("" if sizes else "peers,ragged")
    for group in groups.split(","):
        if group == "random":
            for seed in arguments.seeds or [arguments.seed]:
                sizes += random_sizes(seed)
        elif group:
            sizes += [parse_size(text) for text in GROUPS[group].split()]
    return sizes


class Row:
    """The tensors of one shape, and cuBLAS on them. Of e4m3 each has a scale, as for rows of
    standard deviation 1; cuBLAS then sums as the tensor cores do, without promotion, as ours."""

    def __init__(self, dtype, m, n, k):
        self.name = f"{m} x {n} x {k}"
        self.work = 2e-12 * m * n * k
        self.scaled = dtype == torch.float8_e4m3fn
        a, b = (torch.randn(rows, k, device="cuda") for rows in (m, n))
        self.scales = [x.abs().max().reshape(1) / 448 for x in (a, b)] if self.scaled else []
        if self.scaled:
            a, b = a / self.scales[0], b / self.scales[1]
        self.a, self.b = a.to(dtype), b.to(dtype)
        self.c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16 if self.scaled else dtype)
        self.c_peer = torch.empty_like(self.c)
        measure.poison([self.c_peer])
        self.peer()
        self.reference = self.a.double() @ self.b.double().T
        for scale in self.scales:
            self.reference *= scale.double()
        self.peer_error = measure.relative_rms(self.c_peer, self.reference)

    def peer(self):
        if self.scaled:
            torch._scaled_mm(self.a, self.b.T, *self.scales, out_dtype=self.c.dtype,
                             use_fast_accum=True, out=self.c_peer)
        else:
            torch.matmul(self.a, self.b.T, out=self.c_peer)

    def check(self, kernel, repeats=3):
        """A launch; its error; whether it is wrong or changes from run to run."""
        ours = kernel.bind(self.a, self.b, *self.scales, self.c)
        measure.poison([self.c])
        ours()
        error = measure.relative_rms(self.c, self.reference)
        alike = measure.runs_alike(ours, [self.c], repeats)
        return ours, error, alike, not error <= 1.1 * self.peer_error or not alike


def print_rows(kernel, rows, rounds):
    print(f"{'m x n x k':>20} {'ours us':>9} {'cuBLAS us':>9} {'TFLOP/s':>8} {'cuBLAS':>8} "
          f"{'ratio':>6} {'10%..90%':>13} {'error':>9} {'cuBLAS':>9}  same bits")
    ratios, wrong = {}, []
    for row in rows:
        ours, error, alike, bad = row.check(kernel)
        pairs = measure.time_pairs(ours, row.peer, rounds)
        print(f"{row.name:>20} {pairs.ours * 1e6:9.1f} {pairs.peer * 1e6:9.1f} "
              f"{row.work / pairs.ours:8.1f} {row.work / pairs.peer:8.1f} {pairs.ratio:6.3f} "
              f"{pairs.low:6.3f}..{pairs.high:5.3f} {error:9.2e} {row.peer_error:9.2e}  "
              f"{'yes' if alike else 'NO'}", flush=True)
        ratios[row.name] = pairs.ratio
        if bad:
            wrong.append(row.name)
    return ratios, wrong


def compare(kernels, rows, rounds):
    """Every schedule on every shape, the fastest first, and the ratio of that one."""
    ratios, wrong = {}, []
    for row in rows:
        launches = {}
        for name, kernel in kernels.items():
            launches[name], _, _, bad = row.check(kernel, repeats=1)
            if bad:
                wrong.append(f"{name} at {row.name}")
        times = measure.time_all({"cuBLAS": row.peer, **launches}, rounds)
        order = sorted(launches, key=times.get)
        ratios[row.name] = times["cuBLAS"] / times[order[0]]
        each = "  ".join(f"{name} {times['cuBLAS'] / times[name]:.3f}" for name in order)
        print(f"{row.name:>20} cuBLAS {times['cuBLAS'] * 1e6:8.1f} us   {each}", flush=True)
    return ratios, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(parser)
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--group", help="peers, ragged, random (by --seeds); several with commas")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")],
                        help="of the random shapes, with commas; default: --seed")
    parser.add_argument("--compare", metavar="SCHEDULES",
                        help="time these beside each other, with commas")
    parser.add_argument("sizes", nargs="*", type=parse_size)
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    library = tilewright_c.Library(arguments.library)
    measure.print_versions(library)
    rows = (Row(DTYPES[arguments.dtype], *sizes) for sizes in sizes_of(arguments))

    options = ({"name": "gemm_fp8"} if arguments.dtype == "e4m3" else
               {"name": "gemm", "dtype": arguments.dtype})

    if arguments.compare:
        names = arguments.compare.split(",")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            kernels = dict(zip(names, pool.map(
                lambda name: library.kernel(**options, schedule=name), names)))
        ratios, wrong = compare(kernels, rows, arguments.rounds)
    else:
        kernel = library.kernel(**options, **measure.schedule_of(arguments))
        ratios, wrong = print_rows(kernel, rows, arguments.rounds)
    print(f"device: {measure.device_state()}")
    worst = sorted(ratios, key=ratios.get)
    print(f"worst row {worst[0]}: {ratios[worst[0]]:.3f}; "
          f"worst decile {ratios[worst[(len(worst) - 1) // 10]]:.3f}")
    if wrong:
        print(f"wrong results: {', '.join(wrong)}")
    print(f"geomean ratio {measure.geometric_mean(ratios.values()):.3f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

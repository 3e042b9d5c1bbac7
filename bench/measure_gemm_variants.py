#!/usr/bin/env python3
"""Times all variants of gemm and gemm_fp8 at many shapes, for fit_gemm_rules.py.

    bench/measure_gemm_variants.py --seeds 20001: --seconds 480 --out bench/data/gemm_times.npz

The shapes are the fixed groups in each dtype, then those of one seed after the other
(gemm_shapes.py), of each ten seeds six in bf16, one in f16 and three in e4m3. Each run begins with
a cold L2 cache and is queued before the GPU is there; one that came too late is not counted. What
the present rules estimate far behind the fastest is left out, and what two runs find far behind is
timed no further: medians of seven are of those near the fastest. The file is written every 30
seconds.
"""

import argparse
import concurrent.futures
import gc
import itertools
import os
import statistics
import sys
import time

import torch

import gemm_times
import measure
import tilewright_c
from gemm_shapes import GROUPS, parse_size, random_sizes

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "e4m3": torch.float8_e4m3fn}
OF_TEN_SEEDS = ["bf16", "e4m3", "bf16", "f16", "bf16", "e4m3", "bf16", "bf16", "e4m3", "bf16"]
# Relative rms up to k = 8192. Beyond, it is taken to grow with k: the tensor cores sum e4m3 with
# few bits.
E4M3_ERROR = 3e-3
LARGEST = 16384
FLUSH_BYTES = 128 << 20  # twice the L2 cache: a write leaves nothing of what was there
AHEAD_CYCLES = 600_000  # the GPU waits while the host queues the first runs
FIRST_ROUNDS, MORE_ROUNDS = 2, 5


def parse_seeds(text):
    """FIRST: or FIRST:END or A,B,..."""
    if ":" not in text:
        return [int(seed) for seed in text.split(",")]
    first, end = text.split(":")
    return range(int(first), int(end)) if end else itertools.count(int(first))


def shapes_of(seeds):
    """With their dtypes. A row of e4m3 is a multiple of 16 bytes."""
    for dtype in DTYPES:
        for group in GROUPS.values():
            for sizes in map(parse_size, group.split()):
                yield sizes, dtype
    for seed in seeds:
        for sizes in random_sizes(seed):
            yield sizes, OF_TEN_SEEDS[seed % 10]


class Operands:
    """The tensors of every shape: parts of the same memory."""

    def __init__(self, dtype):
        self.dtype, self.scaled = dtype, dtype == "e4m3"
        a, b = (torch.randn(LARGEST * LARGEST, device="cuda") for _ in range(2))
        self.scales = [x.abs().max().reshape(1) / 448 for x in (a, b)] if self.scaled else []
        if self.scaled:
            a, b = a / self.scales[0], b / self.scales[1]
        self.a, self.b = a.to(DTYPES[dtype]), b.to(DTYPES[dtype])
        out = torch.bfloat16 if self.scaled else DTYPES[dtype]
        self.c = torch.empty(LARGEST * LARGEST, device="cuda", dtype=out)

    def at(self, m, n, k):
        return Product(self, self.a[:m * k].view(m, k), self.b[:n * k].view(n, k),
                       self.c[:m * n].view(m, n))


class Product:
    def __init__(self, operands, a, b, c):
        self.operands, self.a, self.b, self.c = operands, a, b, c
        self.has_peer = not operands.scaled or self.peer_takes_it()

    def ours(self, kernel):
        return kernel.bind(self.a, self.b, *self.operands.scales, self.c)

    def peer(self):
        if self.operands.scaled:
            torch._scaled_mm(self.a, self.b.T, *self.operands.scales, out_dtype=self.c.dtype,
                             use_fast_accum=True, out=self.c)
        else:
            torch.matmul(self.a, self.b.T, out=self.c)

    def peer_takes_it(self):
        try:
            self.peer()
        except RuntimeError:
            return False
        return True

    def wrong(self, launches):
        """The names of those that leave another result than float64, over poison."""
        reference = self.a.double() @ self.b.double().T
        for scale in self.operands.scales:
            reference *= scale.double()

        def error(launch):
            measure.poison([self.c])
            launch()
            return measure.relative_rms(self.c, reference)

        bound = 1.1 * error(self.peer) if self.has_peer else 0
        if self.operands.scaled:
            bound = max(bound, E4M3_ERROR * max(1, self.a.shape[1] / 8192))
        return [name for name, launch in launches.items() if not error(launch) <= bound]


class Clock:
    """Runs in microseconds, by the GPU's events."""

    def __init__(self):
        self.flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
        self.events = []
        self.runs = self.late = 0

    def time(self, launches, rounds, seen):
        """Adds to `seen`, which holds a list for each name. Nobody always follows the same one."""
        queued = []
        torch.cuda._sleep(AHEAD_CYCLES)
        for index in range(rounds):
            for name in list(launches)[::-1] if index % 2 else launches:
                number = len(queued)
                if number == len(self.events):
                    self.events.append([torch.cuda.Event(enable_timing=True) for _ in range(2)])
                start, end = self.events[number]
                self.flush.zero_()
                start.record()
                launches[name]()
                end.record()
                # The GPU has come here already: it may have waited for the host.
                queued.append((name, start, end, start.query()))
        torch.cuda.synchronize()
        for name, start, end, is_late in queued:
            self.runs += 1
            self.late += is_late
            if not is_late:
                seen[name].append(start.elapsed_time(end) * 1e3)


def planned(shapes, rules, all_variants, factor):
    """Each shape with its dtype and the variants that are worth a run there."""
    in_rules = gemm_times.variants_of(rules)
    estimated = [name for name in all_variants if name in in_rules]
    others = [name for name in all_variants if name not in in_rules]
    while some := list(itertools.islice(shapes, 400)):
        for dtype in DTYPES:
            of_dtype = [sizes for sizes, of in some if of == dtype]
            if dtype == "e4m3":  # TMA reads rows of whole 16 bytes.
                of_dtype = [(m, n, gemm_times.ceil_div(k, 16) * 16) for m, n, k in of_dtype]
            if not of_dtype:
                continue
            estimates = gemm_times.estimates(rules, estimated, of_dtype,
                                             gemm_times.ELEMENT_BYTES[dtype])
            for sizes, row in zip(of_dtype, estimates):
                least = factor * row.min()
                yield sizes, dtype, [name for name, estimate in zip(estimated, row)
                                     if estimate <= least] + others


def time_shape(clock, product, kernels, within):
    """Microseconds by name."""
    launches = {name: product.ours(kernel) for name, kernel in kernels.items()}
    if product.has_peer:
        launches["cuBLAS"] = product.peer
    seen = {name: [] for name in launches}
    clock.time(launches, FIRST_ROUNDS, seen)
    least = {name: min(runs) for name, runs in seen.items() if runs}
    if not least:
        return {}
    best = min(least.values())
    # A median of two is one of them, and long runs differ less.
    rounds = max(2, min(MORE_ROUNDS, round(3000 / best)))
    near = {name: launches[name] for name in launches
            if name == "cuBLAS" or least.get(name, best) <= within * best}
    clock.time(near, rounds, seen)
    return {name: statistics.median(runs) for name, runs in seen.items() if runs}


def compile_all(library, variants, dtypes):
    """By as many threads as the machine has."""
    def kernel(dtype, name):
        options = {"name": "gemm_fp8"} if dtype == "e4m3" else {"name": "gemm", "dtype": dtype}
        return library.kernel(**options, schedule=name)

    start = time.monotonic()
    wanted = [(dtype, name) for dtype in dtypes for name in variants]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        built = list(pool.map(lambda pair: kernel(*pair), wanted))
    kernels = {dtype: {} for dtype in dtypes}
    for (dtype, name), one in zip(wanted, built):
        kernels[dtype][name] = one
    print(f"{len(built)} kernels built in {time.monotonic() - start:.0f} s", flush=True)
    return kernels


class Progress:
    def __init__(self, arguments, clock, device):
        self.arguments, self.clock, self.device = arguments, clock, device
        self.begin = self.told = time.monotonic()
        self.rows, self.wrong, self.checked = [], [], 0

    def seconds(self):
        return time.monotonic() - self.begin

    def check(self, product, sizes, dtype, kernels):
        launches = {name: product.ours(kernel) for name, kernel in kernels.items()}
        at = f"{'x'.join(map(str, sizes))} {dtype}"
        self.wrong += [f"{name} at {at}" for name in product.wrong(launches)]
        self.checked += len(launches)

    def add(self, sizes, dtype, times):
        if times:
            self.rows.append((sizes, dtype, times))
        if time.monotonic() - self.told > 30:
            self.told = time.monotonic()
            self.write()
            print(f"{self.seconds():4.0f} s: {len(self.rows)} shapes, {self.clock.runs} runs, "
                  f"{self.clock.late} of them late; {self.checked} results checked, "
                  f"{len(self.wrong)} wrong; last {'x'.join(map(str, sizes))} {dtype}", flush=True)

    def write(self):
        gemm_times.save(self.arguments.out, self.rows, self.arguments.variants, self.device)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/release/lib/libtilewright.so")
    parser.add_argument("--seeds", type=parse_seeds, default=parse_seeds("20001:"),
                        help="of the random shapes: FIRST: or FIRST:END or A,B,...")
    parser.add_argument("--seconds", type=float, default=480, help="no new shape after so long")
    parser.add_argument("--out", required=True, help="a .npz file")
    parser.add_argument("--variants", type=lambda text: text.split(","),
                        help="with commas; default: all that the rules choose among")
    parser.add_argument("--estimated", type=float, default=2.5,
                        help="leave out what the rules estimate so many times slower")
    parser.add_argument("--within", type=float, default=1.25,
                        help="time what is at most so many times slower than the fastest again")
    parser.add_argument("--check", type=int, default=20, help="the results of each so many shapes")
    arguments = parser.parse_args()

    rules = gemm_times.RULES.read_text()
    arguments.variants = arguments.variants or gemm_times.variants_of(rules)
    torch.manual_seed(0)
    library = tilewright_c.Library(arguments.library)
    measure.print_versions(library)
    operands = {dtype: Operands(dtype) for dtype in DTYPES}
    clock = Clock()
    progress = Progress(arguments, clock, torch.cuda.get_device_name())
    kernels = compile_all(library, arguments.variants, DTYPES)
    for dtype in DTYPES:  # Each is loaded by its first launch, which takes long.
        sizes = 512, 512, 512
        progress.check(operands[dtype].at(*sizes), sizes, dtype, kernels[dtype])

    gc.collect()
    gc.disable()  # A pause of the host is a late run.
    plan = planned(shapes_of(arguments.seeds), rules, arguments.variants, arguments.estimated)
    for number, (sizes, dtype, names) in enumerate(plan):
        if progress.seconds() > arguments.seconds:
            break
        product = operands[dtype].at(*sizes)
        some = {name: kernels[dtype][name] for name in names}
        if number % arguments.check == 0:
            progress.check(product, sizes, dtype, some)
        progress.add(sizes, dtype, time_shape(clock, product, some, arguments.within))
    progress.write()
    print(f"{progress.seconds():.0f} s: {len(progress.rows)} shapes; {clock.late} of {clock.runs} "
          f"runs were late and not counted")
    print(f"device: {measure.device_state()}")
    times = gemm_times.Times([arguments.out])
    for dtype in DTYPES:
        some = times.rows(times.dtypes == dtype)
        if len(some):
            print(f"{dtype} by the rules: {some.summary(rules)}")
    print(f"{progress.checked} results checked against float64; wrong: "
          f"{', '.join(progress.wrong) or 'none'}")
    return 1 if progress.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

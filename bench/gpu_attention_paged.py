#!/usr/bin/env python3
"""attention_paged at decoding: how fast memory gives the pages.

    bench/gpu_attention_paged.py --library build/release/lib/libtilewright.so
    bench/gpu_attention_paged.py --library ... --schedules sm90 sm90_split --rows 32x4096 1x262144

Pages are in random order, with NaN where no sequence has a key. Each run has a cold L2 cache, which
memory has been given (not with --dirty: up to 50 MB then go there meanwhile). TB/s count each byte
of the keys and values that sequences have once, and those of Q and O. `sdpa` is PyTorch's
scaled_dot_product_attention on keys and values that lie side by side, padded to the longest: no
paged peer. It has no column where lengths are far apart.
"""

import argparse
import dataclasses
import math
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import measure
import tilewright_c

ROWS = ("32x4096", "32x8192", "64x4096", "128x4096", "1x262144")
HEADS = ("32/8", "64/8")
PAGES = (16, 64)
DIM = 128


@dataclasses.dataclass
class Row:
    batch: int
    length: int
    heads: int
    kv_heads: int
    page: int
    spread: str  # of the lengths: `equal`, but for a few keys less, or a heavy `tail`

    def __str__(self):
        name = f"{self.batch}x{self.length}" + ("t" if self.spread == "tail" else "")
        return f"{name} {self.heads}/{self.kv_heads} p{self.page}"

    def lengths(self):
        if self.spread == "equal":
            return [self.length - b % 7 for b in range(self.batch)]
        # Pareto, from a tenth of the mean to ten times it.
        generator = torch.Generator().manual_seed(1)
        drawn = 0.3 * (1 - torch.rand(self.batch, generator=generator)) ** (-1 / 1.3)
        return [max(1, int(self.length * x)) for x in drawn.clamp(0.1, 10).tolist()]


def cache_of(shape, layout):
    """{pages, page, kv_heads, dim} of NaN; `hnd`: a page's heads lie one behind the other."""
    pages, page, heads, dim = shape
    if layout == "hnd":
        shape = (pages, heads, page, dim)
    cache = torch.full(shape, math.nan, dtype=torch.bfloat16, device="cuda")
    return cache.transpose(1, 2) if layout == "hnd" else cache


class Problem:
    def __init__(self, row, layout):
        self.row = row
        self.lengths = row.lengths()
        columns = max(-(-n // row.page) for n in self.lengths)
        used = [-(-n // row.page) for n in self.lengths]
        pages = sum(used) + 3
        order = torch.randperm(pages, device="cuda")
        table = torch.full((row.batch, columns), pages + 7, dtype=torch.int32, device="cuda")
        shape = (pages, row.page, row.kv_heads, DIM)
        self.keys, self.values = (cache_of(shape, layout) for _ in range(2))
        first = 0
        for b, count in enumerate(used):
            own = order[first:first + count]
            first += count
            table[b, :count] = own
            for cache in (self.keys, self.values):
                drawn = torch.randn((count * row.page, row.kv_heads, DIM), device="cuda",
                                    dtype=torch.bfloat16)
                drawn[self.lengths[b]:] = math.nan
                cache[own] = drawn.view(count, *shape[1:])
        self.table = table
        self.queries = torch.randn((row.batch, row.heads, DIM), device="cuda",
                                   dtype=torch.bfloat16)
        self.output = torch.empty_like(self.queries)
        self.lse = torch.empty((row.batch, row.heads), device="cuda")
        self.tensors = [
            self.queries, torch.arange(row.batch + 1, device="cuda", dtype=torch.int32),
            torch.tensor(self.lengths, device="cuda", dtype=torch.int32), self.table, self.keys,
            self.values, self.output, self.lse]

    def bytes(self):
        cache = 4 * sum(self.lengths) * self.row.kv_heads * DIM
        return cache + 4 * self.queries.numel()

    def launch(self, library, schedule):
        options = {"schedule": schedule} if schedule else {}
        kernel = library.kernel("attention_paged", heads=self.row.heads,
                                kv_heads=self.row.kv_heads, dim=DIM, page=self.row.page, **options)
        return kernel.bind(*self.tensors)

    def of_sequence(self, b):
        """Its keys and values, side by side: {kv_heads, length, dim}."""
        own = self.table[b, :-(-self.lengths[b] // self.row.page)].long()
        return [cache[own].flatten(0, 1)[:self.lengths[b]].transpose(0, 1)
                for cache in (self.keys, self.values)]

    def errors(self):
        """Of some sequences: the largest relative error, and the largest difference of LSE."""
        worst = worst_lse = 0.0
        group = self.row.heads // self.row.kv_heads
        for b in {0, 1 % self.row.batch, self.row.batch // 2, self.row.batch - 1}:
            keys, values = (x.repeat_interleave(group, 0).float() for x in self.of_sequence(b))
            scores = (keys @ self.queries[b].float()[:, :, None])[..., 0].double() / math.sqrt(DIM)
            wanted = (scores.softmax(-1).float()[:, None] @ values)[:, 0].double()
            worst = max(worst, measure.relative_rms(self.output[b], wanted))
            worst_lse = max(worst_lse, (self.lse[b] - scores.logsumexp(-1)).abs().max().item())
        return worst, worst_lse

    def sdpa(self):
        """SDPA on contiguous keys and values, or nothing where it does not run."""
        row = self.row
        if len(set(self.lengths)) > 7:
            return None
        most = max(self.lengths)
        keys, values = (torch.zeros((row.batch, row.kv_heads, most, DIM), device="cuda",
                                    dtype=torch.bfloat16) for _ in range(2))
        for b, n in enumerate(self.lengths):
            keys[b, :, :n], values[b, :, :n] = self.of_sequence(b)
        queries = self.queries[:, :, None]
        for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
            def launch(backend=backend):
                with sdpa_kernel(backend):
                    F.scaled_dot_product_attention(queries, keys, values, enable_gqa=True)
            try:
                launch()
                torch.cuda.synchronize()
            except RuntimeError:
                continue
            return backend.name.split("_")[0].lower(), launch
        return None


def run_row(library, row, schedules, arguments):
    problem = Problem(row, arguments.layout)
    launches, failures = {}, []
    for schedule in schedules:
        name = schedule or "ours"
        launch = problem.launch(library, schedule)
        measure.poison([problem.output, problem.lse])
        launch()
        torch.cuda.synchronize()
        error, lse_error = problem.errors()
        alike = measure.runs_alike(launch, [problem.output, problem.lse])
        if not (error <= 5e-3 and lse_error <= 1e-3 and alike):
            failures.append(f"{row} {name}: error {error:.2e}, LSE {lse_error:.2e}, alike {alike}")
        launches[name] = launch
    peer = problem.sdpa()
    if peer:
        launches["sdpa"] = peer[1]
    seconds = measure.time_rounds(launches, arguments.rounds, clean=not arguments.dirty)
    cells = []
    for name, times in seconds.items():
        median = statistics.median(times)
        cells.append(f"{name} {problem.bytes() / median * 1e-12:5.3f} TB/s {median * 1e6:7.1f} us")
    peer_name = peer[0] + " on contiguous keys, no paged peer" if peer else "no peer"
    print(f"{str(row):22} {' | '.join(cells)} ({peer_name}) error {error:.1e}", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(parser)
    parser.add_argument("--schedules", nargs="+", default=[None],
                        help="several, timed in the same rounds; by default what the rules choose")
    parser.add_argument("--rows", nargs="+", default=ROWS, help="BATCHxLENGTH, with t behind it "
                        "for lengths of a heavy tail")
    parser.add_argument("--heads", nargs="+", default=HEADS, help="HEADS/KV_HEADS")
    parser.add_argument("--pages", nargs="+", type=int, default=PAGES)
    parser.add_argument("--layout", choices=("nhd", "hnd"), default="nhd", help="of a page")
    parser.add_argument("--dirty", action="store_true", help="the L2 cache holds what was written")
    arguments = parser.parse_args()
    schedules = [arguments.schedule] if arguments.schedule else arguments.schedules

    torch.manual_seed(arguments.seed)
    library = tilewright_c.Library(arguments.library)
    measure.print_versions(library)
    failures = []
    for text in arguments.rows:
        batch, length = (int(x) for x in text.rstrip("t").split("x"))
        for heads in arguments.heads:
            for page in arguments.pages:
                row = Row(batch, length, *(int(x) for x in heads.split("/")), page,
                          "tail" if text.endswith("t") else "equal")
                failures += run_row(library, row, schedules, arguments)
    print(f"device: {measure.device_state()}")
    for failure in failures:
        print(f"wrong: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""attention_paged at decoding: how fast memory gives the pages.

    bench/gpu_attention_paged.py --library build/release/lib/libtilewright.so
    bench/gpu_attention_paged.py --library ... --schedules sm90 sm90_split --rows 32x4096 1x262144
    bench/gpu_attention_paged.py --library ... --cache e4m3       # beside the same keys in bf16
    bench/gpu_attention_paged.py --library ... --cache latent --rows 64x8192 --heads 16/1 128/1
    bench/gpu_attention_paged.py --library ... --chunk 512 --rows 8x8192    # of prompts, causal
    bench/gpu_attention_paged.py --library ... --split-size 2048    # parts of a fixed size
    bench/gpu_attention_paged.py --library ... --planned      # and by a plan that was made before
    bench/gpu_attention_paged.py --library ... --flashinfer   # beside FlashInfer, a paged peer

Pages are in random order, with NaN where no sequence has a key. With --runs N they follow each
other N at a time. Each run has a cold L2 cache, which
memory has been given (not with --dirty: up to 50 MB then go there meanwhile). TB/s count each byte
of the keys and values that sequences have once, and those of Q and O. `sdpa` is PyTorch's
scaled_dot_product_attention on keys and values that lie side by side, padded to the longest: no
paged peer. It has no column where lengths are far apart. Latent keys are 576/512, and stand beside
the longer one of two bounds: every byte at the card's read rate, every product at PRODUCT_RATE.
Chunks stand beside attention_forward on keys and values that lie side by side.
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
LATENT, LATENT_VALUES = 576, 512
READ_RATES = {"H200": 4.2e12, "H100": 3.0e12}  # bytes a second, of copies by TMA
PRODUCT_RATE = 858e12  # operations a second, of bf16 products that go on


@dataclasses.dataclass
class Row:
    batch: int
    length: int
    heads: int
    kv_heads: int
    page: int
    spread: str  # of the lengths: `equal`, but for a few keys less, or a heavy `tail`
    chunk: int = 1  # queries of each sequence
    split_size: int = 0  # keys of a part; 0: parts fill the GPU
    runs: int = 1  # pages that follow each other

    def __str__(self):
        name = f"{self.batch}x{self.length}" + ("t" if self.spread == "tail" else "")
        return f"{name} {self.heads}/{self.kv_heads} p{self.page}" + (
            f" q{self.chunk}" if self.chunk > 1 else "") + (
            f" split {self.split_size}" if self.split_size else "") + (
            f" runs {self.runs}" if self.runs > 1 else "")

    def lengths(self):
        if self.chunk > 1:
            return [self.length] * self.batch
        if self.spread == "equal":
            return [self.length - b % 7 for b in range(self.batch)]
        # Pareto, from a tenth of the mean to ten times it.
        generator = torch.Generator().manual_seed(1)
        drawn = 0.3 * (1 - torch.rand(self.batch, generator=generator)) ** (-1 / 1.3)
        return [max(1, int(self.length * x)) for x in drawn.clamp(0.1, 10).tolist()]


def page_order(pages, runs):
    """All pages, in runs that follow each other, which are in random order. Those that fill no run
    come last, so that each run begins where a sequence's copies do."""
    first = torch.randperm(pages // runs, device="cuda") * runs
    order = (first[:, None] + torch.arange(runs, device="cuda")).flatten()
    return torch.cat([order, torch.arange(len(order), pages, device="cuda")])


def cache_of(shape, layout):
    """{pages, page, kv_heads, dim} of NaN; `hnd`: a page's heads lie one behind the other."""
    pages, page, *heads, dim = shape
    if layout == "hnd":
        heads, = heads
        shape = (pages, heads, page, dim)
    cache = torch.full(shape, math.nan, dtype=torch.bfloat16, device="cuda")
    return cache.transpose(1, 2) if layout == "hnd" else cache


class Problem:
    kernel = "attention_paged"
    dims = (DIM, DIM)  # of keys, and of values

    def __init__(self, row, layout):
        self.row = row
        self.lengths = row.lengths()
        columns = max(-(-n // row.page) for n in self.lengths)
        used = [-(-n // row.page) for n in self.lengths]
        pages = sum(used) + 3
        order = page_order(pages, row.runs)
        table = torch.full((row.batch, columns), pages + 7, dtype=torch.int32, device="cuda")
        shape = (pages, row.page, *self.row_shape())
        self.caches = [cache_of(shape, layout) for _ in range(self.tensors_of_cache)]
        first = 0
        for b, count in enumerate(used):
            own = order[first:first + count]
            first += count
            table[b, :count] = own
            for cache in self.caches:
                drawn = torch.randn((count * row.page, *shape[2:]), device="cuda",
                                    dtype=torch.bfloat16)
                drawn[self.lengths[b]:] = math.nan
                cache[own] = drawn.view(count, *shape[1:])
        self.table = table
        queries = row.batch * row.chunk
        self.queries = torch.randn((queries, row.heads, self.dims[0]), device="cuda",
                                   dtype=torch.bfloat16)
        self.output = torch.empty((queries, row.heads, self.dims[1]), device="cuda",
                                  dtype=torch.bfloat16)
        self.lse = torch.empty((queries, row.heads), device="cuda")

    tensors_of_cache = 2

    def row_shape(self):
        return self.row.kv_heads, DIM

    def options(self):
        return {"kv_heads": self.row.kv_heads, "causal": self.row.chunk > 1}

    def more_tensors(self):
        return []

    def bytes(self):
        row = sum(cache[0, 0].numel() * cache.element_size() for cache in self.caches)
        return row * sum(self.lengths) + 2 * (self.queries.numel() + self.output.numel())

    def operations(self):
        """Of both products; a chunk's own keys count as half."""
        keys = sum(self.lengths) - self.row.batch * (self.row.chunk - 1) / 2
        return 2 * keys * self.row.chunk * self.row.heads * sum(self.dims)

    def places(self):
        """Where queries of sequences begin, and how many keys each has."""
        offsets = torch.arange(self.row.batch + 1, device="cuda", dtype=torch.int32)
        return (offsets * self.row.chunk,
                torch.tensor(self.lengths, device="cuda", dtype=torch.int32))

    def launch(self, library, schedule, plan=None):
        options = {"schedule": schedule} if schedule else {}
        if self.row.split_size:
            options["fixed_split_size"] = self.row.split_size
        if plan is not None:
            options["planned"] = True
        kernel = library.kernel(self.kernel, heads=self.row.heads, dim=self.dims[0],
                                dim_v=self.dims[1], page=self.row.page, **self.options(), **options)
        return kernel.bind(self.queries, *self.places(), self.table, *self.caches,
                           *self.more_tensors(), self.output, self.lse,
                           *([] if plan is None else [plan]))

    def planned(self, library):
        """What makes a plan, and attention by it."""
        places = self.places()
        plan = torch.empty_like(places[0])
        latent = self.kernel == "attention_paged_mla"
        options = {"latent": True} if latent else {"kv_heads": self.row.kv_heads}
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        make = library.kernel("attention_paged_plan", heads=self.row.heads,
                              fixed_split_size=self.row.split_size,
                              multiprocessors=properties.multi_processor_count,
                              **options).bind(*places, plan)
        make()
        return make, self.launch(library, None, plan)

    def flashinfer(self):
        """FlashInfer's attention to the same pages, planned beforehand; into an output of its own,
        which is returned too."""
        try:
            import flashinfer
        except ImportError as error:
            sys.exit(f"--flashinfer: {error}\n  fix: pip install flashinfer-python")
        row = self.row
        used = torch.tensor([-(-n // row.page) for n in self.lengths], dtype=torch.int32)
        indptr = torch.nn.functional.pad(used.cumsum(0, dtype=torch.int32), (1, 0))
        indices = torch.cat([self.table[b, :n] for b, n in enumerate(used.tolist())])
        last = torch.tensor([(n - 1) % row.page + 1 for n in self.lengths], dtype=torch.int32)
        workspace = torch.zeros(256 << 20, dtype=torch.uint8, device="cuda")
        shape = (row.heads, row.kv_heads, DIM, row.page)
        if row.chunk > 1:
            wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, "NHD")
            offsets = torch.arange(row.batch + 1, dtype=torch.int32) * row.chunk
            wrapper.plan(offsets, indptr, indices, last, *shape, causal=True,
                         q_data_type=torch.bfloat16, kv_data_type=torch.bfloat16)
        else:
            wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD",
                                                                    use_tensor_cores=True)
            wrapper.plan(indptr, indices, last, *shape, q_data_type=torch.bfloat16,
                         kv_data_type=torch.bfloat16)
        output = torch.empty_like(self.output)
        return lambda: wrapper.run(self.queries, tuple(self.caches), out=output), output

    def of_sequence(self, b):
        """Its keys and values, side by side: {kv_heads, length, dim}."""
        own = self.table[b, :-(-self.lengths[b] // self.row.page)].long()
        return [cache[own].flatten(0, 1)[:self.lengths[b]].transpose(0, 1)
                for cache in self.caches]

    def errors(self):
        """Of some sequences: the largest relative error, and the largest difference of LSE."""
        errors, lse_errors = [], []
        group = self.row.heads // self.row.kv_heads
        chunk = self.row.chunk
        for b in {0, 1 % self.row.batch, self.row.batch // 2, self.row.batch - 1}:
            keys, values = (x.repeat_interleave(group, 0).float() for x in self.of_sequence(b))
            for i in {0, chunk // 2, chunk - 1}:
                query = b * chunk + i
                seen = self.lengths[b] - (chunk - 1 - i)
                scores = (keys[:, :seen] @ self.queries[query].float()[:, :, None])[..., 0]
                scores = scores.double() / math.sqrt(self.dims[0])
                wanted = (scores.softmax(-1).float()[:, None] @ values[:, :seen])[:, 0].double()
                errors.append(measure.relative_rms(self.output[query], wanted))
                lse_errors.append((self.lse[query] - scores.logsumexp(-1)).abs().max().item())
        # Of a tensor, since NaN is then the largest.
        return torch.tensor(errors).max().item(), torch.tensor(lse_errors).max().item()

    def peers(self, library, schedules):
        """What else runs in the same rounds, by name, and what it is."""
        if self.row.chunk > 1:
            return {"contiguous": self.contiguous(library)}, "attention_forward, no paged peer"
        peer = self.sdpa()
        if not peer:
            return {}, "no peer"
        return {"sdpa": peer[1]}, peer[0] + " on contiguous keys, no paged peer"

    def contiguous(self, library):
        """attention_forward on keys and values that lie side by side."""
        row = self.row
        keys, values = (torch.stack([self.of_sequence(b)[i].transpose(0, 1)
                                     for b in range(row.batch)]) for i in range(2))
        queries = self.queries.unflatten(0, (row.batch, row.chunk))
        kernel = library.kernel("attention_forward", heads=row.heads, kv_heads=row.kv_heads,
                                dim=DIM, causal=True)
        return kernel.bind(queries, keys, values, torch.empty_like(queries),
                           torch.empty((row.batch, row.heads, row.chunk), device="cuda"))

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


class QuantisedProblem(Problem):
    """The keys and values of another problem in e4m3, with a scale for each head."""
    kernel = "attention_paged_fp8"

    def __init__(self, plain):
        self.__dict__.update(plain.__dict__)
        self.plain = plain
        # No element is further out than the largest of e4m3, which PyTorch makes NaN of.
        self.scales = [torch.linspace(first, first / 2, self.row.kv_heads, device="cuda")
                       for first in (0.05, 0.04)]
        self.caches = [(cache / scale[:, None]).to(torch.float8_e4m3fn)
                       for cache, scale in zip(plain.caches, self.scales)]
        self.output, self.lse = torch.empty_like(plain.output), torch.empty_like(plain.lse)

    def more_tensors(self):
        return self.scales

    def of_sequence(self, b):
        own = self.table[b, :-(-self.lengths[b] // self.row.page)].long()
        return [(cache.view(torch.uint8)[own].view(cache.dtype).float() * scale[:, None])
                .flatten(0, 1)[:self.lengths[b]].transpose(0, 1)
                for cache, scale in zip(self.caches, self.scales)]

    def peers(self, library, schedules):
        return {f"bf16 {schedule or 'ours'}": self.plain.launch(library, schedule)
                for schedule in schedules}, "the same keys in bf16"


class LatentProblem(Problem):
    kernel = "attention_paged_mla"
    dims = (LATENT, LATENT_VALUES)
    tensors_of_cache = 1

    def row_shape(self):
        return (LATENT,)

    def options(self):
        return {"causal": self.row.chunk > 1}

    def of_sequence(self, b):
        own = self.table[b, :-(-self.lengths[b] // self.row.page)].long()
        keys = self.caches[0][own].flatten(0, 1)[None, :self.lengths[b]]
        return [keys, keys[..., :LATENT_VALUES]]

    def peers(self, library, schedules):
        name = torch.cuda.get_device_name()
        rate = next((rate for card, rate in READ_RATES.items() if card in name), math.nan)
        memory, products = self.bytes() / rate, self.operations() / PRODUCT_RATE
        which = "memory" if memory > products else "products"
        return {}, f"no peer, bound {max(memory, products) * 1e6:.1f} us of {which}"


def problem_of(row, arguments):
    if arguments.cache == "latent":
        return LatentProblem(row, arguments.layout)
    plain = Problem(row, arguments.layout)
    return QuantisedProblem(plain) if arguments.cache == "e4m3" else plain


def wrong(row, name, problem, launch):
    """What is wrong with the results of a launch."""
    outputs = [problem.output, problem.lse]
    measure.poison(outputs)
    launch()
    torch.cuda.synchronize()
    error, lse_error = problem.errors()
    alike = measure.runs_alike(launch, outputs)
    if error <= 5e-3 and lse_error <= 1e-3 and alike:
        return []
    return [f"{row} {name}: error {error:.2e}, LSE {lse_error:.2e}, alike {alike}"]


def run_row(library, row, schedules, arguments):
    problem = problem_of(row, arguments)
    launches, failures = {}, []
    for schedule in schedules:
        name = schedule or "ours"
        launch = problem.launch(library, schedule)
        failures += wrong(row, name, problem, launch)
        launches[name] = launch
    if arguments.planned:
        launches["plan"], launches["by a plan"] = problem.planned(library)
        failures += wrong(row, "by a plan", problem, launches["by a plan"])
    if arguments.flashinfer:
        launches["flashinfer"], output = problem.flashinfer()
        launches["flashinfer"]()
        difference = measure.relative_rms(output, problem.output.double())
        if not difference <= 1e-2:
            failures.append(f"{row} flashinfer: differs from ours by {difference:.2e}")
    peers, peer_name = problem.peers(library, schedules)
    launches.update(peers)
    seconds = measure.time_rounds(launches, arguments.rounds, clean=not arguments.dirty)
    cells = []
    for name, times in seconds.items():
        median = statistics.median(times)
        if name.startswith("bf16") or name == "plan":
            cells.append(f"{name} {median * 1e6:7.1f} us")
        elif row.chunk > 1:
            cells.append(f"{name} {problem.operations() / median * 1e-12:4.0f} TFLOP/s "
                         f"{median * 1e6:7.1f} us")
        else:
            cells.append(f"{name} {problem.bytes() / median * 1e-12:5.3f} TB/s "
                         f"{median * 1e6:7.1f} us")
    print(f"{str(row):22} {' | '.join(cells)} ({peer_name}) error {problem.errors()[0]:.1e}",
          flush=True)
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
    parser.add_argument("--cache", choices=("bf16", "e4m3", "latent"), default="bf16")
    parser.add_argument("--chunk", type=int, default=1, help="queries of each sequence, causal")
    parser.add_argument("--split-size", type=int, default=0, help="keys of a part: "
                        "fixed_split_size")
    parser.add_argument("--layout", choices=("nhd", "hnd"), default="nhd", help="of a page")
    parser.add_argument("--runs", type=int, default=1, help="pages that follow each other")
    parser.add_argument("--planned", action="store_true", help="also by a plan that was made "
                        "before, and the time of the plan")
    parser.add_argument("--flashinfer", action="store_true", help="beside FlashInfer, where "
                        "flashinfer-python is installed; bf16 caches, pages of nhd")
    parser.add_argument("--dirty", action="store_true", help="the L2 cache holds what was written")
    arguments = parser.parse_args()
    schedules = [arguments.schedule] if arguments.schedule else arguments.schedules
    if arguments.flashinfer and (arguments.cache != "bf16" or arguments.layout != "nhd"):
        parser.error("--flashinfer takes --cache bf16 and --layout nhd")

    torch.manual_seed(arguments.seed)
    library = tilewright_c.Library(arguments.library)
    measure.print_versions(library)
    failures = []
    for text in arguments.rows:
        batch, length = (int(x) for x in text.rstrip("t").split("x"))
        for heads in arguments.heads:
            for page in arguments.pages:
                row = Row(batch, length, *(int(x) for x in heads.split("/")), page,
                          "tail" if text.endswith("t") else "equal", arguments.chunk,
                          arguments.split_size, arguments.runs)
                failures += run_row(library, row, schedules, arguments)
    print(f"device: {measure.device_state()}")
    for failure in failures:
        print(f"wrong: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

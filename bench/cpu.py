#!/usr/bin/env python3
"""The target cpu beside PyTorch: attention, decode, products and rows, checked and then timed.

    bench/cpu.py                              all tables
    bench/cpu.py --only decode gemm --quick   two of them, at their smallest sizes

Both run in one process, turn by turn. What is compared is the CPU time that the process took with
one thread, which holds on a machine that others use too, and the wall time with two, of a call
right behind some milliseconds of others of the same library. Each is the least of several rounds.
Both write to memory that was used before. `x` is how many times faster ours is; behind each table
stands the geometric mean, and the least that is asked of it.
"""

import argparse
import ctypes
import dataclasses
import functools
import math
import os
import pathlib
import sys
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import tilewright  # noqa: E402

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
# Of the root mean square of what is wanted: roundings of the dtype and of sums.
ALLOWED = {"f32": 2e-6, "bf16": 1e-2, "f16": 2e-3}


@dataclasses.dataclass
class Case:
    name: str
    ours: object  # functions without arguments
    theirs: object
    outputs: list  # (ours, the float64 reference)
    dtype: str


@dataclasses.dataclass
class Table:
    """Cases that one figure is asked of: the geometric mean of their ratios."""

    title: str
    asked: float
    cases: object  # an iterable that makes a case when it is its turn


def normal(generator, dtype, *shape):
    return torch.randn(*shape, generator=generator).to(DTYPES[dtype])


def kernel(name, **options):
    return tilewright.Kernel(name, target="cpu", **options)


def bound(made, *tensors):
    return lambda: made(*tensors)


def attention_case(generator, dtype, dim, length, causal, heads=8):
    q, k, v = (normal(generator, dtype, 1, length, heads, dim) for _ in range(3))
    out = torch.full_like(q, math.nan)
    lse = torch.full((1, heads, length), math.nan)
    made = kernel("attention_forward", heads=heads, dim=dim, causal=causal, dtype=dtype)
    theirs = [t.transpose(1, 2).contiguous() for t in (q, k, v)]

    def attend(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    wanted = attend(*(t.double() for t in theirs)).transpose(1, 2)
    return Case(f"{dtype} d{dim} {length}{' causal' if causal else ''}",
                bound(made, q, k, v, out, lse), lambda: attend(*theirs), [(out, wanted)], dtype)


# How the tensors of ours and of PyTorch's lie, of which each takes any strides.
LAYOUTS = {
    "own": "heads side by side, PyTorch's by heads",
    "by_heads": "same tensors, by heads",
    "side_by_side": "same tensors, heads side by side",
}


def laid_out(tensors, layout):
    """{batch, length, heads, dim} for ours, and {batch, heads, length, dim} for theirs."""
    theirs = [t.transpose(1, 2) for t in tensors]
    if layout != "side_by_side":
        theirs = [t.contiguous() for t in theirs]
    return [t.transpose(1, 2) for t in theirs] if layout == "by_heads" else list(tensors), theirs


def backward_case(generator, dtype, dim, length, layout, heads=8):
    given = [normal(generator, dtype, 1, length, heads, dim) for _ in range(4)]
    (q, k, v, d_out), theirs = laid_out(given, layout)
    options = {"heads": heads, "dim": dim, "dtype": dtype}
    out, lse = torch.empty_like(q), torch.empty(1, heads, length)
    kernel("attention_forward", **options)(q, k, v, out, lse)
    gradients = [torch.full_like(t, math.nan) for t in (q, k, v)]
    made = kernel("attention_backward", **options)
    given = {"Q": q, "K": k, "V": v, "O": out, "LSE": lse, "dO": d_out,
             **dict(zip(("dQ", "dK", "dV"), gradients))}
    theirs_d_out = theirs.pop()
    theirs = [t.detach().requires_grad_() for t in theirs]
    theirs_out = torch.nn.functional.scaled_dot_product_attention(*theirs)
    exact = [t.detach().double().requires_grad_() for t in theirs]
    torch.nn.functional.scaled_dot_product_attention(*exact).backward(theirs_d_out.double())

    def backward():
        torch.autograd.grad(theirs_out, theirs, theirs_d_out, retain_graph=True)

    return Case(f"{dtype} d{dim} {length}", bound(made, *(given[name] for name in made.tensors)),
                backward,
                [(ours, t.grad.transpose(1, 2)) for ours, t in zip(gradients, exact)], dtype)


def decode_case(generator, dtype, keys, layout, heads=32, dim=128):
    given = [normal(generator, dtype, 1, length, heads, dim) for length in (1, keys, keys)]
    (q, k, v), theirs = laid_out(given, layout)
    out, lse = torch.full_like(q, math.nan), torch.full((1, heads, 1), math.nan)
    made = kernel("attention_forward", heads=heads, dim=dim, dtype=dtype)
    attend = torch.nn.functional.scaled_dot_product_attention
    wanted = attend(*(t.double() for t in theirs)).transpose(1, 2)
    return Case(f"{dtype} {keys} keys", bound(made, q, k, v, out, lse), lambda: attend(*theirs),
                [(out, wanted)], dtype)


def gemm_case(generator, dtype, size):
    made = kernel("gemm", dtype=dtype)
    a, b = (normal(generator, dtype, size, size) for _ in range(2))
    c = torch.full_like(a, math.nan)
    wanted = a.double() @ b.double().t()
    return Case(f"{dtype} {size}", bound(made, a, b, c), lambda: a @ b.t(), [(c, wanted)], dtype)


@functools.cache
def load_rows(path):
    """Functions of rows as a user writes them: bench/rows/cpu_rows.cpp."""
    rows = ctypes.CDLL(path)
    rows.rows_create.restype = ctypes.c_void_p
    rows.rows_run.argtypes = rows.rows_start.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64]
    return rows


def rows_case(generator, dtype, name, path, rows=4096, columns=1024):
    """`path`: the function as rows/cpu_rows.cpp has it; else the library's, which keeps statistics
    of the rows for gradients too."""
    x, weight, bias = (normal(generator, dtype, *shape)
                       for shape in ((rows, columns), (columns,), (columns,)))
    y = torch.full_like(x, math.nan)
    functional = torch.nn.functional

    def theirs(x, weight, bias):
        if name == "softmax":
            return functional.softmax(x, 1)
        if name == "layer_norm":
            return functional.layer_norm(x, (columns,), weight, bias)
        if name == "rms_norm":
            return functional.rms_norm(x, (columns,), weight, 1e-5)
        return functional.gelu(x)

    tensors = (x, weight, bias)
    wanted = theirs(*(t.double() for t in tensors))
    if path is None:
        made = kernel(name, dtype=dtype)
        given = {"X": x, "weight": weight, "bias": bias, "Y": y}
        ours = bound(made, *(given.get(tensor, torch.empty(rows)) for tensor in made.tensors))
    else:
        library = load_rows(path)
        handle = library.rows_create(name.encode(), dtype.encode(), columns)

        def ours():
            library.rows_run(handle, *(t.data_ptr() for t in (*tensors, y)), rows)

    return Case(f"{dtype} {name}", ours, lambda: theirs(*tensors), [(y, wanted)], dtype)


@dataclasses.dataclass
class Start:
    """What is not worth a comparison: microseconds of CPU time, and how many may be taken."""

    name: str
    asked: float  # infinity: nothing is asked of it
    run: object  # does it so often


def starts(arguments):
    """Of a launch of one row of 16 elements, which is little else; and of a kernel."""
    x, y = torch.randn(1, 16), torch.full((1, 16), math.nan)
    rows = load_rows(arguments.library.with_name("libbench_cpu_rows.so"))
    handle = rows.rows_create(b"gelu", b"f32", 16)
    given = [handle, *(t.data_ptr() for t in (x, x, x, y))]
    yield Start("launch of gelu, C++", 3, lambda times: rows.rows_start(*given, times))

    softmax = kernel("softmax", dtype="f32")
    softmax(x, y)
    flat = softmax._library._handle.tilewright_kernel_run_flat
    numbers = (ctypes.c_int64 * 10)(x.data_ptr(), 1, 16, 16, 1, y.data_ptr(), 1, 16, 16, 1)
    flat_given = [ctypes.c_void_p(softmax.handle), numbers, ctypes.c_int32(10), None]

    def run_flat(times):
        for _ in range(times):
            flat(*flat_given)

    def call(times):
        for _ in range(times):
            softmax(x, y)

    def make_attention(times):
        for i in range(times):
            made = kernel("attention_forward", dtype="f32", heads=8, causal=True, scale=1 + i / 8)
            q, lse = torch.zeros(1, 1, 8, 64), torch.zeros(1, 8, 1)
            made(q, q, q, torch.zeros_like(q), lse)

    yield Start("launch of softmax, C (by ctypes)", 3, run_flat)
    yield Start("the same, Python's Kernel", math.inf, call)
    yield Start("attention: recorded, lowered, run", 5000, make_attention)


def print_starts(arguments):
    print(f"\n{'what a start takes':34} {'CPU us':>10} {'asked':>10}")
    are_fast = True
    for start in starts(arguments):
        times, least = 8 if start.asked > 100 else 2000, math.inf
        for _ in range(4 * arguments.rounds):
            started = time.process_time()
            start.run(times)
            least = min(least, (time.process_time() - started) / times * 1e6)
        verdict = "" if math.isinf(start.asked) else f"< {start.asked:.0f}"
        print(f"  {start.name:32} {least:10.2f} {verdict:>10}"
              f"{'' if least < start.asked else ', TOO SLOW'}", flush=True)
        are_fast = are_fast and least < start.asked
    return are_fast


def tables(arguments):
    generator = torch.Generator().manual_seed(arguments.seed)
    lengths = [1024] if arguments.quick else [1024, 2048, 4096]

    def attention(dtype, causal):
        return (attention_case(generator, dtype, dim, length, causal)
                for dim in (64, 128) for length in lengths)

    yield "attention", Table("attention f32, full", 1.05, attention("f32", False))
    yield "attention", Table("attention f32, causal", 1.25, attention("f32", True))
    yield "attention", Table("attention bf16, full", 1.7, attention("bf16", False))
    yield "attention", Table("attention bf16, causal", 2.0, attention("bf16", True))
    yield "attention", Table("attention f16, full", 1.4, attention("f16", False))
    yield "attention", Table("attention f16, causal", 1.4, attention("f16", True))
    keys = [1024] if arguments.quick else [8192]
    for dtype, asked in (("f32", 1.4), ("bf16", 2.8)):
        for layout, title in LAYOUTS.items():
            yield "decode", Table(f"one query {dtype}: {title}", asked,
                                  (decode_case(generator, dtype, count, layout) for count in keys))
    for dtype, asked in (("f32", 0.97), ("bf16", 0.85), ("f16", 3.0)):
        yield "gemm", Table(f"gemm {dtype}", asked,
                            (gemm_case(generator, dtype, size) for size in lengths))
    for dtype in ("f32", "bf16"):
        for layout, title in LAYOUTS.items():
            yield "backward", Table(f"gradients {dtype}: {title}", 1.2,
                                    (backward_case(generator, dtype, 64, length, layout)
                                     for length in lengths[:2]))
    path = arguments.library.with_name("libbench_cpu_rows.so")
    for dtype in ("f32", "bf16"):
        for name in ("softmax", "layer_norm", "rms_norm", "gelu"):
            yield "rows", Table(f"{name} of rows, {dtype}", 1.0,
                                (rows_case(generator, dtype, name, path) for _ in range(1)))
            if name != "gelu":
                yield "rows", Table(f"{name} of the library, {dtype}", 1.0,
                                    (rows_case(generator, dtype, name, None) for _ in range(1)))


def check(case):
    """The largest error of an output, which must have been written all over."""
    case.ours()
    worst = 0.0
    for ours, wanted in case.outputs:
        error = (ours.double() - wanted).square().mean().sqrt() / wanted.square().mean().sqrt()
        worst = max(worst, error.item()) if not math.isnan(error.item()) else math.inf
    if worst > ALLOWED[case.dtype]:
        sys.exit(f"{case.name}: the error is {worst:.1e}, and {ALLOWED[case.dtype]:.1e} is allowed")
    return worst


def keep_pages():
    """The C library keeps what is freed, so that PyTorch's outputs, which are new for each call,
    lie in memory that was used before, as ours do: new pages of the system's cost more than rows.
    """
    trim_threshold, most_maps = -1, -4  # malloc.h
    library = ctypes.CDLL(None)
    if not (library.mallopt(most_maps, 0) and library.mallopt(trim_threshold, 2**31 - 1)):
        sys.exit("the C library takes no mallopt: PyTorch's outputs would be new pages")


def use_threads(count):
    torch.set_num_threads(count)
    os.environ["TILEWRIGHT_THREADS"] = str(count)


def wait_for_idle_threads():
    """A library's threads look for more work for some milliseconds behind a call, on a processor
    that the other one's threads would use. The clock counts theirs by ticks of the system."""
    while True:
        started = time.process_time()
        time.sleep(0.012)
        if time.process_time() - started < 1e-3:
            return


# Milliseconds of calls before the one that is timed. Each side's tensors leave the caches while it
# is the other one's turn, and come back in several calls: more of PyTorch's return in the first,
# which stores its outputs there.
WARM = 8


def timed(run, clock):
    """Seconds of a call behind others."""
    began = time.perf_counter()
    run()
    while time.perf_counter() - began < WARM * 1e-3:
        run()
    started = clock()
    run()
    return clock() - started


def least_times(case, clock, rounds, threads):
    """Seconds of ours and of theirs, each the least of its rounds."""
    use_threads(threads)
    least = [math.inf, math.inf]
    for _ in range(rounds):
        for which, run in enumerate((case.ours, case.theirs)):
            if threads > 1:
                wait_for_idle_threads()
            least[which] = min(least[which], timed(run, clock))
    return least


def print_table(table, arguments):
    print(f"\n{table.title:34} {'CPU ms, 1 thread':>24} {'x':>6}"
          f" {'wall ms, 2 threads':>24} {'x':>6} {'error':>8}")
    ratios = []
    for case in table.cases:
        error = check(case)
        case.theirs()
        ours, theirs = least_times(case, time.process_time, arguments.rounds, 1)
        ours_wall, theirs_wall = least_times(case, time.perf_counter, arguments.rounds, 2)
        use_threads(1)
        ratios.append(theirs / ours)
        print(f"  {case.name:26} {ours * 1e3:11.2f} {theirs * 1e3:11.2f} {theirs / ours:7.2f}"
              f" {ours_wall * 1e3:12.2f} {theirs_wall * 1e3:11.2f} {theirs_wall / ours_wall:7.2f}"
              f" {error:8.1e}", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    verdict = "as asked" if mean >= table.asked else "TOO SLOW"
    print(f"  {'geometric mean':26} {mean:31.2f}   asked: {table.asked:.2f}, {verdict}", flush=True)
    return mean >= table.asked


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    groups = ["attention", "decode", "gemm", "backward", "rows", "start"]
    parser.add_argument("--library", type=pathlib.Path,
                        default=ROOT / "build/release/lib/libtilewright.so")
    parser.add_argument("--only", nargs="+", choices=groups, default=groups)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="the smallest size of each")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.environ["TILEWRIGHT_LIBRARY"] = str(arguments.library)
    keep_pages()
    use_threads(1)
    print(f"PyTorch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()}), "
          f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}. "
          "Ours stands before PyTorch's.")
    fast = [print_table(table, arguments)
            for group, table in tables(arguments) if group in arguments.only]
    if "start" in arguments.only:
        fast.append(print_starts(arguments))
    sys.exit(0 if all(fast) else 1)


if __name__ == "__main__":
    main()

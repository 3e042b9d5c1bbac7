#!/usr/bin/env python3
"""Products over ranks beside cuBLAS + NCCL and PyTorch's symmetric-memory operations, and exchanges
and collectives beside NCCL.

    bench/gpu_distributed.py --library build/release/lib/libtilewright.so
    bench/gpu_distributed.py --gpus 4 --operations all_gather_gemm 8192x8192x8192
    bench/gpu_distributed.py --schedules 128x256 64x256 --parts bf16 f32 --no-peers
    bench/gpu_distributed.py --operations all_to_all all_reduce --mib 1 38 256

Sizes are those of the whole product: gemm_reduce_scatter divides k among the ranks, all_gather_gemm
n, and projection_all_to_all the rows before it and the columns behind it. Each GPU has a process,
in which ours and the peers run on the same tensors, many runs in a row.
The bound is the longer of the faster product alone (ours or cuBLAS, on all GPUs at once) and of the
bytes that leave a GPU at the rate of copies from each to all others at once. Of exchanges the table
says which part of that rate they reach, beside NCCL alone, and NCCL with the copy that packs heads
for it. With TILEWRIGHT_DELAYS in the environment --repeats is how many delayed runs have the same
bits.
"""

import argparse
import sys

import torch

import measure
import tilewright_c
from distributed_exchanges import OPERATIONS as EXCHANGES
from distributed_exchanges import SCHEDULES, bytes_that_leave
from distributed_exchanges import SIZES as EXCHANGE_SIZES
from distributed_ranks import SLEEP_CYCLES, Ranks, medians, text_of
from gemm_shapes import parse_size

PRODUCTS = ("gemm_reduce_scatter", "all_gather_gemm", "projection_all_to_all")
SIZES = "8192x8192x8192 8192x8192x28672 4096x4096x14336 2048x8192x8192 128x8192x8192 512x8192x8192"
DTYPES = {"bf16": 2, "f32": 4}


def link_rate(gpus, size=256 << 20, times=10):
    """Bytes a second that leave each GPU, to all others at once, with both ways busy."""
    sources = [torch.empty(size, dtype=torch.uint8, device=gpu) for gpu in range(gpus)]
    events = []
    for gpu in range(gpus):
        # PyTorch lets the streams of both GPUs wait for a copy: each has streams of its own.
        others = [to for to in range(gpus) if to != gpu]
        ways = [(torch.empty_like(sources[gpu], device=to), torch.cuda.Stream(to),
                 torch.cuda.Stream(gpu)) for to in others]
        start = torch.cuda.Event(enable_timing=True)
        for repeats in (1, times):
            with torch.cuda.stream(ways[0][2]):
                torch.cuda._sleep(SLEEP_CYCLES)
                start.record()
            ends = []
            for place, there, here in ways:
                here.wait_event(start)  # all begin together
                with torch.cuda.stream(there), torch.cuda.stream(here):
                    for _ in range(repeats):
                        place.copy_(sources[gpu], non_blocking=True)
                    ends.append(torch.cuda.Event(enable_timing=True))
                    ends[-1].record()
        events += [(start, end) for end in ends]
    for gpu in range(gpus):
        torch.cuda.synchronize(gpu)
    seconds = max(start.elapsed_time(end) for start, end in events) * 1e-3
    return size * times * (gpus - 1) / seconds


def variants_of(arguments, operation):
    """Text, bytes of an element that travels, and options."""
    for schedule in arguments.schedules or [None]:
        for parts in arguments.parts if operation == "gemm_reduce_scatter" else ["bf16"]:
            options = [("schedule", schedule)] if schedule else []
            if operation == "gemm_reduce_scatter":
                options.append(("parts", parts))
            yield f"{schedule or 'chosen'} {parts}", DTYPES[parts], tuple(options)


def report_failures(answers):
    for what, answer in answers.items():
        if isinstance(answer, str):
            print(f"  {what}: {answer}")


def measure_product(ranks, operation, size, arguments, rate):
    """The best ratio to the bound, and whether a result was wrong."""
    m, n, k = parse_size(size)
    row = operation, m, n, k
    variants = list(variants_of(arguments, operation))
    checked = {options: ranks.check(row, options, arguments.repeats) for _, _, options in variants}
    peers = () if arguments.no_peers else ("gemm", "collective", "in turn", "fused")
    if operation == "projection_all_to_all":
        peers = peers[:3]  # PyTorch has none
    times = medians(ranks, row, ["ours alone", *(options for _, _, options in variants), *peers],
                    max(10, min(48, int(2e13 / (m * n * k)))), arguments.rounds)
    alone = min(times[name] for name in ("ours alone", "gemm")
                if isinstance(times.get(name), float))
    leaving = (arguments.gpus - 1) * (m // arguments.gpus)
    leaving *= {"gemm_reduce_scatter": n, "all_gather_gemm": k}.get(operation, n // arguments.gpus)
    best, wrong = float("inf"), False
    for text, element_size, options in variants:
        bound = max(alone, leaving * element_size / rate)
        if isinstance(times[options], str) or isinstance(checked[options], str):
            print(f"{operation:>19} {size:>16} {text:>16} failed: {checked[options]}")
            wrong = True
            continue
        ratio = times[options] / bound
        error, alike = checked[options]
        best, wrong = min(best, ratio), wrong or error > 6e-3 or not alike
        columns = [times["ours alone"], times.get("gemm"), leaving * element_size / rate,
                   times.get("collective"), times.get("in turn"), times.get("fused")]
        print(f"{operation:>19} {size:>16} {text:>16} {text_of(times[options])} {text_of(bound)} "
              f"{ratio:6.3f} " + " ".join(map(text_of, columns)) +
              f" {error:9.2e} {'yes' if alike else 'NO'}", flush=True)
    report_failures(times)
    return best, wrong


def measure_products(ranks, operations, arguments, rate):
    """Whether a result was wrong."""
    print(f"{'':>19} {'m x n x k':>16} {'ours':>16} {'time':>9} {'bound':>9} {'ratio':>6} "
          f"{'product':>9} {'cuBLAS':>9} {'wire':>9} {'NCCL':>9} {'in turn':>9} {'fused':>9} "
          f"{'error':>9} same bits")
    worst, wrong = 0, False
    for operation in operations:
        for size in arguments.sizes:
            ratio, bad = measure_product(ranks, operation, size, arguments, rate)
            worst, wrong = max(worst, ratio), wrong or bad
    print(f"worst ratio to bound {worst:.3f}")
    return wrong


def measure_exchange(ranks, operation, mib, arguments, rate):
    """Whether a result was wrong."""
    row, bad = (operation, mib), False
    variants = [(("schedule", schedule),)
                for schedule in arguments.schedules or SCHEDULES[operation]]
    checked = {options: ranks.check(row, options, arguments.repeats) for options in variants}
    peers = () if arguments.no_peers else ("collective", "in turn")
    leaving = bytes_that_leave(operation, mib, arguments.gpus)
    times = medians(ranks, row, [*variants, *peers],
                    max(10, min(48, int(2e10 / (float(mib) * 2**20)))), arguments.rounds)
    wire = leaving / rate
    for options in variants:
        schedule = options[0][1]
        if isinstance(times[options], str) or isinstance(checked[options], str):
            print(f"{operation:>16} {mib:>4} MiB {schedule:>10} failed: {checked[options]}")
            bad = True
            continue
        errors, alike = checked[options]
        bad = bad or errors != 0 or not alike
        columns = [times[options], wire, times.get("collective"), times.get("in turn")]
        print(f"{operation:>16} {mib:>4} MiB {schedule:>10} " + " ".join(map(text_of, columns)) +
              f" {wire / times[options]:6.3f} {errors:8} {'yes' if alike else 'NO'}", flush=True)
    report_failures(times)
    return bad


def measure_exchanges(ranks, operations, arguments, rate):
    """Whether a result was wrong."""
    print(f"{'':>16} {'a rank':>8} {'ours':>10} {'time':>9} {'wire':>9} {'NCCL':>9} "
          f"{'repacked':>9} {'part':>6} {'wrong':>8} same bits")
    wrong = [measure_exchange(ranks, operation, mib, arguments, rate)
             for operation in operations for mib in arguments.mib]
    return any(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/release/lib/libtilewright.so")
    parser.add_argument("--operations", nargs="+", default=PRODUCTS[:2],
                        choices=PRODUCTS + EXCHANGES)
    parser.add_argument("--mib", nargs="+", default=EXCHANGE_SIZES,
                        help="sizes of exchanges and collectives")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--schedules", nargs="+", help="of ours; else what the rules choose")
    parser.add_argument("--parts", nargs="+", choices=DTYPES, default=["bf16"],
                        help="how parts of sums travel")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=20, help="runs whose bits are compared")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("sizes", nargs="*", default=SIZES.split())
    arguments = parser.parse_args()

    measure.print_versions(tilewright_c.Library(arguments.library))
    rate = link_rate(arguments.gpus)
    print(f"copies, from each GPU to all others at once: {rate * 1e-9:.0f} GB/s; times in us")
    ranks = Ranks(arguments.gpus, arguments.library)
    exchanges = [each for each in arguments.operations if each in EXCHANGES]
    products = [each for each in arguments.operations if each in PRODUCTS]
    wrong = bool(exchanges) and measure_exchanges(ranks, exchanges, arguments, rate)
    wrong = bool(products) and measure_products(ranks, products, arguments, rate) or wrong
    ranks.end()
    print(f"device: {measure.device_state()}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

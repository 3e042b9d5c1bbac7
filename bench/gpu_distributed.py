#!/usr/bin/env python3
"""Products over ranks beside cuBLAS + NCCL and PyTorch's symmetric-memory operations, and exchanges
and collectives beside NCCL.

    bench/gpu_distributed.py --library build/release/lib/libtilewright.so
    bench/gpu_distributed.py --operations all_gather_gemm 8192x8192x8192
    bench/gpu_distributed.py --schedules 128x256 128x256_b2 --parts bf16 f32 --no-peers
    bench/gpu_distributed.py --operations all_to_all all_reduce --mib 1 38 256

Sizes are those of the whole product: gemm_reduce_scatter divides k among the ranks, all_gather_gemm
n. Ours runs in this process, on all GPUs; the peers in a process for each. All have tensors of the
same sizes that are allocated before, and many runs follow each other. The bound is the longer of
the faster product alone (ours or cuBLAS, on all GPUs at once) and of the bytes that cross the link
at the rate of copies in both directions at once. Of exchanges the table says which part of that
rate they reach, beside NCCL alone, and NCCL with the copy that packs heads for it.
"""

import argparse
import statistics
import sys

import torch

import distributed_exchanges
import measure
import tilewright_c
from distributed_peers import SLEEP_CYCLES, Peers
from gemm_shapes import parse_size

OPERATIONS = ("gemm_reduce_scatter", "all_gather_gemm")
SIZES = ("8192x8192x8192 8192x8192x28672 4096x4096x14336 2048x8192x8192 "
         "128x8192x8192 512x8192x8192").split()
DTYPES = {"bf16": 2, "f32": 4}


def seconds_on_gpus(launch, runs, gpus):
    """Of one run of many in a row: the slowest GPU's."""
    events = []
    for gpu in range(gpus):
        with torch.cuda.device(gpu):
            torch.cuda._sleep(SLEEP_CYCLES)
            events.append([torch.cuda.Event(enable_timing=True) for _ in range(2)])
            events[gpu][0].record()
    for _ in range(runs):
        launch()
    for gpu in range(gpus):
        with torch.cuda.device(gpu):
            events[gpu][1].record()
    for gpu in range(gpus):
        torch.cuda.synchronize(gpu)
    return max(start.elapsed_time(end) for start, end in events) * 1e-3 / runs


def link_rate(gpus, size=256 << 20, times=10):
    """Bytes a second each way, with both ways busy."""
    events = []
    for gpu in range(gpus):
        to = (gpu + 1) % gpus
        source = torch.empty(size, dtype=torch.uint8, device=gpu)
        place = torch.empty(size, dtype=torch.uint8, device=to)
        # PyTorch lets the streams of both GPUs wait for a copy: each way has streams of its own.
        with torch.cuda.stream(torch.cuda.Stream(to)), torch.cuda.stream(torch.cuda.Stream(gpu)):
            place.copy_(source)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(SLEEP_CYCLES)
            start.record()
            for _ in range(times):
                place.copy_(source, non_blocking=True)
            end.record()
            events.append((start, end))
    for gpu in range(gpus):
        torch.cuda.synchronize(gpu)
    return size * times / (max(start.elapsed_time(end) for start, end in events) * 1e-3)


class Row:
    """One product: the tensors of all ranks, and what the result should be."""

    def __init__(self, operation, sizes, gpus):
        self.operation, self.sizes, self.gpus = operation, sizes, gpus
        m, n, k = sizes
        self.scatters = operation == "gemm_reduce_scatter"
        own_m = m // gpus
        own_n, own_k = (n, k // gpus) if self.scatters else (n // gpus, k)
        a = (gpus, own_m, own_k) if self.scatters else (own_m, own_k)
        c = (own_m, own_n) if self.scatters else (gpus, own_m, own_n)
        self.tensors = [[torch.randn(*a, device=gpu, dtype=torch.bfloat16),
                         torch.randn(own_n, own_k, device=gpu, dtype=torch.bfloat16),
                         torch.empty(*c, device=gpu, dtype=torch.bfloat16)]
                        for gpu in range(gpus)]
        # Elements that leave a rank.
        self.crossing = (gpus - 1) * own_m * (own_n if self.scatters else own_k)
        self.runs = max(10, min(100, int(2e13 / (m * n * k))))

    def outputs(self):
        return [tensors[2] for tensors in self.tensors]

    def wanted(self, rank):
        """In f32, on the rank's GPU."""
        def here(tensor):
            return tensor.to(rank).float()

        if self.scatters:
            return sum(here(a[rank]) @ here(b).T for a, b, _ in self.tensors)
        b = here(self.tensors[rank][1]).T
        return torch.stack([here(a) @ b for a, _, _ in self.tensors])

    def error(self):
        worst = 0
        for rank, output in enumerate(self.outputs()):
            worst = max(worst, measure.relative_rms(output, self.wanted(rank).double()))
        return worst

    def runs_alike(self, launch, repeats):
        def all_bits():
            measure.poison(self.outputs())
            self.synchronize()
            launch()
            self.synchronize()
            return [output.clone() for output in self.outputs()]

        first = all_bits()
        return all(torch.equal(a.view(torch.int16), b.view(torch.int16))
                   for _ in range(repeats) for a, b in zip(first, all_bits()))

    def synchronize(self):
        for gpu in range(self.gpus):
            torch.cuda.synchronize(gpu)

    def products_alone(self, library):
        """Ours, on all GPUs at once."""
        launches = []
        for gpu, (a, b, _) in enumerate(self.tensors):
            with torch.cuda.device(gpu):
                rows = a.reshape(-1, a.shape[-1]) if self.scatters else a.repeat(self.gpus, 1)
                c = torch.empty(rows.shape[0], b.shape[0], device=gpu, dtype=torch.bfloat16)
                launches.append(library.kernel("gemm").bind(rows, b, c))

        def launch():
            for gpu, each in enumerate(launches):
                with torch.cuda.device(gpu):
                    each()

        return launch


def variants_of(arguments, operation):
    for schedule in arguments.schedules or [None]:
        for parts in arguments.parts if operation == "gemm_reduce_scatter" else ["bf16"]:
            options = {"schedule": schedule} if schedule else {}
            if operation == "gemm_reduce_scatter":
                options["parts"] = parts
            yield f"{schedule or 'chosen'} {parts}", parts, options


def times_of(row, launches, peers, rounds):
    """Medians in seconds; of a peer that is not there, why."""
    times = {}
    for _ in range(rounds):
        for name, launch in launches.items():
            seconds_on_gpus(launch, 2, row.gpus)
            times.setdefault(name, []).append(seconds_on_gpus(launch, row.runs, row.gpus))
        for what in ("gemm", "collective", "in turn", "fused") if peers else ():
            seconds = peers.seconds((row.operation, *row.sizes), what, row.runs)
            times.setdefault(what, []).append(seconds)
    return {name: statistics.median(seconds) if not isinstance(seconds[0], str) else seconds[0]
            for name, seconds in times.items()}


def text_of(seconds):
    return f"{seconds * 1e6:9.1f}" if isinstance(seconds, float) else f"{'none':>9}"


def measure_row(library, row, arguments, peers, rate):
    """The ratios to the bound."""
    launches, parts_of = {}, {}
    for name, parts, options in variants_of(arguments, row.operation):
        kernel = library.kernel(row.operation, ranks=row.gpus, **options)
        launches[name], parts_of[name] = kernel.bind_on_gpus(*row.tensors), parts
    checked = {}
    for name, launch in launches.items():
        measure.poison(row.outputs())
        row.synchronize()
        launch()
        row.synchronize()
        checked[name] = row.error(), row.runs_alike(launch, arguments.repeats)
    times = times_of(row, {"ours alone": row.products_alone(library), **launches}, peers,
                     arguments.rounds)
    alone = min(times[name] for name in ("ours alone", "gemm")
                if isinstance(times.get(name), float))
    ratios = {}
    for name in launches:
        wire = row.crossing * DTYPES[parts_of[name]] / rate
        ratios[name] = times[name] / max(alone, wire)
        error, alike = checked[name]
        print(f"{row.operation:>19} {'x'.join(map(str, row.sizes)):>16} {name:>16} "
              f"{text_of(times[name])} {text_of(max(alone, wire))} {ratios[name]:6.3f} "
              f"{text_of(times['ours alone'])} {text_of(times.get('gemm'))} {text_of(wire)} "
              f"{text_of(times.get('collective'))} {text_of(times.get('in turn'))} "
              f"{text_of(times.get('fused'))} {error:9.2e} {'yes' if alike else 'NO'}", flush=True)
    for what, answer in times.items():
        if isinstance(answer, str):
            print(f"  {what}: {answer}")
    return ratios, any(error > 6e-3 or not alike for error, alike in checked.values())


def measure_products(library, operations, arguments, peers, rate):
    """Whether a result was wrong."""
    print(f"{'':>19} {'m x n x k':>16} {'ours':>16} {'time':>9} {'bound':>9} {'ratio':>6} "
          f"{'product':>9} {'cuBLAS':>9} {'wire':>9} {'NCCL':>9} {'in turn':>9} {'fused':>9} "
          f"{'error':>9} same bits")
    worst, wrong = 0, False
    for operation in operations:
        for size in arguments.sizes:
            row = Row(operation, parse_size(size), arguments.gpus)
            ratios, bad = measure_row(library, row, arguments, peers, rate)
            worst, wrong = max(worst, min(ratios.values())), wrong or bad
            del row
            torch.cuda.empty_cache()
    print(f"worst ratio to bound {worst:.3f}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/release/lib/libtilewright.so")
    parser.add_argument("--operations", nargs="+", default=OPERATIONS,
                        choices=OPERATIONS + distributed_exchanges.OPERATIONS)
    parser.add_argument("--mib", nargs="+", default=distributed_exchanges.SIZES,
                        help="sizes of exchanges and collectives")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--schedules", nargs="+", help="of ours; else what the rules choose")
    parser.add_argument("--parts", nargs="+", choices=DTYPES, default=["bf16"],
                        help="how parts of sums travel")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=20, help="runs whose bits are compared")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("sizes", nargs="*", default=SIZES)
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    torch.backends.cuda.matmul.allow_tf32 = False
    library = tilewright_c.Library(arguments.library)
    measure.print_versions(library)
    peers = None if arguments.no_peers else Peers(arguments.gpus)
    rate = link_rate(arguments.gpus)
    print(f"copies, both ways at once: {rate * 1e-9:.0f} GB/s each; times in us")
    exchanges = [each for each in arguments.operations if each not in OPERATIONS]
    wrong = False
    if exchanges:
        print(distributed_exchanges.HEADER)
    for operation in exchanges:
        for mib in arguments.mib:
            row = distributed_exchanges.Exchange(operation, mib, arguments.gpus)
            _, bad = distributed_exchanges.measure_exchange(library, row, arguments, peers, rate,
                                                            seconds_on_gpus)
            wrong = wrong or bad
            del row
            torch.cuda.empty_cache()
    products = [each for each in arguments.operations if each in OPERATIONS]
    if products:
        wrong = measure_products(library, products, arguments, peers, rate) or wrong
    if peers:
        peers.end()
    print(f"device: {measure.device_state()}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""gemm beside cuBLAS (torch.matmul), bf16 or f16: C = A B^T.

    bench/gpu_gemm.py --library build/release/lib/libtilewright.so [4096 8192x8192x1024 ...]
"""

import argparse
import sys

import torch

import measure
import tilewright_c

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def parse_size(text):
    sizes = [int(part) for part in text.split("x")]
    if len(sizes) == 1:
        sizes *= 3
    if len(sizes) != 3:
        raise argparse.ArgumentTypeError(f"{text}: write N, or MxNxK")
    return tuple(sizes)


def run_row(kernel, dtype, m, n, k, rounds):
    a = torch.randn(m, k, device="cuda", dtype=dtype)
    b = torch.randn(n, k, device="cuda", dtype=dtype)
    c = torch.empty(m, n, device="cuda", dtype=dtype)
    c_peer = torch.empty_like(c)
    ours = kernel.bind(a, b, c)

    def peer():
        torch.matmul(a, b.T, out=c_peer)

    measure.poison([c, c_peer])
    ours()
    peer()
    torch.cuda.synchronize()
    reference = a.double() @ b.double().T
    error, peer_error = (measure.relative_rms(x, reference) for x in (c, c_peer))
    del reference
    alike = measure.runs_alike(ours, [c])
    return measure.time_pairs(ours, peer, rounds), error, peer_error, alike


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(parser)
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("sizes", nargs="*", type=parse_size,
                        default=[parse_size(text) for text in ("2048", "4096", "8192")])
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    library = tilewright_c.Library(arguments.library)
    kernel = library.kernel("gemm", dtype=arguments.dtype, **measure.schedule_of(arguments))
    measure.print_versions(library)
    print(f"{'m x n x k':>20} {'ours us':>9} {'cuBLAS us':>9} {'TFLOP/s':>8} {'cuBLAS':>8} "
          f"{'ratio':>6} {'10%..90%':>13} {'error':>9} {'cuBLAS':>9}  same bits")
    ratios, wrong = {}, []
    for m, n, k in arguments.sizes:
        name = f"{m} x {n} x {k}"
        pairs, error, peer_error, alike = run_row(kernel, DTYPES[arguments.dtype], m, n, k,
                                                  arguments.rounds)
        work = 2e-12 * m * n * k
        print(f"{name:>20} {pairs.ours * 1e6:9.1f} {pairs.peer * 1e6:9.1f} {work / pairs.ours:8.1f} "
              f"{work / pairs.peer:8.1f} {pairs.ratio:6.3f} {pairs.low:6.3f}..{pairs.high:5.3f} "
              f"{error:9.2e} {peer_error:9.2e}  {'yes' if alike else 'NO'}", flush=True)
        ratios[name] = pairs.ratio
        if not error <= 1.1 * peer_error or not alike:
            wrong.append(name)
    print(f"device: {measure.device_state()}")
    worst = min(ratios, key=ratios.get)
    print(f"worst row {worst}: {ratios[worst]:.3f}")
    if wrong:
        print(f"wrong results: {', '.join(wrong)}")
    print(f"geomean ratio {measure.geometric_mean(ratios.values()):.3f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What the simulator's clock says of products over ranks, beside what was measured.

    bench/predict_ranks.py
    bench/predict_ranks.py --ranks 4 --measured four.txt 512x8192x8192

Needs no GPU. A row is m x n x k of all ranks together: of gemm_reduce_scatter they divide m and k,
of all_gather_gemm m and n. --measured names what bench/gpu_distributed.py printed, of as many GPUs
as the one number of --ranks says; the rows of its file are those that are predicted, by the
schedules that it has. A ratio is to the bound, the longer of a rank's product alone and the wire.
"""

import argparse
import concurrent.futures
import json
import re
import subprocess
import sys

PRODUCTS = ["gemm_reduce_scatter", "all_gather_gemm"]
SIZES = ["128x8192x8192", "512x8192x8192", "2048x8192x8192", "4096x4096x14336"]
CHOSEN = "chosen"
ROW = re.compile(r"\s*(\w+)\s+(\d+x\d+x\d+)\s+(\S+)\s+bf16\s+([0-9.]+)\s+[0-9.]+\s+([0-9.]+)\s")


def predicted(tilewright, operation, size, schedule, ranks):
    """Seconds and the ratio to the bound."""
    m, n, k = map(int, size.split("x"))
    if operation == "gemm_reduce_scatter":
        k //= ranks
    else:
        n //= ranks
    options = {"ranks": ranks, "m": m // ranks, "n": n, "k": k}
    if schedule != CHOSEN:
        options["schedule"] = schedule
    command = [tilewright, "simulate", operation, "--target", "sm_90a", "--time", "--json"]
    for name, value in options.items():
        command += ["--set", f"{name}={value}"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        sys.exit(f"{operation} {size} {schedule}: {answer.stderr or answer.stdout}")
    times = json.loads(answer.stdout)
    return times["seconds"], times["ratio"]


def rows_of(arguments):
    """Operation, size, schedule, ranks, and what was measured: microseconds and a ratio."""
    if arguments.measured:
        with open(arguments.measured, encoding="utf-8") as file:
            found = filter(None, map(ROW.match, file))
            return [(operation, size, schedule, arguments.ranks[0], (float(time), float(ratio)))
                    for operation, size, schedule, time, ratio in (row.groups() for row in found)]
    return [(operation, size, CHOSEN, ranks, None) for operation in arguments.operations
            for size in arguments.sizes for ranks in arguments.ranks]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", default="build/release/bin/tilewright")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--operations", nargs="+", default=PRODUCTS, choices=PRODUCTS)
    parser.add_argument("--measured", help="a table of bench/gpu_distributed.py")
    parser.add_argument("--threads", type=int, default=1, help="rows that are predicted at once")
    parser.add_argument("sizes", nargs="*", default=SIZES)
    arguments = parser.parse_args()
    if arguments.measured and len(arguments.ranks) != 1:
        parser.error("--measured is of one number of GPUs: name it with --ranks")

    rows = rows_of(arguments)
    print(f"times in us\n{'':>19} {'m x n x k':>16} {'ranks':>5} {'schedule':>20} {'predicted':>9} "
          f"{'ratio':>6} {'measured':>9} {'ratio':>6} {'predicted / measured':>20}")
    with concurrent.futures.ThreadPoolExecutor(arguments.threads) as pool:
        answers = pool.map(lambda row: predicted(arguments.tilewright, *row[:4]), rows)
        for (operation, size, schedule, ranks, measured), (seconds, ratio) in zip(rows, answers):
            line = (f"{operation:>19} {size:>16} {ranks:>5} {schedule:>20} {seconds * 1e6:9.1f} "
                    f"{ratio:6.3f}")
            if measured:
                line += (f" {measured[0]:9.1f} {measured[1]:6.3f} "
                         f"{seconds * 1e6 / measured[0]:20.3f}")
            print(line, flush=True)


if __name__ == "__main__":
    main()

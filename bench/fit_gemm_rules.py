#!/usr/bin/env python3
"""The rules that choose gemm's variants at a launch, fitted to measured times.

    bench/gpu_gemm.py --group random --seeds 11,12,13 --compare rules --json times.json
    bench/fit_gemm_rules.py times.json [more.json ...] --out kernels/schedules/gemm.sm_90a.txt
    bench/fit_gemm_rules.py times.json --apply held_out.json

A model of waves, products, loads, stores and memory estimates each variant's time; its constants
are fitted to the logarithms of the times, those near a shape's best above all, and then to what the
choice costs. Variants whose absence costs next to nothing are left out. What is written is the
model as rules (docs/schedules.md), over ranges and facts, in integers. A file that is named twice
counts twice. Shapes that lack variants of the first one's, such as those that a launch was timed
at, count in the fit to times alone.
"""

import argparse
import collections
import json
import math
import random
import re
import sys

MULTIPROCESSORS = 132
# Clusters that run at once on 132 multiprocessors, by cuOccupancyMaxActiveClusters; as a fraction.
SLOTS = {1: (1, 1), 2: (1, 2), 3: (8, 27), 4: (5, 22), 6: (2, 15), 8: (5, 44)}

# What stands in front of the estimates: remark, variant, condition; `deep` is 1600 elements of 16
# bits. Measured there: 128 x 4096 x 4096 1.00 and 1.06 of cuBLAS (0.90 by the estimates alone),
# 404 x 1072 x 1664 1.04 and 206 x 1528 x 2496 0.95 (as by the estimates).
EXCEPTIONS = [
    ("Long sums in nearly one wave of small tiles: more multiprocessors load than with wide ones.",
     "64x64x128",
     "m > 64 and m <= 512 and odd_k == 0 and k >= {deep} and tiles_64x64x128 <= multiprocessors "
     "and 3 * tiles_64x64x128 >= 2 * multiprocessors"),
]

Variant = collections.namedtuple("Variant", "name m n k cluster shared split")
Shape = collections.namedtuple("Shape", "name m n k")


def parse_variant(name):
    match = re.fullmatch(r"(\d+)x(\d+)(?:x(\d+))?(?:_([ab])(\d+))?(?:_split(\d+))?", name)
    m, n, k, shared, cluster, split = match.groups()
    return Variant(name, int(m), int(n), int(k or 64), int(cluster or 1), shared or "b",
                   int(split or 1))


# What is fitted: cycles, or cycles for a byte, an element or a product.
START = {
    "start": 7000.0,       # of every launch
    "step": 110.0,         # of a step along k, beside its loads or products
    "product": 1 / 2048,   # of a multiplication and addition
    "l2": 1 / 33,          # of a byte from L2 where all multiprocessors load
    "l2_unaligned": 0.45,  # more where rows begin in the middle of a 32-byte sector
    "idle": 0.54,          # of the multiprocessors: with fewer busy ones L2 is no faster
    "port": 1 / 54,        # of a byte that reaches a multiprocessor, also from a neighbour's load
    "port_unaligned": 0.3,
    "store": 0.1,          # of an element of C
    "store_unaligned": 0.2,
    "exchange": 2000.0,    # of a split's parts
    "part": 0.1,           # of an element that is exchanged
    "memory": 1 / 2400,    # of a byte of A, B and C
    "memory_idle": 2.0,    # more with idle multiprocessors
    "overlap": 0.1,        # of the shorter of memory's time and the multiprocessors'
}


class Model:
    """The constants, and for each variant a factor and the least cycles of a step."""

    def __init__(self):
        self.c = dict(START)
        self.factor = collections.defaultdict(lambda: 1.0)
        self.floor = collections.defaultdict(float)

    def parts(self, v):
        """What does not depend on the shape: the rules hold it as numbers."""
        c = self.c
        element = 2
        rows = v.m / v.cluster + v.n if v.shared == "a" else v.m + v.n / v.cluster
        product = v.m * v.n * v.k * c["product"]
        load = rows * v.k * element * c["l2"]
        port = (v.m + v.n) * v.k * element * c["port"]
        end = v.m * v.n / v.split * c["store"]
        exchange = 0.0
        if v.split > 1:
            exchange = c["exchange"] + v.m * v.n * (v.split - 1) / v.split * c["part"]
        return product, load, port, end, exchange

    def seconds(self, v, s):
        c = self.c
        product, load, port, end, exchange = self.parts(v)
        odd_k, odd_n = s.k % 16 == 8, s.n % 16 == 8
        ctas = v.cluster * v.split
        top, bottom = SLOTS[ctas]
        slots = MULTIPROCESSORS * top // bottom
        across = v.cluster if v.shared == "a" else 1
        tiles = -(-s.m // (v.m * (v.cluster // across))) * -(-s.n // (v.n * across))
        busy = ctas * min(tiles, slots) / MULTIPROCESSORS
        if odd_k:
            load *= 1 + c["l2_unaligned"]
            port *= 1 + c["port_unaligned"]
        step = c["step"] + max(product, load * max(busy, c["idle"]), port, self.floor[v.name])
        if odd_n:
            end *= 1 + c["store_unaligned"]
        steps = -(-(-(-s.k // v.k)) // v.split)
        work = -(-tiles // slots) * (steps * step + end + exchange)
        memory = (s.m * s.k + s.n * s.k + s.m * s.n) * 2 * c["memory"]
        memory *= 1 + c["memory_idle"] * (1 - busy)
        longer, shorter = max(work, memory), min(work, memory)
        return self.factor[v.name] * (c["start"] + longer + c["overlap"] * shorter)


def fit(model, table, variants, rounds):
    """Coordinate descent on the squared logarithm of estimate / time (in cycles of 1.755 GHz)."""
    points = collections.defaultdict(list)  # by variant: shape, log of the time, of the best
    for shape, times in table:
        best = math.log(times["best"] * 1.755e9)
        for v in variants:
            if v.name in times:
                points[v.name].append((shape, math.log(times[v.name] * 1.755e9), best))
    kept_near = 20.0  # points that say: no factor

    def error_of(v):
        logs = []
        for shape, time, best in points[v.name]:
            estimate = math.log(model.seconds(v, shape))
            # Only what is near the best, or estimated so, can change a choice.
            slower = max(0.0, min(time, estimate) - best)
            logs.append((time - estimate, 0.1 + 1 / (1 + (slower / 0.08) ** 2)))
        shift = sum(w * d for d, w in logs) / (sum(w for _, w in logs) + kept_near)
        return sum(w * (d - shift) ** 2 for d, w in logs) + kept_near * shift ** 2, shift

    def total():
        return sum(error_of(v)[0] for v in variants)

    scale = {name: 1.25 for name in model.c}
    best = total()
    for _ in range(rounds):
        for name in model.c:
            kept = model.c[name]
            for factor in (scale[name], 1 / scale[name]):
                model.c[name] = kept * factor
                error = total()
                if error < best:
                    best = error
                    break
            else:
                model.c[name] = kept
                scale[name] = max(scale[name] ** 0.7, 1.01)
        for v in variants:
            own, _ = error_of(v)
            kept = model.floor[v.name]
            for floor in ([kept * 1.15, kept / 1.15, 0.0] if kept else [150.0, 300.0, 600.0]):
                model.floor[v.name] = floor
                error, _ = error_of(v)
                if error < own - 0.002:
                    own, kept = error, floor
            model.floor[v.name] = kept
        best = total()
        print(f"error {best:.3f}", file=sys.stderr)
    for v in variants:
        model.factor[v.name] *= math.exp(error_of(v)[1])


def choose(model, variants, shape):
    return min(variants, key=lambda v: model.seconds(v, shape))


def slowness(times, name):
    return math.log(times[name] / times["best"])


def row_cost(times, chosen):
    """What the choice costs, twice over what is far below cuBLAS."""
    return slowness(times, chosen) + max(0.0, math.log(times[chosen] / times["cuBLAS"]) - 0.1)


def cost(estimates, table, names):
    return sum(row_cost(times, min(names, key=estimate.get))
               for (_, times), estimate in zip(table, estimates))


def refine(model, table, variants, rounds, seed=1):
    """The factors, to what the choice costs."""
    draw = random.Random(seed)
    names = [v.name for v in variants]
    estimates = [{v.name: model.seconds(v, s) for v in variants if v.name in times}
                 for s, times in table]
    best = cost(estimates, table, names)
    for index in range(rounds):
        name = draw.choice(names)
        factor = math.exp(draw.gauss(0, 0.03))
        # Far from what was measured no factor goes.
        if not 0.88 < model.factor[name] * factor < 1.14:
            continue
        for estimate in estimates:
            estimate[name] *= factor
        now = cost(estimates, table, names)
        if now < best - 1e-9:
            best = now
            model.factor[name] *= factor
        else:
            for estimate in estimates:
                estimate[name] /= factor
    return best


def prune(model, table, variants, least):
    """Without those whose absence costs less than `least` (of a row's time, over all rows)."""
    names = [v.name for v in variants]
    estimates = [{v.name: model.seconds(v, s) for v in variants} for s, _ in table]
    while True:
        costs = dict.fromkeys(names, 0.0)
        for (_, times), estimate in zip(table, estimates):
            chosen, other = sorted(names, key=estimate.get)[:2]
            costs[chosen] += row_cost(times, other) - row_cost(times, chosen)
        weakest = min(names, key=costs.get)
        if costs[weakest] > least:
            return [v for v in variants if v.name in names]
        names.remove(weakest)


def report(label, model, table, variants):
    chosen = {s.name: choose(model, variants, s).name for s, _ in table}
    ratios = sorted((times["cuBLAS"] / times[chosen[s.name]], s.name) for s, times in table)
    best = [times["cuBLAS"] / min(times[v.name] for v in variants) for _, times in table]
    mean = math.exp(sum(math.log(r) for r, _ in ratios) / len(ratios))
    ideal = math.exp(sum(math.log(r) for r in best) / len(best))
    decile = ratios[(len(ratios) - 1) // 10][0]
    print(f"{label}: {len(ratios)} shapes, {len(variants)} variants: x cuBLAS {mean:.3f} (the best "
          f"variants {ideal:.3f}), worst decile {decile:.3f}, worst {ratios[0][0]:.3f} "
          f"({ratios[0][1]}: {chosen[ratios[0][1]]})")
    return chosen


def rules(model, variants, shapes, kernel):
    """gemm's, or gemm_fp8's by the same model: elements of one byte, twice the products a cycle."""
    c = model.c
    element = 1 if kernel == "gemm_fp8" else 2
    source = (f"from times of {shapes} shapes on one H200" if kernel == "gemm" else
              "from gemm's times in bytes and cycles")

    def milli(cycles):
        return round(1000 * cycles)

    lines = [
        f"{kernel} sm_90a v1",
        f"# By bench/fit_gemm_rules.py {source} (docs/performance.md):",
        "# the variant with the least estimated time; the first of equals. Unit: thousandths of a",
        "# cycle.",
        "#   tiles  of C, or groups of them that share A's or B's; a split tile counts once",
        "#   slots  groups of CTAs that run at once: larger clusters leave some multiprocessors idle",
        "#   busy   thousandths of the multiprocessors that work in the first wave",
        "#   work   of the waves: in each, as many steps along k as a CTA sums, each as long as the",
        "#          longest of its products, its loads from L2, which take longer the more",
        "#          multiprocessors share it, and what reaches the multiprocessor; then the tile's",
        "#          stores and a split's exchange. Rows that begin in the middle of a 32-byte sector",
        "#          (odd_k: of A and B, odd_n: of C) take longer.",
        "#   time   the longer of work and of reading and writing memory, and a part of the shorter",
        f"let odd_k = min(k % {32 // element}, 1)",
        "let odd_n = min(n % 16, 1)",
        f"let memory = ((m * k + n * k) * {element} + m * n * 2) * "
        f"{round(1e6 * c['memory'])} / 1000",
    ]
    for depth in sorted({v.k for v in variants}):
        lines.append(f"let steps_{depth} = ceil_div(k, {depth * 2 // element})")
    for ctas in sorted({v.cluster * v.split for v in variants}):
        top, bottom = SLOTS[ctas]
        lines.append(f"let slots_{ctas} = multiprocessors" + (f" * {top}" if top > 1 else "") +
                     (f" / {bottom}" if bottom > 1 else ""))
    lines.append("")
    for v in variants:
        product, load, port, end, exchange = model.parts(v)
        ctas = v.cluster * v.split
        across = v.cluster if v.shared == "a" else 1
        down = v.cluster // across
        steps = f"steps_{v.k}" if v.split == 1 else f"ceil_div(steps_{v.k}, {v.split})"
        least = milli(max(product, model.floor[v.name]))
        n = v.name
        lines += [
            f"let tiles_{n} = ceil_div(m, {v.m * down}) * ceil_div(n, {v.n * across})",
            f"let busy_{n} = {1000 * ctas} * min(tiles_{n}, slots_{ctas}) / multiprocessors",
            f"let work_{n} = ceil_div(tiles_{n}, slots_{ctas}) * ({steps} * ({milli(c['step'])} + "
            f"max({least}, max(({round(load)} + odd_k * {round(load * c['l2_unaligned'])}) * "
            f"max(busy_{n}, {milli(c['idle'])}), {milli(port)} + odd_k * "
            f"{milli(port * c['port_unaligned'])}))) + {milli(end + exchange)} + odd_n * "
            f"{milli(end * c['store_unaligned'])})",
            f"let memory_{n} = memory + memory * {milli(c['memory_idle'])} / 1000 * "
            f"(1000 - busy_{n}) / 1000",
            f"let time_{n} = {milli(model.factor[n])} * ({milli(c['start'])} + "
            f"max(work_{n}, memory_{n}) + min(work_{n}, memory_{n}) * {milli(c['overlap'])} / 1000)",
            "",
        ]
    least = "time_" + variants[0].name
    for index, v in enumerate(variants[1:]):
        lines.append(f"let least_{index} = min({least}, time_{v.name})")
        least = f"least_{index}"
    lines.append("")
    for remark, name, condition in EXCEPTIONS:
        if any(v.name == name for v in variants):
            lines += ["# " + remark,
                      f"when {condition.format(deep=1600 * 2 // element)}: schedule={name}"]
    for v in variants[:-1]:
        lines.append(f"when time_{v.name} == {least}: schedule={v.name}")
    lines.append(f"else: schedule={variants[-1].name}")
    return "\n".join(lines) + "\n"


def read(paths):
    table = []
    for path in paths:
        with open(path) as file:
            for name, times in json.load(file).items():
                table.append((Shape(name, *(int(x) for x in name.split(" x "))), times))
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times", nargs="+", help="of gpu_gemm.py --compare --json")
    parser.add_argument("--apply", nargs="*", default=[], help="times that nothing is fitted to")
    parser.add_argument("--rounds", type=int, default=25, help="of the descent")
    parser.add_argument("--least", type=float, default=0.01,
                        help="leave out variants whose absence costs less, summed over the rows")
    parser.add_argument("--keep", action="store_true", help="leave out none")
    parser.add_argument("--out", help="write gemm's rules")
    parser.add_argument("--out-fp8", help="write gemm_fp8's rules")
    arguments = parser.parse_args()

    table = read(arguments.times)
    for _, times in table:
        times["best"] = min(time for name, time in times.items() if name != "cuBLAS")
    first = [n for n in table[0][1] if n not in ("cuBLAS", "best")]
    complete = [(s, t) for s, t in table if len(t) >= len(table[0][1])]
    names = [n for n in first if all(n in times for _, times in complete)]
    variants = [parse_variant(name) for name in names]
    model = Model()
    fit(model, table, variants, arguments.rounds)
    report("fitted to times", model, complete, variants)
    refine(model, complete, variants, 4000)
    if not arguments.keep:
        variants = prune(model, complete, variants, arguments.least)
        refine(model, complete, variants, 4000)
    report("fitted to choices", model, complete, variants)
    print({name: round(value, 5) for name, value in model.c.items()})
    print(" ".join(v.name for v in variants))
    if arguments.apply:
        held_out = read(arguments.apply)
        missing = {v.name for v in variants} - set.intersection(*(set(t) for _, t in held_out))
        if missing:
            sys.exit(f"--apply: there are no times of {', '.join(sorted(missing))}")
        report("held out", model, held_out, variants)
    for kernel, path in (("gemm", arguments.out), ("gemm_fp8", arguments.out_fp8)):
        if path:
            with open(path, "w") as file:
                file.write(rules(model, variants, len({s for s, _ in table}), kernel))


if __name__ == "__main__":
    sys.exit(main())

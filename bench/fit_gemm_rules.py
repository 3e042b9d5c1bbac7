#!/usr/bin/env python3
"""The rules that choose gemm's variants at a launch, fitted to measured times.

    bench/gpu_gemm.py --group random --seeds 11,12,13 --compare rules --json times.json
    bench/fit_gemm_rules.py times.json [more.json ...] --out kernels/schedules/gemm.sm_90a.txt
    bench/fit_gemm_rules.py times.json --apply held_out.json

A model of waves, products, loads, stores and memory estimates each variant's time; its constants
and a factor for each variant are fitted to the logarithms of the times, those near a shape's best
above all. The --count variants are kept that cost least to be without the others, as estimated on
drawn shapes and as measured. Their factors are then moved a little to what the choice costs. What
is written is the model as rules (docs/schedules.md), over ranges and facts, in integers. A file
that is named twice counts twice.
"""

import argparse
import collections
import json
import math
import random
import re
import sys

from gemm_shapes import random_sizes

MULTIPROCESSORS = 132
# Clusters that run at once on 132 multiprocessors, by cuOccupancyMaxActiveClusters; as a fraction.
SLOTS = {1: (1, 1), 2: (1, 2), 3: (8, 27), 4: (5, 22), 6: (2, 15), 8: (5, 44)}

# What stands in front of the estimates: remark, variant, condition; `deep` is 1600 elements of 16
# bits. Measured there: 128 x 4096 x 4096 1.03 of cuBLAS (0.90 by the estimates alone), 404 x 1072 x
# 1664 1.05 (1.00), 206 x 1528 x 2496 0.97 (0.91).
EXCEPTIONS = [
    ("Long sums in nearly one wave of small tiles: more multiprocessors load than with wide ones.",
     "64x64x128",
     "m > 64 and m <= 512 and odd_k == 0 and k >= {deep} and tiles_64x64x128 <= multiprocessors "
     "and 3 * tiles_64x64x128 >= 2 * multiprocessors"),
]

# The operands of those with _t are exchanged, which the estimate does not see.
Variant = collections.namedtuple("Variant", "name m n k cluster shared split")
Shape = collections.namedtuple("Shape", "name m n k")


def parse_variant(name):
    match = re.fullmatch(r"(\d+)x(\d+)(?:x(\d+))?(?:_t)?(?:_([ab])(\d+))?(?:_split(\d+))?", name)
    m, n, k, shared, cluster, split = match.groups()
    return Variant(name, int(m), int(n), int(k or 64), int(cluster or 1), shared or "b",
                   int(split or 1))


def parse_shape(name):
    return Shape(name, *(int(x) for x in name.split(" x ")))


# What is fitted: cycles, or cycles for a byte, an element or a product.
START = {
    "start": 9900.0,       # of every launch
    "cluster": 400.0,      # more of one in clusters
    "step": 80.0,          # of a step along k, beside its loads or products
    "product": 1 / 2170,   # of a multiplication and addition
    "l2": 1 / 52,          # of a byte from L2 where all multiprocessors load
    "l2_unaligned": 0.72,  # more where rows begin in the middle of a 32-byte sector
    "idle": 0.48,          # of the multiprocessors: with fewer busy ones L2 is no faster
    "port": 1 / 91,        # of a byte that reaches a multiprocessor, also from a neighbour's load
    "port_unaligned": 0.03,
    "store": 0.035,        # of an element of C
    "store_unaligned": 0.76,
    "exchange": 2900.0,    # of a split's parts
    "part": 0.34,          # of an element that is exchanged
    "memory": 1 / 3550,    # of a byte of A, B and C
    "memory_idle": 0.005,  # more with idle multiprocessors
    "overlap": 0.94,       # of the shorter of memory's time and the multiprocessors'
}

# Of a variant at a shape, what the constants are multiplied with.
Terms = collections.namedtuple(
    "Terms", "clusters waves steps product load port busy odd_k stored odd_n exchanges parts bytes")


def terms(v, s):
    element = 2
    ctas = v.cluster * v.split
    top, bottom = SLOTS[ctas]
    slots = MULTIPROCESSORS * top // bottom
    across = v.cluster if v.shared == "a" else 1
    tiles = -(-s.m // (v.m * (v.cluster // across))) * -(-s.n // (v.n * across))
    rows = v.m / v.cluster + v.n if v.shared == "a" else v.m + v.n / v.cluster
    return Terms(
        clusters=ctas > 1, waves=-(-tiles // slots), steps=-(-(-(-s.k // v.k)) // v.split),
        product=v.m * v.n * v.k, load=rows * v.k * element, port=(v.m + v.n) * v.k * element,
        busy=ctas * min(tiles, slots) / MULTIPROCESSORS, odd_k=s.k % 16 == 8,
        stored=v.m * v.n / v.split, odd_n=s.n % 16 == 8, exchanges=v.split > 1,
        parts=v.m * v.n * (v.split - 1) / v.split,
        bytes=(s.m * s.k + s.n * s.k + s.m * s.n) * element)


class Model:
    """The constants, and a factor for each variant."""

    def __init__(self):
        self.c = dict(START)
        self.factor = collections.defaultdict(lambda: 1.0)

    def cycles(self, t):
        """Without the variant's factor."""
        c = self.c
        load, port = t.load * c["l2"], t.port * c["port"]
        if t.odd_k:
            load *= 1 + c["l2_unaligned"]
            port *= 1 + c["port_unaligned"]
        step = c["step"] + max(t.product * c["product"], load * max(t.busy, c["idle"]), port)
        end = t.stored * c["store"]
        if t.odd_n:
            end *= 1 + c["store_unaligned"]
        if t.exchanges:
            end += c["exchange"] + t.parts * c["part"]
        work = t.waves * (t.steps * step + end)
        memory = t.bytes * c["memory"] * (1 + c["memory_idle"] * (1 - t.busy))
        start = c["start"] + (c["cluster"] if t.clusters else 0.0)
        return start + max(work, memory) + c["overlap"] * min(work, memory)

    def estimate(self, v, s):
        return math.log(self.factor[v.name] * self.cycles(terms(v, s)))


def fit(model, table, variants, rounds):
    """Coordinate descent on the squared logarithm of estimate / time (in cycles of 1.755 GHz)."""
    points = {v.name: [(terms(v, s), math.log(times[v.name] * 1.755e9),
                        math.log(times["best"] * 1.755e9)) for s, times in table]
              for v in variants}
    kept_near = 20.0  # points that say: no factor
    weights = {}

    def weigh():
        """Only what is near the best, or estimated so, can change a choice."""
        for name, of_variant in points.items():
            factor = math.log(model.factor[name])
            weights[name] = [
                0.1 + 1 / (1 + (max(0.0, min(time, math.log(model.cycles(t)) + factor) - best)
                                / 0.08) ** 2) for t, time, best in of_variant]

    def error_of(name):
        above = [time - math.log(model.cycles(t)) for t, time, _ in points[name]]
        w = weights[name]
        shift = sum(a * b for a, b in zip(w, above)) / (sum(w) + kept_near)
        # What is far off counts by its size and no more by its square.
        return kept_near * shift ** 2 + sum(
            b * 0.045 * (math.sqrt(1 + (a - shift) ** 2 / 0.0225) - 1)
            for a, b in zip(above, w)), shift

    def total():
        return sum(error_of(name)[0] for name in points)

    scale = {name: 1.2 for name in model.c}
    for turn in range(rounds):
        if turn % 5 == 0:
            weigh()
            best = total()
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
                scale[name] = max(scale[name] ** 0.6, 1.003)
        for v in variants:
            model.factor[v.name] = math.exp(error_of(v.name)[1])
        print(f"error {best:.3f}", file=sys.stderr)


def choose(model, variants, shape):
    return min(variants, key=lambda v: model.estimate(v, shape))


def keep_variants(model, table, variants, count, also):
    """Leaves out, one by one, what costs least to be without: as estimated at shapes drawn at
    random, and as measured, where nothing costs more than a third; but none of `also`."""
    drawn = [Shape("", *sizes) for seed in range(2000, 2060) for sizes in random_sizes(seed)]
    rows = [[model.estimate(v, s) for v in variants] for s in drawn]
    rows += [[math.log(times[v.name]) for v in variants] for _, times in table]
    rows = [[min(x - min(row), 0.35) for x in row] for row in rows]
    kept = list(range(len(variants)))
    while len(kept) > count:
        costs = dict.fromkeys(kept, 0.0)
        for row in rows:
            first, second = sorted(kept, key=row.__getitem__)[:2]
            costs[first] += row[second] - row[first]
        kept.remove(min((i for i in kept if variants[i].name not in also), key=costs.get))
    return [variants[i] for i in kept]


def row_cost(times, chosen):
    """What the choice costs, half as much again below cuBLAS."""
    below = math.log(times[chosen] / times["cuBLAS"])
    return math.log(times[chosen] / times["best"]) + 0.5 * max(0.0, below)


def refine(model, table, variants, rounds, seed=1):
    """The factors, to what the choice costs; far from what was fitted to times none goes."""
    draw = random.Random(seed)
    names = [v.name for v in variants]
    estimates = [[model.estimate(v, s) for v in variants] for s, _ in table]
    moved = [0.0] * len(names)

    def cost():
        chosen = sum(row_cost(times, names[min(range(len(names)), key=estimate.__getitem__)])
                     for (_, times), estimate in zip(table, estimates))
        return chosen + sum(0.02 * (x / 0.015) ** 2 for x in moved)

    def move(index, by):
        moved[index] += by
        for estimate in estimates:
            estimate[index] += by

    best = cost()
    for _ in range(rounds):
        index, by = draw.randrange(len(names)), draw.gauss(0, draw.choice((0.006, 0.012, 0.024)))
        move(index, by)
        now = cost()
        if now < best:
            best = now
        else:
            move(index, -by)
    for name, by in zip(names, moved):
        model.factor[name] *= math.exp(by)


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
        t = terms(v, Shape("", 1, 1, 1))  # of these, only what no shape changes
        product, load, port = t.product * c["product"], t.load * c["l2"], t.port * c["port"]
        end = t.stored * c["store"]
        exchange = c["exchange"] + t.parts * c["part"] if t.exchanges else 0.0
        start = c["start"] + (c["cluster"] if t.clusters else 0.0)
        ctas = v.cluster * v.split
        across = v.cluster if v.shared == "a" else 1
        down = v.cluster // across
        steps = f"steps_{v.k}" if v.split == 1 else f"ceil_div(steps_{v.k}, {v.split})"
        n = v.name
        lines += [
            f"let tiles_{n} = ceil_div(m, {v.m * down}) * ceil_div(n, {v.n * across})",
            f"let busy_{n} = {1000 * ctas} * min(tiles_{n}, slots_{ctas}) / multiprocessors",
            f"let work_{n} = ceil_div(tiles_{n}, slots_{ctas}) * ({steps} * ({milli(c['step'])} + "
            f"max({milli(product)}, max(({round(load)} + odd_k * {round(load * c['l2_unaligned'])}) * "
            f"max(busy_{n}, {milli(c['idle'])}), {milli(port)} + odd_k * "
            f"{milli(port * c['port_unaligned'])}))) + {milli(end + exchange)} + odd_n * "
            f"{milli(end * c['store_unaligned'])})",
            f"let memory_{n} = memory + memory * {milli(c['memory_idle'])} / 1000 * "
            f"(1000 - busy_{n}) / 1000",
            f"let time_{n} = {milli(model.factor[n])} * ({milli(start)} + "
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
            table += [(parse_shape(name), times) for name, times in json.load(file).items()]
    for _, times in table:
        times["best"] = min(time for name, time in times.items() if name != "cuBLAS")
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times", nargs="+", help="of gpu_gemm.py --compare --json")
    parser.add_argument("--apply", nargs="*", default=[], help="times that nothing is fitted to")
    parser.add_argument("--rounds", type=int, default=25, help="of the descent")
    parser.add_argument("--count", type=int, default=42, help="of the variants that are kept")
    parser.add_argument("--also", nargs="*", default=[], help="variants that are kept in any case")
    parser.add_argument("--out", help="write gemm's rules")
    parser.add_argument("--out-fp8", help="write gemm_fp8's rules")
    arguments = parser.parse_args()

    table = read(arguments.times)
    names = set.intersection(*(set(times) for _, times in table)) - {"cuBLAS", "best"}
    variants = [parse_variant(name) for name in table[0][1] if name in names]
    model = Model()
    fit(model, table, variants, arguments.rounds)
    report("all variants", model, table, variants)
    also = arguments.also + [name for _, name, _ in EXCEPTIONS]
    variants = keep_variants(model, table, variants, arguments.count, also)
    report("those that are kept", model, table, variants)
    refine(model, table, variants, 6000)
    report("refined", model, table, variants)
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

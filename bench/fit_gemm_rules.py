#!/usr/bin/env python3
"""The rules that choose gemm's variants at a launch, fitted to measured times.

    bench/gpu_gemm.py --group random --seeds 11,12,13 --compare rules --json times.json
    bench/fit_gemm_rules.py times.json [more.json ...] --out kernels/schedules/gemm.sm_90a.txt
    bench/fit_gemm_rules.py times.json --apply held_out.json

A model of waves, products, loads, stores and memory estimates each variant's time; its constants
and a factor for each variant are fitted to the logarithms of the times, those near a shape's best
above all. The --count variants are kept that cost least to be without the others, as estimated on
drawn shapes and as measured, the model is fitted to them once more, and their factors are moved a
little to what the choice costs. What is written is the model as rules (docs/schedules.md), over
ranges and facts, in integers. A file may lack variants that others have; one that is named twice
counts twice.
"""

import argparse
import collections
import json
import re
import sys
import types

import numpy as np

from gemm_shapes import random_sizes

MULTIPROCESSORS = 132
# Clusters that run at once on 132 multiprocessors, by cuOccupancyMaxActiveClusters; as a fraction.
SLOTS = {1: (1, 1), 2: (1, 2), 3: (8, 27), 4: (5, 22), 6: (2, 15), 8: (5, 44), 16: (7, 132)}

# What stands in front of the estimates, where those are near: remark, variant, condition; `deep` is
# 1600 elements of 16 bits. Measured there: 128 x 4096 x 4096 1.02 of cuBLAS (0.91 by the estimates
# alone).
EXCEPTIONS = [
    ("Long sums in nearly one wave of small tiles that rows fill: more multiprocessors load than with "
     "wide ones.",
     "64x64x128",
     "m > 64 and m <= 512 and 20 * m >= 1216 * ceil_div(m, 64) and odd_k == 0 and k >= {deep} and "
     "tiles_64x64x128 <= multiprocessors and 3 * tiles_64x64x128 >= 2 * multiprocessors and "
     "25 * time_64x64x128 <= 26 * {least}"),
]

# The operands of those with _t are exchanged, which the estimate does not see.
Variant = collections.namedtuple("Variant", "name m n k share_a share_b split")


def parse_variant(name):
    match = re.fullmatch(r"(\d+)x(\d+)(?:x(\d+))?(?:_t)?(?:_a(\d+))?(?:_b(\d+))?(?:_split(\d+))?",
                         name)
    m, n, k, share_a, share_b, split = match.groups()
    return Variant(name, int(m), int(n), int(k or 64), int(share_a or 1), int(share_b or 1),
                   int(split or 1))


# What is fitted: cycles, or cycles for a byte, an element or a product.
START = {
    "start": 9500.0,       # of every launch
    "cluster": 800.0,      # more of one in clusters
    "step": 51.0,          # of a step along k, beside its loads or products
    "product": 1 / 1998,   # of a multiplication and addition
    "l2": 0.0173,          # of a byte from L2 where all multiprocessors load
    "l2_unaligned": 0.98,  # more where rows begin in the middle of a 32-byte sector
    "idle": 0.48,          # of the multiprocessors: with fewer busy ones L2 is no faster
    "port": 0.0113,        # of a byte that reaches a multiprocessor, also from a neighbour's load
    "hidden": 0.05,        # of the shorter of products and loads, what the longer does not hide
    "store": 0.035,        # of an element of C
    "store_unaligned": 0.7,
    "exchange": 4000.0,    # of a split's parts
    "part": 0.19,          # of an element that is exchanged
    "memory": 0.00029,     # of a byte of A, B and C
    "overlap": 0.87,       # of the shorter of memory's time and the multiprocessors'
}
NAMES = list(START)


def ceil_div(a, b):
    return -(-a // b)


def terms(variants, shapes):
    """What the constants are multiplied with: a row a shape, a column a variant."""
    element = 2
    v = types.SimpleNamespace(**{field: np.array([getattr(x, field) for x in variants])
                                 for field in Variant._fields[1:]})
    m, n, k = (np.array(sizes)[:, None] for sizes in zip(*shapes))
    ctas = v.share_a * v.share_b * v.split
    slots = np.array([MULTIPROCESSORS * SLOTS[c][0] // SLOTS[c][1] for c in ctas])
    tiles = ceil_div(m, v.m * v.share_b) * ceil_div(n, v.n * v.share_a)
    return types.SimpleNamespace(
        clusters=ctas > 1, waves=ceil_div(tiles, slots), steps=ceil_div(ceil_div(k, v.k), v.split),
        product=v.m * v.n * v.k, load=(v.m / v.share_a + v.n / v.share_b) * v.k * element,
        port=(v.m + v.n) * v.k * element, busy=ctas * np.minimum(tiles, slots) / MULTIPROCESSORS,
        odd_k=k % 16 == 8, stored=v.m * v.n / v.split, odd_n=n % 16 == 8, exchanges=v.split > 1,
        parts=v.m * v.n * (v.split - 1) / v.split, bytes=(m * k + n * k + m * n) * element)


def cycles(c, t):
    """Without the variants' factors."""
    product = t.product * c["product"]
    load = np.maximum(
        t.load * c["l2"] * (1 + t.odd_k * c["l2_unaligned"]) * np.maximum(t.busy, c["idle"]),
        t.port * c["port"])
    step = c["step"] + np.maximum(product, load) + c["hidden"] * np.minimum(product, load)
    end = t.stored * c["store"] * (1 + t.odd_n * c["store_unaligned"])
    end = end + t.exchanges * (c["exchange"] + t.parts * c["part"])
    work = t.waves * (t.steps * step + end)
    memory = t.bytes * c["memory"]
    return (c["start"] + t.clusters * c["cluster"] + np.maximum(work, memory) +
            c["overlap"] * np.minimum(work, memory))


class Times:
    """Measured: a row a shape, a column a variant, the logarithm of the cycles of 1.755 GHz; NaN
    where a file lacks a variant."""

    def __init__(self, paths, names=None):
        rows = []
        for path in paths:
            with open(path) as file:
                rows += json.load(file).items()
        self.names = [shape for shape, _ in rows]
        self.shapes = [tuple(int(x) for x in shape.split(" x ")) for shape in self.names]
        names = names or list(dict.fromkeys(
            name for _, times in rows for name in times if name != "cuBLAS"))
        self.variants = [parse_variant(name) for name in names]
        self.log = np.log([[times.get(name, np.nan) * 1.755e9 for name in names]
                           for _, times in rows])
        self.cublas = np.log([times["cuBLAS"] * 1.755e9 for _, times in rows])
        self.best = np.nanmin(self.log, 1)

    def keep(self, columns):
        self.variants = [self.variants[i] for i in columns]
        self.log = self.log[:, columns]


class Model:
    """The constants, and the logarithm of a factor for each variant."""

    def __init__(self):
        self.c = dict(START)
        self.factor = {}

    def estimate(self, variants, shapes):
        return np.log(cycles(self.c, terms(variants, shapes))) + np.array(
            [self.factor.get(v.name, 0.0) for v in variants])

    def fit(self, times, rounds):
        """Damped Gauss-Newton on the constants' logarithms; the factors follow from them."""
        near, least_weight, kept_near = 0.06, 0.03, 20.0
        t = terms(times.variants, times.shapes)
        known = ~np.isnan(times.log)
        measured = np.where(known, times.log, 0.0)

        def errors(x, weights):
            """Of the estimates with the factors that suit them best; those; and what is far off
            counting by its size and no more by its square."""
            above = np.where(known, np.log(cycles(dict(zip(NAMES, np.exp(x))), t)) - measured, 0.0)
            factor = -(weights * above).sum(0) / (weights.sum(0) + kept_near)
            above = above + factor
            total = (weights * (np.sqrt(1 + (above / 0.15) ** 2) - 1)).sum() * 2 * 0.15 ** 2
            return above, factor, total + kept_near * (factor ** 2).sum()

        x = np.log([self.c[name] for name in NAMES])
        damping = 1.0
        for turn in range(rounds):
            if turn % 8 == 0:
                # Only what is near the best, or estimated so, can change a choice.
                estimate = self.estimate(times.variants, times.shapes)
                behind = np.fmax(0.0, np.fmin(times.log, estimate) - times.best[:, None])
                weights = np.where(known, least_weight + 1 / (1 + (behind / near) ** 2), 0.0)
                above, factor, total = errors(x, weights)
            weighted = weights / np.sqrt(1 + (above / 0.15) ** 2)
            slopes = []
            for i in range(len(x)):
                moved = x.copy()
                moved[i] += 1e-4
                slopes.append((errors(moved, weights)[0] - above) / 1e-4)
            normal = np.array([[(weighted * a * b).sum() for b in slopes] for a in slopes])
            gradient = np.array([(weighted * a * above).sum() for a in slopes])
            for _ in range(6):
                moved = x - np.linalg.solve(normal + damping * np.eye(len(x)), gradient)
                after = errors(moved, weights)
                if after[2] < total:
                    x, (above, factor, total), damping = moved, after, damping / 3
                    break
                damping *= 4
            self.c = dict(zip(NAMES, np.exp(x)))
            self.factor = {v.name: f for v, f in zip(times.variants, factor)}
        print(f"error {total:.3f}", file=sys.stderr)


def keep_variants(model, times, count, also):
    """Leaves out, one by one, what costs least to be without: as estimated at shapes drawn at
    random, and as measured, where nothing costs more than a third; but none of `also`."""
    drawn = [sizes for seed in range(2000, 2060) for sizes in random_sizes(seed)]
    estimated = model.estimate(times.variants, drawn)
    measured = np.where(np.isnan(times.log), np.inf, times.log)
    rows = np.vstack([estimated, measured])
    rows = np.minimum(rows - rows.min(1, keepdims=True), 0.35)
    kept = list(range(len(times.variants)))
    every = np.arange(len(rows))
    while len(kept) > count:
        order = np.argsort(rows[:, kept], 1)
        first, second = (rows[:, kept][every, order[:, i]] for i in (0, 1))
        costs = np.zeros(len(kept))
        # What is far behind costs more than its size: a rare bad choice is worse than many fair.
        np.add.at(costs, order[:, 0], (second - first) * (1 + 30 * np.minimum(second, 0.2)))
        costs[[times.variants[i].name in also for i in kept]] = np.inf
        kept.pop(int(np.argmin(costs)))
    times.keep(kept)


def measured_estimates(model, times):
    """Of what was measured alone: nothing else can be chosen."""
    return np.where(np.isnan(times.log), np.inf, model.estimate(times.variants, times.shapes))


def refine(model, times, rounds=6000, seed=1):
    """The factors, to what the choice costs, half as much again below cuBLAS; far from what was
    fitted to times none goes."""
    draw = np.random.default_rng(seed)
    estimate = measured_estimates(model, times)
    costs = times.log - times.best[:, None]
    costs = costs + 0.5 * np.maximum(0.0, times.log - times.cublas[:, None])
    moved = np.zeros(len(times.variants))
    every = np.arange(len(estimate))

    def cost():
        return (costs[every, (estimate + moved).argmin(1)].sum() +
                0.02 * ((moved / 0.015) ** 2).sum())

    best = cost()
    for _ in range(rounds):
        index, by = draw.integers(len(moved)), draw.normal(0, draw.choice((0.006, 0.012, 0.024)))
        moved[index] += by
        now = cost()
        if now < best:
            best = now
        else:
            moved[index] -= by
    for v, by in zip(times.variants, moved):
        model.factor[v.name] += by


def report(label, model, times):
    chosen = measured_estimates(model, times).argmin(1)
    every = np.arange(len(chosen))
    ratios = np.exp(times.cublas - times.log[every, chosen])
    best = np.exp(times.cublas - np.nanmin(times.log, 1))
    order = np.argsort(ratios)
    worst = order[0]
    print(f"{label}: {len(ratios)} shapes, {len(times.variants)} variants: x cuBLAS "
          f"{np.exp(np.log(ratios).mean()):.3f} (the best variants {np.exp(np.log(best).mean()):.3f}), "
          f"worst decile {ratios[order[(len(ratios) - 1) // 10]]:.3f}, worst {ratios[worst]:.3f} "
          f"({times.names[worst]}: {times.variants[chosen[worst]].name})")


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
        "#   load   of a step along k: the longer of what comes from L2, which takes longer the more",
        "#          multiprocessors share it, and of what reaches the multiprocessor",
        "#   work   of the waves: in each, as many steps as a CTA sums, each as long as the longer of",
        "#          its products and loads and a part of the shorter; then the tile's stores and a",
        "#          split's exchange. Rows that begin in the middle of a 32-byte sector (odd_k: of A",
        "#          and B, odd_n: of C) take longer.",
        "#   time   the longer of work and of reading and writing memory, and a part of the shorter",
        f"let odd_k = min(k % {32 // element}, 1)",
        "let odd_n = min(n % 16, 1)",
        f"let memory = ((m * k + n * k) * {element} + m * n * 2) * "
        f"{round(1e6 * c['memory'])} / 1000",
    ]
    for depth in sorted({v.k for v in variants}):
        lines.append(f"let steps_{depth} = ceil_div(k, {depth * 2 // element})")
    for ctas in sorted({v.share_a * v.share_b * v.split for v in variants}):
        top, bottom = SLOTS[ctas]
        lines.append(f"let slots_{ctas} = multiprocessors" + (f" * {top}" if top > 1 else "") +
                     (f" / {bottom}" if bottom > 1 else ""))
    lines.append("")
    alone = terms(variants, [(1, 1, 1)])  # of these, only what no shape changes
    for i, v in enumerate(variants):
        product, load = milli(alone.product[i] * c["product"]), alone.load[i] * c["l2"]
        end = alone.stored[i] * c["store"]
        exchange = c["exchange"] + alone.parts[i] * c["part"] if v.split > 1 else 0.0
        ctas = v.share_a * v.share_b * v.split
        start = c["start"] + (c["cluster"] if ctas > 1 else 0.0)
        steps = f"steps_{v.k}" if v.split == 1 else f"ceil_div(steps_{v.k}, {v.split})"
        n = v.name
        lines += [
            f"let tiles_{n} = ceil_div(m, {v.m * v.share_b}) * ceil_div(n, {v.n * v.share_a})",
            f"let busy_{n} = {1000 * ctas} * min(tiles_{n}, slots_{ctas}) / multiprocessors",
            f"let load_{n} = max(({round(load)} + odd_k * {round(load * c['l2_unaligned'])}) * "
            f"max(busy_{n}, {milli(c['idle'])}), {milli(alone.port[i] * c['port'])})",
            f"let work_{n} = ceil_div(tiles_{n}, slots_{ctas}) * ({steps} * ({milli(c['step'])} + "
            f"max({product}, load_{n}) + min({product}, load_{n}) * {milli(c['hidden'])} / 1000) + "
            f"{milli(end + exchange)} + odd_n * {milli(end * c['store_unaligned'])})",
            f"let time_{n} = {milli(np.exp(model.factor[n]))} * ({milli(start)} + "
            f"max(work_{n}, memory) + min(work_{n}, memory) * {milli(c['overlap'])} / 1000)",
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
                      f"when {condition.format(deep=1600 * 2 // element, least=least)}: schedule={name}"]
    for v in variants[:-1]:
        lines.append(f"when time_{v.name} == {least}: schedule={v.name}")
    lines.append(f"else: schedule={variants[-1].name}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times", nargs="+", help="of gpu_gemm.py --compare --json")
    parser.add_argument("--apply", nargs="*", default=[], help="times that nothing is fitted to")
    parser.add_argument("--rounds", type=int, default=32, help="of the fit")
    parser.add_argument("--count", type=int, default=60, help="of the variants that are kept")
    parser.add_argument("--also", nargs="*", default=[], help="variants that are kept in any case")
    parser.add_argument("--out", help="write gemm's rules")
    parser.add_argument("--out-fp8", help="write gemm_fp8's rules")
    arguments = parser.parse_args()

    times = Times(arguments.times)
    model = Model()
    model.fit(times, arguments.rounds)
    report("all variants", model, times)
    also = arguments.also + [name for _, name, _ in EXCEPTIONS]
    keep_variants(model, times, arguments.count, also)
    report("those that are kept", model, times)
    model.fit(times, arguments.rounds)
    report("fitted again", model, times)
    refine(model, times)
    report("refined", model, times)
    print({name: round(float(value), 5) for name, value in model.c.items()})
    print(" ".join(v.name for v in times.variants))
    if arguments.apply:
        report("held out", model, Times(arguments.apply, [v.name for v in times.variants]))
    for kernel, path in (("gemm", arguments.out), ("gemm_fp8", arguments.out_fp8)):
        if path:
            with open(path, "w") as file:
                file.write(rules(model, times.variants, len(set(times.shapes)), kernel))


if __name__ == "__main__":
    sys.exit(main())

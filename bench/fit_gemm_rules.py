#!/usr/bin/env python3
"""The rules that choose gemm's and gemm_fp8's variants at a launch, fitted to measured times.

    bench/fit_gemm_rules.py --out kernels/schedules/gemm.sm_90a.txt  # to all that bench/data holds
    bench/fit_gemm_rules.py --held-out 0.25  # what it loses on shapes that it has not seen

The times are measure_gemm_variants.py's. A model of waves, products, loads, stores and memory
estimates each variant's time. What is fitted to the logarithms of the times, those near a shape's
best above all: its constants, and for each variant a factor and a lean, a polynomial of second
degree in the octaves of m, n and k and of the rows' alignment. An error that all variants share at
a shape changes no choice and hardly counts. With --count, those variants are kept that cost least
to be without the others where the estimates choose, and the model is fitted to them once more. What
is written is the model as rules (docs/schedules.md), over ranges and facts, in integers.
"""

import argparse
import collections
import pathlib
import re
import sys
import types

import numpy as np

import gemm_times
from gemm_shapes import GROUPS, parse_size
from gemm_times import ceil_div, geometric_mean

FIXED = {parse_size(text) for group in GROUPS.values() for text in group.split()}

# Clusters that run at once on 132 multiprocessors, by cuOccupancyMaxActiveClusters; as a fraction.
SLOTS = {1: (1, 1), 2: (1, 2), 3: (8, 27), 4: (5, 22), 6: (2, 15), 8: (5, 44), 16: (7, 132)}

# The operands of those with _t are exchanged, which the estimate does not see.
Variant = collections.namedtuple("Variant", "name m n k share_a share_b split grid")


def parse_variant(name):
    match = re.fullmatch(r"(\d+)x(\d+)(?:x(\d+))?(?:_t)?(?:_a(\d+))?(?:_b(\d+))?"
                         r"(?:_split(\d+)|(_grid))?", name)
    m, n, k, share_a, share_b, split, grid = match.groups()
    return Variant(name, int(m), int(n), int(k or 64), int(share_a or 1), int(share_b or 1),
                   int(split or 1), grid is not None)


LEAST_STEPS = 4  # that a cluster sums of a tile which the grid divides


def runs(v):
    """Of a grid's tile, what a warpgroup stores one after the other and the clusters share out."""
    divided, other = (v.n, v.m) if "_t" in v.name else (v.m, v.n)
    blocks = 2 if divided == 256 else 1
    width = 32 if other > 64 else 16
    whole, rest = divmod(other, width)
    return blocks * (whole + (min(rest, 1) if "_t" in v.name else (rest // 8).bit_count()))


def most_parts(v):
    """Among how many clusters the grid divides a tile."""
    return 4 * runs(v)


CYCLES = 1755.0  # in a microsecond

# What is fitted: cycles, or cycles for a byte, an element or a product.
START = {
    "start": 10300.0,      # of every launch
    "cluster": 1200.0,     # more of one in clusters
    "step": 60.0,          # of a step along k, beside its loads or products
    "product": 1 / 2200,   # of a multiplication and addition where all multiprocessors work
    "power": 0.3,          # of it saved where none would: the fewer work, the higher the clock
    "l2": 0.0130,          # of a byte from L2 where all multiprocessors load
    "l2_lines": 0.3,       # more where rows begin elsewhere than on a line of 128 bytes
    "l2_unaligned": 1.0,   # more where they begin in the middle of a 32-byte sector
    "idle": 0.45,          # of the multiprocessors: with fewer busy ones L2 is no faster
    "port": 0.0090,        # of a byte that reaches a multiprocessor, also from a neighbour's load
    "hidden": 0.1,         # of the shorter of products and loads, what the longer does not hide
    "store": 0.035,        # of an element of C
    "store_unaligned": 0.7,
    "exchange": 4000.0,    # of a split's parts
    "part": 0.19,          # of an element that is exchanged
    "meeting": 3000.0,     # of a grid's parts
    "met": 400.0,          # of a run that is read
    "memory": 0.00029,     # of a byte of A, B and C
    "overlap": 0.87,       # of the shorter of memory's time and the multiprocessors'
}
NAMES = list(START)


def terms(variants, shapes, element):
    """What the constants are multiplied with: a row a shape, a column a variant. Of e4m3 a step has
    as many bytes, and its products take as long."""
    v = types.SimpleNamespace(**{field: np.array([getattr(x, field) for x in variants])
                                 for field in Variant._fields[1:]})
    m, n, k = shapes.T[:, :, None]
    element = element[:, None]
    row = k * element  # bytes
    ctas = v.share_a * v.share_b * v.split
    slots = np.array([gemm_times.MULTIPROCESSORS * SLOTS[c][0] // SLOTS[c][1] for c in ctas])
    tiles = ceil_div(m, v.m * v.share_b) * ceil_div(n, v.n * v.share_a)
    waves = ceil_div(tiles, slots)
    steps = ceil_div(ceil_div(row, 2 * v.k), v.split)
    last = tiles - (waves - 1) * slots
    most = np.array([most_parts(x) if x.grid else 1 for x in variants])
    parts = np.clip(np.minimum(slots // last, steps // LEAST_STEPS), 1, most)
    pieces = tiles + last * (parts - 1)
    return types.SimpleNamespace(
        clusters=ctas > 1, waves=waves, steps=(waves - 1) * steps + ceil_div(steps, parts),
        product=v.m * v.n * v.k, load=(v.m / v.share_a + v.n / v.share_b) * v.k * 2,
        port=(v.m + v.n) * v.k * 2,
        busy=ctas * np.minimum(pieces, slots) / gemm_times.MULTIPROCESSORS,
        used=ctas * pieces / (waves * gemm_times.MULTIPROCESSORS), odd_k=row % 32 != 0,
        off_line=(row % 128 != 0) & (row % 32 == 0), stored=v.m * v.n / v.split, odd_n=n % 16 == 8,
        exchanges=v.split > 1, parts=v.m * v.n * (v.split - 1) / v.split,
        meets=parts > 1, met=ceil_div(np.array([runs(x) for x in variants]), parts) * parts,
        bytes=(m + n) * row + m * n * 2)


def cycles(c, t):
    """Without the variants' factors and leans."""
    product = t.product * c["product"] * (1 - c["power"] * (1 - t.used))
    rows = 1 + t.odd_k * c["l2_unaligned"] + t.off_line * c["l2_lines"]
    load = np.maximum(t.load * c["l2"] * rows * np.maximum(t.busy, c["idle"]), t.port * c["port"])
    step = c["step"] + np.maximum(product, load) + c["hidden"] * np.minimum(product, load)
    end = t.stored * c["store"] * (1 + t.odd_n * c["store_unaligned"])
    end = end + t.exchanges * (c["exchange"] + t.parts * c["part"])
    work = t.steps * step + t.waves * end + t.meets * (c["meeting"] + t.met * c["met"])
    memory = t.bytes * c["memory"]
    return (c["start"] + t.clusters * c["cluster"] + np.maximum(work, memory) +
            c["overlap"] * np.minimum(work, memory))


# What a variant's lean is linear in, as the rules name it; the last belongs to the factor.
SQUARES = ["xx", "yy", "zz", "xy", "xz", "yz"]
LEANS = ["x", "y", "z"] + SQUARES + ["odd_k", "odd_n", "1"]
MIDDLE = {"x": 5, "y": 4, "z": 4}  # octaves above 16 rows, 64 columns and 64 of k


def leans(shapes, element):
    """A row a shape."""
    m, n, k = shapes.T
    row = k * element

    def octave(size, least):
        return np.clip(np.floor(np.log2(size / least)), 0, np.log2(16384 / least))

    at = {"x": octave(m, 16) - MIDDLE["x"], "y": octave(n, 64) - MIDDLE["y"],
          "z": octave(row // 2, 64) - MIDDLE["z"], "odd_k": row % 32 != 0, "odd_n": n % 16 == 8,
          "1": np.ones(len(m))}
    at.update({name: at[name[0]] * at[name[1]] for name in SQUARES})
    return np.array([at[name] for name in LEANS]).T


class Model:
    """The constants, and for each variant the logarithm of what its estimate is multiplied with."""

    def __init__(self):
        self.c = dict(START)
        self.lean = {}

    def estimate(self, times):
        """Logarithms of cycles."""
        lean = np.array([self.lean.get(name, np.zeros(len(LEANS))) for name in times.variants])
        element = times.element_bytes()
        variants = [parse_variant(name) for name in times.variants]
        return (np.log(cycles(self.c, terms(variants, times.shapes, element))) +
                leans(times.shapes, element) @ lean.T)

    def fit(self, times, rounds):
        """In turn the leans, which are linear, and the constants' logarithms by a step of damped
        Gauss-Newton; what is far off counts by its size and no more by its square."""
        kept_near, far, common = 10.0, 0.15, 0.9
        element = times.element_bytes()
        variants = [parse_variant(name) for name in times.variants]
        t, features = terms(variants, times.shapes, element), leans(times.shapes, element)
        squares = (features[:, :, None] * features[:, None, :]).reshape(len(features), -1)
        log = np.log(times.times * CYCLES)
        measured = np.nan_to_num(log)
        lean = np.zeros((len(times.variants), len(LEANS)))
        x = np.log([self.c[name] for name in NAMES])

        def logarithm(x):
            return np.log(cycles(dict(zip(NAMES, np.exp(x))), t))

        def apart(values, weights):
            """Without most of what a shape's variants have in common."""
            mean = (weights * values).sum(1, keepdims=True) / weights.sum(1, keepdims=True)
            return values - common * mean

        def loss(error, weights):
            return (weights * (np.sqrt(1 + (error / far) ** 2) - 1)).sum()

        damping = 1.0
        for turn in range(rounds):
            raw = logarithm(x)
            if turn % 4 == 0:
                weights = nearness(log, np.log(times.cublas * CYCLES), raw + features @ lean.T)
            error = apart(raw + features @ lean.T - measured, weights)
            weighted = weights / np.sqrt(1 + (error / far) ** 2)
            normal = (squares.T @ weighted).T.reshape(-1, len(LEANS), len(LEANS))
            normal = normal + kept_near * np.eye(len(LEANS))
            gradient = (features.T @ (weighted * error)).T + kept_near * lean
            lean = lean - np.linalg.solve(normal, gradient[:, :, None])[:, :, 0]

            rest = features @ lean.T - measured
            error = apart(raw + rest, weights)
            weighted = weights / np.sqrt(1 + (error / far) ** 2)
            slopes = [apart((logarithm(x + 1e-4 * unit) - raw) / 1e-4, weights)
                      for unit in np.eye(len(x))]
            normal = np.array([[(weighted * a * b).sum() for b in slopes] for a in slopes])
            gradient = np.array([(weighted * a * error).sum() for a in slopes])
            for _ in range(5):
                step = np.linalg.solve(normal + damping * np.eye(len(x)), gradient)
                moved = x - np.clip(step, -0.3, 0.3)
                if loss(apart(logarithm(moved) + rest, weights), weights) < loss(error, weights):
                    x, damping = moved, damping / 3
                    break
                damping *= 4
        self.c = dict(zip(NAMES, np.exp(x)))
        self.lean = dict(zip(times.variants, lean))
        print(f"error {np.sqrt((weights * error ** 2).sum() / weights.sum()):.4f}", file=sys.stderr)


def nearness(log, cublas, estimate):
    """Only what is near a shape's best, or estimated so, can change a choice; and a choice counts
    most where even the best is no faster than cuBLAS."""
    near, least_weight, spare = 0.06, 0.03, 0.08
    best = np.nanmin(log, 1)
    least = np.where(np.isnan(log), np.inf, estimate).min(1, keepdims=True)
    behind = np.fmin(log - best[:, None], np.maximum(estimate - least, 0.0))
    weights = least_weight + 1 / (1 + (behind / near) ** 2)
    against_cublas = np.clip(np.exp(np.nan_to_num(best - cublas) / spare), 0.25, 4)
    return np.where(np.isnan(log), 0.0, weights * against_cublas[:, None])


def keep_variants(model, times, count):
    """Leaves out, one by one, what costs least to be without where the estimates choose."""
    estimate = np.where(np.isnan(times.times), np.inf, model.estimate(times))
    behind = np.log(times.times / np.nanmin(times.times, 1, keepdims=True))
    # What is behind cuBLAS costs more: a rare bad choice is worse than many fair ones.
    below = np.nan_to_num(np.log(times.times / times.cublas[:, None]) - np.log(1 / 0.92))
    costs = np.fmin(np.nan_to_num(behind, nan=0.4), 0.4) + 4 * np.clip(below, 0.0, 0.4)
    kept, every = list(range(len(times.variants))), np.arange(len(times))
    while len(kept) > count:
        of_kept = estimate[:, kept]
        first = of_kept.argmin(1)
        of_kept[every, first] = np.inf
        second = of_kept.argmin(1)
        left = np.array(kept)
        more = np.zeros(len(kept))
        np.add.at(more, first, costs[every, left[second]] - costs[every, left[first]])
        kept.pop(int(np.argmin(more)))
    return times.columns(kept)


def fit(times, count, rounds):
    """The text of the rules."""
    model = Model()
    model.fit(times, rounds)
    if count < len(times.variants):
        times = keep_variants(model, times, count)
        model.fit(times, rounds)
    return rules(model, [parse_variant(name) for name in times.variants], len(times))


REMARKS = """\
The variant with the least estimated time; the first of equals. What depends on k counts bytes, so
that it holds of e4m3 too. Unit: thousandths of a cycle.
  x y z  octaves of m, n and k; xx to yz their products
  tiles  of C, or groups of them that share A's or B's; a split tile counts once
  slots  groups of CTAs that run at once: larger clusters leave some multiprocessors idle
  busy   thousandths of the multiprocessors that work in the first wave
  used   thousandths of all waves' multiprocessors that work: the fewer, the higher their clock
  load   of a step along k: the longer of what comes from L2, which takes longer the more
         multiprocessors share it, and of what reaches the multiprocessor. Rows that begin in the
         middle of a 32-byte sector (odd_k: of A and B, odd_n: of C) take longer, and those that
         begin elsewhere than on a line of 128 bytes (off_line).
  parts  of a tile in the last wave, whose tiles the grid divides along k; pieces counts them
  work   of the waves: in each, as many steps as a CTA sums, each as long as the longer of
         its products and loads and a part of the shorter; then the tile's stores and a
         split's exchange, and once that of the parts
  lean   ten thousandths that the variant was found to take longer at such sizes
  time   the longer of work and of reading and writing memory, and a part of the shorter"""


def octave(size, least):
    """From 0 below twice `least` to 16384."""
    starts = [least << i for i in range(1, 15) if least << i <= 16384]
    return " + ".join(f"({size} >= {start})" for start in starts)


def facts(model, variants):
    """What the variants share."""
    lines = [
        "let odd_k = min(k % (32 / element_bytes), 1)",
        "let off_line = min(k % (128 / element_bytes), 1) - odd_k",
        "let odd_n = min(n % 16, 1)",
        f"let x = {octave('m', 16)} - {MIDDLE['x']}",
        f"let y = {octave('n', 64)} - {MIDDLE['y']}",
        f"let z = {octave('k * element_bytes / 2', 64)} - {MIDDLE['z']}",
        *(f"let {a}{b} = {a} * {b}" for a, b in SQUARES),
        f"let memory = ((m * k + n * k) * element_bytes + m * n * 2) * "
        f"{round(1e6 * model.c['memory'])} / 1000",
    ]
    for depth in sorted({v.k for v in variants}):
        lines.append(f"let steps_{depth} = ceil_div(k * element_bytes, {2 * depth})")
    for ctas in sorted({v.share_a * v.share_b * v.split for v in variants}):
        top, bottom = SLOTS[ctas]
        lines.append(f"let slots_{ctas} = multiprocessors" + (f" * {top}" if top > 1 else "") +
                     (f" / {bottom}" if bottom > 1 else ""))
    return lines


def milli(cycles):
    return round(1000 * cycles)


def wave_lines(v):
    """What of C a wave holds; of the steps along k, how many all waves have."""
    n, ctas = v.name, v.share_a * v.share_b * v.split
    lines = [
        f"let tiles_{n} = ceil_div(m, {v.m * v.share_b}) * ceil_div(n, {v.n * v.share_a})",
        f"let waves_{n} = ceil_div(tiles_{n}, slots_{ctas})",
    ]
    steps = f"steps_{v.k}" if v.split == 1 else f"ceil_div(steps_{v.k}, {v.split})"
    if not v.grid:
        return lines, f"tiles_{n}", f"waves_{n} * {steps}"
    lines += [
        f"let last_{n} = tiles_{n} - (waves_{n} - 1) * slots_{ctas}",
        f"let parts_{n} = max(1, min(min(slots_{ctas} / last_{n}, {steps} / {LEAST_STEPS}), "
        f"{most_parts(v)}))",
        f"let pieces_{n} = tiles_{n} + last_{n} * (parts_{n} - 1)",
    ]
    return lines, f"pieces_{n}", f"((waves_{n} - 1) * {steps} + ceil_div({steps}, parts_{n}))"


def estimate_lines(model, v):
    c = model.c
    alone = types.SimpleNamespace(**{name: np.ravel(value)[0] for name, value in
                                     vars(terms([v], np.ones((1, 3), int), np.array([2]))).items()})
    product, load = milli(alone.product * c["product"]), alone.load * c["l2"]
    end = alone.stored * c["store"]
    exchange = c["exchange"] + alone.parts * c["part"] if v.split > 1 else 0.0
    ctas = v.share_a * v.share_b * v.split
    start = c["start"] + (c["cluster"] if ctas > 1 else 0.0)
    power = milli(c["power"])
    n, lean = v.name, model.lean[v.name]
    leaning = " + ".join(f"{round(1e4 * by)} * {name}" for name, by in zip(LEANS[:-1], lean))
    lines, pieces, steps = wave_lines(v)
    return lines + [
        f"let busy_{n} = {1000 * ctas} * min({pieces}, slots_{ctas}) / multiprocessors",
        f"let used_{n} = {1000 * ctas} * {pieces} / (waves_{n} * multiprocessors)",
        f"let product_{n} = {product} * ({1000 - power} + {power} * used_{n} / 1000) / 1000",
        f"let load_{n} = max(({round(load)} + odd_k * {round(load * c['l2_unaligned'])} + "
        f"off_line * {round(load * c['l2_lines'])}) * max(busy_{n}, {milli(c['idle'])}), "
        f"{milli(alone.port * c['port'])})",
        f"let work_{n} = {steps} * ({milli(c['step'])} + max(product_{n}, load_{n}) + "
        f"min(product_{n}, load_{n}) * {milli(c['hidden'])} / 1000) + "
        f"waves_{n} * ({milli(end + exchange)} + odd_n * {milli(end * c['store_unaligned'])})" +
        (f" + (parts_{n} > 1) * ({milli(c['meeting'])} + "
         f"ceil_div({runs(v)}, parts_{n}) * parts_{n} * {milli(c['met'])})" if v.grid else ""),
        f"let lean_{n} = {leaning}".replace("+ -", "- "),
        f"let time_{n} = {milli(np.exp(lean[-1]))} * ({milli(start)} + max(work_{n}, memory) + "
        f"min(work_{n}, memory) * {milli(c['overlap'])} / 1000) / 10000 * "
        f"(10000 + lean_{n} + lean_{n} * lean_{n} / 20000)",
        "",
    ]


def rules(model, variants, shapes):
    lines = ["gemm gemm_fp8 sm_90a v1",
             f"# By bench/fit_gemm_rules.py, from the times of bench/data at {shapes} shapes",
             "# (docs/schedules.md says how to measure and fit again)."]
    lines += ["# " + line for line in REMARKS.split("\n")]
    lines += facts(model, variants) + [""]
    for v in variants:
        lines += estimate_lines(model, v)
    least = "time_" + variants[0].name
    for index, v in enumerate(variants[1:]):
        lines.append(f"let least_{index} = min({least}, time_{v.name})")
        least = f"least_{index}"
    lines.append("")
    for v in variants[:-1]:
        lines.append(f"when time_{v.name} == {least}: schedule={v.name}")
    lines.append(f"else: schedule={variants[-1].name}")
    return "\n".join(lines) + "\n"


def report(label, times, old, new):
    """By both rules, as they are written. New ones are worth their place where they are no worse in
    any dtype, nor at any of the fixed shapes."""
    gain = times.chosen_by(old) / times.chosen_by(new)
    print(f"{label}: {len(times)} shapes; present rules' time over the new ones' "
          f"{geometric_mean(gain):.4f}")
    for row, sizes in enumerate(times.shapes):
        if tuple(sizes) in FIXED and gain[row] != 1:
            print(f"  {'x'.join(map(str, sizes))} {times.dtypes[row]}: {gain[row]:.3f}")
    for dtype in sorted(set(times.dtypes)):
        some = times.rows(times.dtypes == dtype)
        print(f"  {dtype:>4}, present rules: {some.summary(old)}")
        print(f"  {dtype:>4}, new rules:     {some.summary(new)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times", nargs="*", default=gemm_times.DATA,
                        help="of measure_gemm_variants.py; default: bench/data/gemm_times*.npz")
    parser.add_argument("--count", type=int, default=96, help="of the variants that are kept")
    parser.add_argument("--rounds", type=int, default=32, help="of the fit")
    parser.add_argument("--held-out", type=float, default=0.0, metavar="FRACTION",
                        help="of the shapes: fit to the others, and say what the choice loses")
    parser.add_argument("--present", default=gemm_times.RULES, help="rules to compare with")
    parser.add_argument("--out", help="write rules that are fitted to all shapes")
    arguments = parser.parse_args()
    if not arguments.times:
        parser.error("bench/data holds no times: measure some (bench/measure_gemm_variants.py)")

    times = gemm_times.Times(arguments.times)
    present = pathlib.Path(arguments.present).read_text()
    if arguments.held_out > 0:
        is_held = np.random.default_rng(0).random(len(times)) < arguments.held_out
        new = fit(times.rows(~is_held), arguments.count, arguments.rounds)
        report("fitted to", times.rows(~is_held), present, new)
        report("held out", times.rows(is_held), present, new)
    if arguments.out:
        new = fit(times, arguments.count, arguments.rounds)
        report("all", times, present, new)
        with open(arguments.out, "w") as file:
            file.write(new)


if __name__ == "__main__":
    sys.exit(main())

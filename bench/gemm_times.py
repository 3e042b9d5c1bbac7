"""Measured times of gemm's variants, and the choice that a rule file makes among them.

measure_gemm_variants.py writes such times, fit_gemm_rules.py reads them: bench/data/*.npz. A row a
shape, a column a variant, microseconds in float16; NaN where a variant was not measured there.
"""

import os
import pathlib
import re

import numpy as np

BENCH = pathlib.Path(__file__).parent
DATA = sorted((BENCH / "data").glob("gemm_times*.npz"))
RULES = BENCH.parent / "kernels" / "schedules" / "gemm.sm_90a.txt"
RULES_OF = {"bf16": RULES, "f16": RULES, "e4m3": RULES.with_name("gemm_fp8.sm_90a.txt")}
ELEMENT_BYTES = {"bf16": 2, "f16": 2, "e4m3": 1}
MULTIPROCESSORS = 132


def rule_variants(path=RULES):
    """The variants that the rules choose among, in their order."""
    return list(dict.fromkeys(re.findall(r"schedule=(\S+)", pathlib.Path(path).read_text())))


def save(path, rows, variants, device):
    """Each row: (m, n, k), dtype, {variant or "cuBLAS": microseconds}. The file appears whole."""
    def times(name):
        return np.array([row[2].get(name, np.nan) for row in rows], dtype=np.float16)

    dtypes = list(ELEMENT_BYTES)
    partial = f"{path}.partial.npz"
    np.savez_compressed(
        partial, shapes=np.array([row[0] for row in rows], dtype=np.int16).reshape(-1, 3),
        dtype=np.array([dtypes.index(row[1]) for row in rows], dtype=np.uint8), dtypes=dtypes,
        variants=variants, times=np.stack([times(name) for name in variants], axis=1),
        cublas=times("cuBLAS"), device=device)
    os.replace(partial, path)


class Times:
    """Of all files together; a shape that two of them have is two rows."""

    def __init__(self, paths):
        files = [np.load(path) for path in paths]
        self.variants = list(dict.fromkeys(name for file in files for name in file["variants"]))
        self.shapes = np.concatenate([file["shapes"] for file in files]).astype(np.int64)
        self.dtypes = np.concatenate([file["dtypes"][file["dtype"]] for file in files])
        self.cublas = np.concatenate([file["cublas"] for file in files]).astype(np.float64)
        self.times = np.full((len(self.shapes), len(self.variants)), np.nan)
        first = 0
        for file in files:
            times = file["times"]
            columns = [self.variants.index(name) for name in file["variants"]]
            self.times[first:first + len(times), columns] = times
            first += len(times)

    def __len__(self):
        return len(self.shapes)

    def rows(self, which):
        """These rows alone."""
        some = object.__new__(Times)
        some.variants = self.variants
        some.shapes, some.dtypes = self.shapes[which], self.dtypes[which]
        some.cublas, some.times = self.cublas[which], self.times[which]
        return some

    def element_bytes(self):
        return np.array([ELEMENT_BYTES[dtype] for dtype in self.dtypes])


def geometric_mean(ratios):
    return np.exp(np.log(ratios).mean()) if len(ratios) else np.nan


def choice(times, estimates):
    """The columns with the least estimates among those that were measured."""
    return np.where(np.isnan(times.times), np.inf, estimates).argmin(1)


def summary(label, times, chosen):
    """One line: how many times slower the chosen columns are than each shape's best."""
    best = np.nanmin(times.times, 1)
    lost = times.times[np.arange(len(times)), chosen] / best
    known = ~np.isnan(times.cublas)
    decile, percentile, worst = np.quantile(lost, [0.9, 0.99, 1])
    return (f"{label}: {len(times)} shapes, chosen / best {geometric_mean(lost):.4f}, "
            f"worst decile {decile:.3f}, percentile {percentile:.3f}, worst {worst:.3f}; "
            f"x cuBLAS {geometric_mean((times.cublas / best / lost)[known]):.3f}, "
            f"the best {geometric_mean((times.cublas / best)[known]):.3f}")


def ceil_div(a, b):
    return -(-a // b)


def rule_estimates(text, variants, shapes, element_bytes):
    """What rules of the form `let time_VARIANT = ...` estimate: a row a shape, a column a variant.
    Their expressions are Python's over integers, but for the quotient and for what is true."""
    m, n, k = np.asarray(shapes, dtype=np.int64).T
    values = {"m": m, "n": n, "k": k, "element_bytes": np.asarray(element_bytes, dtype=np.int64),
              "multiprocessors": np.int64(MULTIPROCESSORS), "ceil_div": ceil_div,
              "min": np.minimum, "max": np.maximum, "__builtins__": {}}
    for line in text.splitlines():
        let = re.fullmatch(r"let (\w+) = ([^#]*).*", line)
        if let:
            numbers = re.sub(r"\(([^()]+ (?:[<>]=?|[=!]=) [^()]+)\)", r"(1 * (\1))", let[2])
            values[let[1]] = eval(numbers.replace("/", "//"), values)
    return np.stack([np.broadcast_to(values[f"time_{name}"], m.shape) for name in variants], axis=1)

"""Measured times of gemm's variants, and the choice that rules make among them.

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
ELEMENT_BYTES = {"bf16": 2, "f16": 2, "e4m3": 1}
MULTIPROCESSORS = 132


def ceil_div(a, b):
    return -(-a // b)


def geometric_mean(ratios):
    return np.exp(np.log(ratios).mean()) if len(ratios) else np.nan


def variants_of(rules):
    """The variants that rules choose among, in their order."""
    return list(dict.fromkeys(re.findall(r"schedule=(\S+)", rules)))


def estimates(rules, variants, shapes, element_bytes):
    """What rules of the form `let time_VARIANT = ...` estimate: a row a shape, a column a variant.
    Their expressions are Python's over integers, but for the quotient and for what is true."""
    m, n, k = np.asarray(shapes, dtype=np.int64).T
    values = {"m": m, "n": n, "k": k, "element_bytes": np.asarray(element_bytes, dtype=np.int64),
              "multiprocessors": np.int64(MULTIPROCESSORS), "ceil_div": ceil_div,
              "min": np.minimum, "max": np.maximum, "__builtins__": {}}
    for line in rules.splitlines():
        let = re.fullmatch(r"let (\w+) = ([^#]*).*", line)
        if let:
            numbers = re.sub(r"\(([^()]+ (?:[<>]=?|[=!]=) [^()]+)\)", r"(1 * (\1))", let[2])
            values[let[1]] = eval(numbers.replace("/", "//"), values)
    return np.stack([np.broadcast_to(values[f"time_{name}"], m.shape) for name in variants], axis=1)


def save(path, rows, variants, device):
    """Each row: (m, n, k), dtype, {variant or "cuBLAS": microseconds}. The file appears whole."""
    def times(name):
        return np.array([row[2].get(name, np.nan) for row in rows], dtype=np.float16)

    dtypes = list(ELEMENT_BYTES)
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
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
        names = (str(name) for file in files for name in file["variants"])
        self.variants = list(dict.fromkeys(names))
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

    def columns(self, which):
        """These variants alone, and the rows that have one of them."""
        some = self.rows(~np.isnan(self.times[:, which]).all(1))
        some.variants = [self.variants[column] for column in which]
        some.times = some.times[:, which]
        return some

    def element_bytes(self):
        return np.array([ELEMENT_BYTES[dtype] for dtype in self.dtypes])

    def chosen_by(self, rules):
        """The time of the variant that the rules choose among those that were measured."""
        known = [name for name in variants_of(rules) if name in self.variants]
        times = self.times[:, [self.variants.index(name) for name in known]]
        by = estimates(rules, known, self.shapes, self.element_bytes()).astype(float)
        return times[np.arange(len(self)), np.where(np.isnan(times), np.inf, by).argmin(1)]

    def summary(self, rules):
        """One line: how many times slower than the best what the rules choose is."""
        best, chosen = np.nanmin(self.times, 1), self.chosen_by(rules)
        has_cublas = ~np.isnan(self.cublas)
        decile, percentile, worst = np.quantile(chosen / best, [0.9, 0.99, 1])
        return (f"{len(self)} shapes, chosen / best {geometric_mean(chosen / best):.4f}, "
                f"worst decile {decile:.3f}, percentile {percentile:.3f}, worst {worst:.3f}; "
                f"x cuBLAS {geometric_mean((self.cublas / chosen)[has_cublas]):.3f}, "
                f"the best {geometric_mean((self.cublas / best)[has_cublas]):.3f}")

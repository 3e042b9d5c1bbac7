"""The shapes of products that gpu_gemm.py and measure_gemm_variants.py time: m x n x k."""

import argparse
import math
import random

GROUPS = {
    "peers": "4096 8192 2048 8192x8192x1024 16384x8192x4096 4096x14336x4096 128x4096x4096 "
             "64x14336x4096 16x4096x4096 16x14336x4096",
    "ragged": "1000x704x520 4095x4096x4104 333x5000x1024 2047x2056x2056 777x3072x768 "
              "5000x1000x3000 100x9000x2000 3001x4504x1504",
}


def parse_size(text):
    sizes = [int(part) for part in text.split("x")]
    if len(sizes) == 1:
        sizes *= 3
    if len(sizes) != 3:
        raise argparse.ArgumentTypeError(f"{text}: write N, or MxNxK")
    return tuple(sizes)


def random_sizes(seed, count=20):
    """Each size is as likely to lie in one octave as in another; n and k are multiples of 8."""
    draw = random.Random(seed)

    def size(low, high, multiple):
        return round(2 ** draw.uniform(math.log2(low), math.log2(high)) / multiple) * multiple

    return [(size(16, 16384, 1), size(64, 16384, 8), size(64, 16384, 8)) for _ in range(count)]

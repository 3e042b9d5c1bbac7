#!/usr/bin/env python3
"""attention_forward beside cuDNN (PyTorch's scaled_dot_product_attention), 16k tokens.

    bench/gpu_attention.py --library build/release/lib/libtilewright.so [--dim 128] [--lengths N]
    bench/gpu_attention.py --library ... --all
    bench/gpu_attention.py --library ... --schedule tile --beside sm90
    bench/gpu_attention.py --library ... --fa3   where Python finds flash_attn_interface

`ratio` is cuDNN's time over ours. `to best` is the same against the better of cuDNN and
FlashAttention-3. With `--fa3` that one runs here, and `fa3` is its time over ours; without, its
speed relative to cuDNN is what FA3_TFLOPS and CUDNN_TFLOPS give for Hopper. Where they have none
`to best` is `ratio`.

Two kinds of rows have no such peer, and are held against our own kernel: dims other than 64, 128
and 256 against the rate at dim 128, and a sliding window against the causal kernel's time for as
many blocks of 128 x 128 as the window visits. Their ratio stands under `to own` and takes no part
in `geomean ratio`. With `--beside` every row is held against another schedule of ours in this way,
and `geomean ratio` is of these.

`to equal` holds a window against as much work without one: our full attention over about as many
tokens, in sequences of as many blocks of 128 keys as a tile of 128 rows visits behind the first
keys (a window of 512: 5 blocks, sequences of 640). Its tiles are as short and as many, which the
causal kernel's are not, and it reads and writes each byte once, as the window does. Its time, too,
is taken for as many blocks as the window visits.
"""

import argparse
import dataclasses
import importlib.util
import math
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import measure
import tilewright_c

TOKENS = 16384
HIDDEN = 2048
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
MASKS = ("full", "causal")

# Forward, bf16, by (dim, mask): FlashAttention-3 and cuDNN 9.19, alternating in one process.
# Measured on one H200, 2026-11, hidden size 2048, at these lengths.
MEASURED_LENGTHS = (512, 2048, 4096, 8192, 16384)
FA3_TFLOPS = {
    (64, "full"): (322, 498, 528, 579, 576),
    (64, "causal"): (219, 419, 482, 548, 572),
    (128, "full"): (510, 690, 726, 747, 747),
    (128, "causal"): (321, 606, 692, 734, 757),
    (256, "full"): (525, 748, 782, 803, 806),
    (256, "causal"): (334, 624, 725, 783, 811),
}
CUDNN_TFLOPS = {
    (64, "full"): (380, 463, 480, 487, 475),
    (64, "causal"): (253, 390, 430, 456, 469),
    (128, "full"): (511, 649, 675, 685, 686),
    (128, "causal"): (326, 506, 578, 618, 640),
    (256, "full"): (511, 692, 730, 744, 734),
    (256, "causal"): (335, 537, 604, 639, 660),
}


@dataclasses.dataclass(frozen=True)
class Row:
    dim: int
    dim_v: int
    heads: int
    kv_heads: int
    mask: str
    length: int
    window: int = 0

    def batch(self):
        return max(1, round(TOKENS / self.length))

    def name(self):
        dims = f"d{self.dim}" if self.dim_v == self.dim else f"d{self.dim}/{self.dim_v}"
        shared = f" {self.heads}/{self.kv_heads}" if self.kv_heads != self.heads else ""
        window = f" window {self.window}" if self.window else ""
        return f"{dims}{shared} {self.mask}{window} {self.length}"

    def options(self):
        return dict(heads=self.heads, kv_heads=self.kv_heads, dim=self.dim, dim_v=self.dim_v,
                    causal=self.mask == "causal", window=self.window)

    def operations(self):
        """Of two products; a mask counts as half the work, a window as what it shows."""
        pairs = self.length**2 * (0.5 if self.mask == "causal" else 1)
        if self.window:
            pairs = sum(min(i + 1, self.window) for i in range(self.length))
        return 2 * self.batch() * pairs * self.heads * (self.dim + self.dim_v)

    def fa3_over_cudnn(self):
        """Speed of FlashAttention-3 relative to cuDNN; 0 where it was not measured."""
        if (self.kv_heads != self.heads or self.heads * self.dim != HIDDEN or self.window or
                torch.cuda.get_device_capability() != (9, 0) or self.dim_v != self.dim or
                (self.dim, self.mask) not in FA3_TFLOPS or
                self.length not in MEASURED_LENGTHS):
            return 0
        index = MEASURED_LENGTHS.index(self.length)
        return FA3_TFLOPS[self.dim, self.mask][index] / CUDNN_TFLOPS[self.dim, self.mask][index]

    def own_peer(self):
        """The row of ours that this one is held against, or None for cuDNN."""
        if self.window:
            return dataclasses.replace(self, window=0)
        if self.dim in (64, 128, 256) and self.dim == self.dim_v:
            return None
        return dataclasses.replace(self, dim=128, dim_v=128, heads=HIDDEN // 128,
                                   kv_heads=HIDDEN // 128)

    def equal_work(self, size=128):
        """The full attention whose tiles of `size` rows visit as many blocks of keys as this
        window's, but for those of its first keys."""
        blocks = 1 + math.ceil((self.window - 1) / size)
        return dataclasses.replace(self, mask="full", length=min(blocks * size, self.length),
                                   window=0)

    def visited_blocks(self, size=128):
        """Blocks of size x size that the mask, with the window if there is one, visits."""
        blocks = 0
        for first in range(0, self.length, size):
            low = max(0, first - self.window + 1) // size if self.window else 0
            end = min(first + size, self.length) if self.mask == "causal" else self.length
            blocks += math.ceil(end / size) - low
        return self.batch() * blocks


def all_rows():
    rows = [make_row(dim, mask, length) for dim in (64, 128, 256) for mask in MASKS
            for length in LENGTHS]
    rows += [make_row(128, mask, length, heads=32, kv_heads=8) for mask in MASKS
             for length in (2048, 8192)]
    for mask in MASKS:
        for length in (2048, 8192):
            rows += [make_row(96, mask, length), make_row(192, mask, length, dim_v=128)]
    rows += [make_row(128, "causal", length, window=window) for length in (8192, 16384)
             for window in (256, 1024, 4096)]
    return rows


def make_row(dim, mask, length, dim_v=None, heads=None, kv_heads=None, window=0):
    heads = heads or HIDDEN // (dim_v or dim)
    return Row(dim, dim_v or dim, heads, kv_heads or heads, mask, length, window)


def hidden(row, part):
    columns = torch.arange(row.length, device="cuda")[None, :]
    rows = torch.arange(part.start, part.stop, device="cuda")[:, None]
    mask = columns > rows
    return mask | (columns <= rows - row.window) if row.window else mask


def reference_of(row, q, k, v):
    """In float64, a head and some rows at a time: O {batch, length, heads, dim_v} and LSE."""
    batch, length, heads, _ = q.shape
    output = torch.empty(*q.shape[:3], row.dim_v, device="cuda", dtype=torch.float64)
    lse = torch.empty(batch, heads, length, device="cuda", dtype=torch.float64)
    step = min(length, 4096)
    group = row.heads // row.kv_heads
    for b in range(batch):
        for h in range(heads):
            keys, values = k[b, :, h // group].double(), v[b, :, h // group].double()
            for start in range(0, length, step):
                part = slice(start, min(start + step, length))
                scores = q[b, part, h].double() @ keys.T / math.sqrt(row.dim)
                if row.mask == "causal":
                    scores.masked_fill_(hidden(row, part), -math.inf)
                lse[b, h, part] = torch.logsumexp(scores, dim=1)
                output[b, part, h] = torch.softmax(scores, dim=1) @ values
    return output, lse


class Problem:
    """Random tensors of a row, and our kernel bound to them."""

    def __init__(self, library, row, schedule):
        self.row = row
        batch = row.batch()

        def random(heads, dim):
            return torch.randn(batch, row.length, heads, dim, device="cuda", dtype=torch.bfloat16)

        self.inputs = (random(row.heads, row.dim), random(row.kv_heads, row.dim),
                       random(row.kv_heads, row.dim_v))
        self.output = torch.empty(batch, row.length, row.heads, row.dim_v, device="cuda",
                                  dtype=torch.bfloat16)
        self.lse = torch.empty(batch, row.heads, row.length, device="cuda", dtype=torch.float32)
        kernel = library.kernel("attention_forward", **row.options(), **schedule)
        self.launch = kernel.bind(*self.inputs, self.output, self.lse)

    def cudnn(self):
        heads_first = [tensor.transpose(1, 2) for tensor in self.inputs]
        causal, shared = self.row.mask == "causal", self.row.heads != self.row.kv_heads

        def launch():
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return torch.nn.functional.scaled_dot_product_attention(
                    *heads_first, is_causal=causal, enable_gqa=shared)

        return launch

    def flash_attention_3(self):
        import flash_attn_interface

        left = self.row.window - 1 if self.row.window else -1
        options = dict(causal=self.row.mask == "causal",
                       window_size=(left, 0 if self.row.window else -1))
        return lambda: flash_attn_interface.flash_attn_func(*self.inputs, **options)

    def check(self, peer_output=None):
        """Errors of ours and the peer's relative to float64, and what is wrong, if anything."""
        measure.poison([self.output, self.lse])
        self.launch()
        torch.cuda.synchronize()
        reference, reference_lse = reference_of(self.row, *self.inputs)
        error = measure.relative_rms(self.output, reference)
        peer_error = math.nan
        if peer_output is not None:
            peer_error = measure.relative_rms(peer_output.transpose(1, 2), reference)
        lse_error = measure.relative_rms(self.lse, reference_lse)
        del reference, reference_lse
        problems = []
        if not error <= (4e-3 if peer_output is None else 1.1 * peer_error):
            problems.append("output")
        if not lse_error <= 1e-5:
            problems.append(f"LSE {lse_error:.1e}")
        if not measure.runs_alike(self.launch, [self.output, self.lse]):
            problems.append("differs from run to run")
        return error, peer_error, problems


@dataclasses.dataclass
class Result:
    row: Row
    pairs: measure.Pairs
    to_best: float  # nan where the row is held against our own
    to_own: float
    problems: list


def time_fa3(ours, rounds, problems):
    """FlashAttention-3's time over ours, checked before, and what its output is held to."""
    launch = ours.flash_attention_3()
    if not measure.relative_rms(launch(), ours.output.double()) <= 1e-2:
        problems.append("FlashAttention-3 computes something else")
    return measure.time_pairs(ours.launch, launch, rounds).ratio


def run_row(library, row, arguments):
    schedule = measure.schedule_of(arguments)
    ours, own = Problem(library, row, schedule), row.own_peer()
    peer_schedule = schedule
    if arguments.beside:
        own, peer_schedule = row, {"schedule": arguments.beside}
    to_best = to_own = to_equal = math.nan
    if own is None:
        peer = ours.cudnn()
        error, peer_error, problems = ours.check(peer())
        pairs = measure.time_pairs(ours.launch, peer, arguments.rounds)
    else:
        error, peer_error, problems = ours.check()
        pairs = measure.time_pairs(ours.launch, Problem(library, own, peer_schedule).launch,
                                   arguments.rounds)
        share = 1 if own == row else (
            row.visited_blocks() / own.visited_blocks() if row.window
            else row.operations() / own.operations())
        to_own = pairs.ratio * share
    if row.window and not arguments.beside:
        equal = row.equal_work()
        share = row.visited_blocks() / equal.visited_blocks()
        to_equal = share * measure.time_pairs(ours.launch, Problem(library, equal, schedule).launch,
                                              arguments.rounds).ratio
    fa3 = time_fa3(ours, arguments.rounds, problems) if arguments.fa3 else math.nan
    if own is None:
        to_best = min(pairs.ratio, fa3) if arguments.fa3 else (
            pairs.ratio / max(1, row.fa3_over_cudnn()))
    work = row.operations() * 1e-12
    peer_work = (own or row).operations() * 1e-12

    def figure(value):
        return f"{value:7.3f}" if value == value else "      -"

    print(f"{row.name():>26} {pairs.ours * 1e6:9.1f} {pairs.peer * 1e6:9.1f} "
          f"{work / pairs.ours:8.1f} {peer_work / pairs.peer:8.1f} {pairs.ratio:6.3f} "
          f"{pairs.low:6.3f}..{pairs.high:5.3f} {figure(fa3)} {figure(to_best)} {figure(to_own)} "
          f"{figure(to_equal):>8} {error:9.2e} {peer_error:9.2e}  {', '.join(problems) or 'ok'}",
          flush=True)
    return Result(row, pairs, to_best, to_own, problems)


def summarise(results):
    compared = [r for r in results if r.to_best == r.to_best]
    own = [r for r in results if r.to_own == r.to_own]
    groups = {}
    for r in compared:
        shared = f" {r.row.heads}/{r.row.kv_heads}" if r.row.heads != r.row.kv_heads else ""
        groups.setdefault(f"d{r.row.dim}{shared} {r.row.mask}", []).append(r)
    for name, rows in groups.items():
        mean = measure.geometric_mean(r.pairs.ratio for r in rows)
        print(f"{name}: {mean:.3f} of cuDNN's speed, "
              f"{measure.geometric_mean(r.to_best for r in rows):.3f} of the better of "
              f"FlashAttention-3 and cuDNN")
    if own:
        worst = min(own, key=lambda r: r.to_own)
        print(f"worst row held against our own: {worst.row.name()}: {worst.to_own:.3f}")
    wrong = [r.row.name() for r in results if r.problems]
    if wrong:
        print(f"wrong results: {'; '.join(wrong)}")
    rows = [(r.to_best, r.row.name()) for r in compared] or [(r.to_own, r.row.name()) for r in own]
    print("worst row {1}: {0:.3f}".format(*min(rows)))
    print(f"geomean ratio {measure.geometric_mean(ratio for ratio, _ in rows):.3f}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(parser)
    parser.add_argument("--all", action="store_true",
                        help="every dim, mask and length, shared heads, windows")
    parser.add_argument("--dim", type=int, default=128, help="multiple of 16 up to 256")
    parser.add_argument("--dim-v", type=int, help="of a value row; dim if left out")
    parser.add_argument("--heads", type=int, help="2048 / dim_v if left out")
    parser.add_argument("--kv-heads", type=int, help="a divisor of the heads")
    parser.add_argument("--window", type=int, default=0, help="causal rows: keys that a query sees")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--beside", help="another schedule of ours, as the peer of every row")
    parser.add_argument("--masks", nargs="+", choices=MASKS, default=MASKS)
    parser.add_argument("--fa3", action="store_true", help="run FlashAttention-3 beside ours")
    arguments = parser.parse_args()
    if arguments.fa3 and importlib.util.find_spec("flash_attn_interface") is None:
        parser.error("--fa3: Python finds no flash_attn_interface (FlashAttention-3)")

    torch.manual_seed(arguments.seed)
    library = tilewright_c.Library(arguments.library)
    masks = ("causal",) if arguments.window else arguments.masks
    rows = all_rows() if arguments.all else [
        make_row(arguments.dim, mask, length, arguments.dim_v, arguments.heads, arguments.kv_heads,
                 arguments.window) for mask in masks for length in arguments.lengths]
    measure.print_versions(library)
    print(f"{'row':>26} {'ours us':>9} {'peer us':>9} {'TFLOP/s':>8} {'peer':>8} {'ratio':>6} "
          f"{'10%..90%':>13} {'fa3':>7} {'to best':>7} {'to own':>7} {'to equal':>8} "
          f"{'error':>9} {'peer':>9}")
    results = [run_row(library, row, arguments) for row in rows]
    print(f"device: {measure.device_state()}")
    return summarise(results)


if __name__ == "__main__":
    sys.exit(main())

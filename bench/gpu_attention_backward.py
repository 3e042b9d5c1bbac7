#!/usr/bin/env python3
"""attention_backward beside FlashAttention-3 and cuDNN: 16k tokens, hidden size 2048, bf16.

    bench/gpu_attention_backward.py --library build/release/lib/libtilewright.so --fa3
    bench/gpu_attention_backward.py --library ... --fa3 --cudnn --dims 128 192/128 --masks causal
    bench/gpu_attention_backward.py --library ... --variants "schedule=a" "schedule=b,block_q=64"
    bench/gpu_attention_backward.py --library ... --fa3 --check --rounds 0
    bench/gpu_attention_backward.py --library ... --fa3 --with-forward --dims 128 --lengths 4096

A table for each dim and mask has TFLOP/s by length. The work is that of five products where the
forward pass has two: 2.5 times it, where dim_v is dim. A causal mask counts as half of the work,
and a window as what it shows. A time is that of everything from dO to dQ, dK and dV: what comes
before the products and the conversion behind them count, on both sides. All of a row run in the
same rounds, one after the other in turns, each with a cold L2 cache. O and LSE come from our own
forward pass for ours, and from the peer's for a peer.

`ratio` is the peer's time over ours: above 1 ours is the faster. The peer is FlashAttention-3
(`--fa3`: where Python finds flash_attn_interface), else cuDNN (`--cudnn`: PyTorch's
scaled_dot_product_attention), else the last of --variants. With `--window`, `to equal` is the time
of as much work without one, as in gpu_attention.py, over that of the window. Each row's gradients
are held against those of every peer first. The last line is the geometric mean of the first
variant's ratios, if there is a peer. With `--with-forward` a run is the forward pass and the
backward one behind it, on both sides, and the work that of both.
"""

import argparse
import dataclasses
import importlib.util
import math
import statistics
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import measure
import tilewright_c
from gpu_attention import LENGTHS, MASKS, Row, hidden, make_row

DIMS = ("64", "128", "256")
GRADIENTS = ("dQ", "dK", "dV")
FA3 = "FlashAttention-3"
CUDNN = "cuDNN"
# Of two implementations that round to bf16: each errs by 2e-3 to 3e-3.
SAME = 1e-2
# Relative to float64, of a kernel that rounds P and dS to bf16 once.
ROUNDED = {"dQ": 6e-3, "dK": 6e-3, "dV": 4e-3}
CHECKED_LENGTH = 1000
CHECKED_HEADS = ((4, 4), (4, 2))


def parse_dims(text):
    """"128", or "192/128" for dim and dim_v."""
    parts = text.split("/")
    try:
        dims = [int(part) for part in parts]
    except ValueError:
        dims = []
    if len(dims) not in (1, 2) or min(dims) < 1:
        raise argparse.ArgumentTypeError(f"{text} is neither a dim nor dim/dim_v")
    return dims[0], dims[-1]


def parse_settings(text):
    """"schedule=a,block_q=64" as options of a kernel; "" for none."""
    settings = {}
    for setting in filter(None, text.split(",")):
        name, equals, value = setting.partition("=")
        if not (name and equals and value):
            raise argparse.ArgumentTypeError(f"{setting} is not NAME=VALUE")
        if name in settings:
            raise argparse.ArgumentTypeError(f"{name} stands twice in {text}")
        settings[name] = value
    return settings


def operations(row, with_forward=False):
    """Of five products: those of S, dQ and dK have dim, those of dP and dV dim_v."""
    forward = row.operations()
    backward = forward * (3 * row.dim + 2 * row.dim_v) / (row.dim + row.dim_v)
    return backward + (forward if with_forward else 0)


def one_after_the_other(*launches):
    """All of them as one launch, which returns what the last one does."""
    def launch():
        return [each() for each in launches][-1]

    return launch


def reference_gradients(row, q, k, v, d_output):
    """dQ, dK and dV in float64, a head at a time."""
    gradients = [torch.zeros(tensor.shape, device="cuda", dtype=torch.float64)
                 for tensor in (q, k, v)]
    dq, dk, dv = gradients
    scale = 1 / math.sqrt(row.dim)
    for b in range(q.shape[0]):
        for h in range(row.heads):
            kv = h // (row.heads // row.kv_heads)
            queries, keys = q[b, :, h].double(), k[b, :, kv].double()
            values, grad = v[b, :, kv].double(), d_output[b, :, h].double()
            scores = queries @ keys.T * scale
            if row.mask == "causal":
                scores.masked_fill_(hidden(row, slice(0, row.length)), -math.inf)
            weights = torch.softmax(scores, dim=1)
            of_weights = grad @ values.T
            rows = (weights * of_weights).sum(1, keepdim=True)
            of_scores = weights * (of_weights - rows) * scale
            dq[b, :, h] = of_scores @ keys
            dk[b, :, kv] += of_scores.T @ queries
            dv[b, :, kv] += weights.T @ grad
    return gradients


class Problem:
    """Random tensors of a row, and our variants bound to them."""

    def __init__(self, library, row, variants, with_forward=False):
        self.row, self.with_forward = row, with_forward

        def random(heads, dim):
            return torch.randn(row.batch(), row.length, heads, dim, device="cuda",
                               dtype=torch.bfloat16)

        self.inputs = [random(row.heads, row.dim), random(row.kv_heads, row.dim),
                       random(row.kv_heads, row.dim_v)]
        self.d_output = random(row.heads, row.dim_v)
        output = torch.empty_like(self.d_output)
        lse = torch.empty(row.batch(), row.heads, row.length, device="cuda", dtype=torch.float32)
        forward = library.kernel("attention_forward", **row.options()).bind(*self.inputs, output,
                                                                            lse)
        forward()
        self.gradients = [torch.empty_like(tensor) for tensor in self.inputs]
        self.ours = {
            name: library.kernel("attention_backward", **{**row.options(), **settings}).bind(
                *self.inputs, output, lse, self.d_output, *self.gradients)
            for name, settings in variants.items()}
        if with_forward:
            self.ours = {name: one_after_the_other(forward, backward)
                         for name, backward in self.ours.items()}

    def run(self, name):
        """The gradients of one variant, in tensors that the next run overwrites."""
        measure.poison(self.gradients)
        self.ours[name]()
        torch.cuda.synchronize()
        return self.gradients

    def runs_alike(self, name):
        self.run(name)
        return measure.runs_alike(self.ours[name], self.gradients)

    def _gradients(self, forward, inputs, d_output):
        """A launch of the backward pass, with the forward one before it if it counts."""
        def backward_of(output):
            return torch.autograd.grad(output, inputs, d_output, retain_graph=True)

        if self.with_forward:
            return lambda: backward_of(forward())
        output = forward()
        return lambda: backward_of(output)

    def flash_attention_3(self):
        import flash_attn_interface

        left = self.row.window - 1 if self.row.window else -1
        inputs = [tensor.detach().requires_grad_() for tensor in self.inputs]

        def forward():
            output = flash_attn_interface.flash_attn_func(
                *inputs, causal=self.row.mask == "causal",
                window_size=(left, 0 if self.row.window else -1))
            # Some versions give LSE beside it.
            return output[0] if isinstance(output, tuple) else output

        return self._gradients(forward, inputs, self.d_output)

    def cudnn(self):
        if self.row.window:
            raise NotImplementedError("scaled_dot_product_attention has no window")
        inputs = [tensor.detach().requires_grad_() for tensor in self.inputs]

        def forward():
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return torch.nn.functional.scaled_dot_product_attention(
                    *(tensor.transpose(1, 2) for tensor in inputs),
                    is_causal=self.row.mask == "causal",
                    enable_gqa=self.row.heads != self.row.kv_heads)

        return self._gradients(forward, inputs, self.d_output.transpose(1, 2))

    def peer(self, name):
        """Its launch, which returns its gradients. Raises NotImplementedError where it has none."""
        return self.flash_attention_3() if name == FA3 else self.cudnn()

    def reference(self):
        return reference_gradients(self.row, *self.inputs, self.d_output)


@dataclasses.dataclass
class Result:
    row: Row
    seconds: dict  # of each variant and peer, in every round
    peer: str  # that the ratios are to; none: there is nothing to compare with
    problems: list = dataclasses.field(default_factory=list)
    differs: list = dataclasses.field(default_factory=list)  # variants, from run to run
    with_forward: bool = False
    equal: Row | None = None  # as much work as that of the row's window

    def tflops(self, name):
        work = operations(self.row, self.with_forward)
        return work / statistics.median(self.seconds[name]) * 1e-12

    def ratios(self, name):
        """Of the rounds, in ascending order; none where the peer does not take the row."""
        if self.peer not in self.seconds:
            return []
        return sorted(peer / ours
                      for ours, peer in zip(self.seconds[name], self.seconds[self.peer]))

    def ratio(self, name):
        ratios = self.ratios(name)
        return statistics.median(ratios) if ratios else math.nan

    def to_equal(self, name):
        """The time of as much work without a window over that of the row's."""
        blocks = self.row.visited_blocks() / self.equal.visited_blocks()
        return statistics.median(equal * blocks / ours for ours, equal in zip(
            self.seconds[name], self.seconds[on_equal_work(name)]))


def on_equal_work(name):
    return f"{name} on equal work"


def peers_of(arguments):
    return [name for name, asked in ((FA3, arguments.fa3), (CUDNN, arguments.cudnn)) if asked]


def launches_of(problem, peers):
    """Of those peers that take the row; and what the others say."""
    launches, refused = {}, []
    for name in peers:
        try:
            launch = problem.peer(name)
            launch()
            launches[name] = launch
        except NotImplementedError as error:
            refused.append(f"{name}: {error}")
    return launches, refused


def run_row(library, row, variants, arguments):
    problem = Problem(library, row, variants, arguments.with_forward)
    launches, problems = launches_of(problem, peers_of(arguments))
    wrong, differs = [], []
    wanted = {name: launch() for name, launch in launches.items()}
    for variant in variants:
        gradients = problem.run(variant)
        for gradient, tensor in zip(GRADIENTS, gradients):
            if not torch.isfinite(tensor).all():
                wrong.append(f"{variant}: {gradient} is not finite")
        for peer, of_peer in wanted.items():
            for gradient, tensor, other in zip(GRADIENTS, gradients, of_peer):
                if not measure.relative_rms(tensor, other.double()) <= SAME:
                    wrong.append(f"{variant}: {gradient} is not {peer}'s")
        if not problem.runs_alike(variant):
            differs.append(variant)
    del wanted
    equal = row.equal_work() if row.window else None
    of_equal = (Problem(library, equal, variants, arguments.with_forward).ours if equal else {})
    seconds = measure.time_rounds({**problem.ours, **launches,
                                   **{on_equal_work(name): of_equal[name] for name in of_equal}},
                                  arguments.rounds)
    peers = peers_of(arguments)
    peer = peers[0] if peers else list(variants)[-1] if len(variants) > 1 else ""
    if problems:
        print("  " + "; ".join(problems))
    return Result(row, seconds, peer, wrong, differs, arguments.with_forward, equal)


def print_header(row, columns, variants):
    dims = f"d{row.dim}" if row.dim == row.dim_v else f"d{row.dim}/{row.dim_v}"
    window = f" window {row.window}" if row.window else ""
    print(f"\n{dims} {row.mask}{window}, {row.heads}/{row.kv_heads} heads, TFLOP/s")
    print(f"{'length':>8} " + " ".join(f"{name:>18}" for name in columns) +
          "".join(f" {'ratio':>7} {'10%..90%':>13}" for _ in variants))


def print_row(result, columns, variants):
    line = f"{result.row.length:8} "
    line += " ".join(f"{result.tflops(name):18.1f}" if name in result.seconds else f"{'-':>18}"
                     for name in columns)
    for name in variants:
        ratios = result.ratios(name)
        tail = len(ratios) // 10
        line += (f" {result.ratio(name):7.3f} {ratios[tail]:6.3f}..{ratios[-1 - tail]:5.3f}"
                 if ratios else f" {'-':>7} {'-':>13}")
    if result.equal:
        line += "  to equal " + " ".join(f"{result.to_equal(name):.3f}" for name in variants)
    notes = result.problems + [f"{name}: differs from run to run" for name in result.differs]
    print(line + "  " + ("; ".join(notes) or "ok"), flush=True)


def check_row(library, row, variants, arguments):
    """Prints the errors of all against float64; those that are too large are returned."""
    problem = Problem(library, row, variants)
    launches, refused = launches_of(problem, peers_of(arguments))
    reference = problem.reference()

    def errors(gradients):
        return [measure.relative_rms(*pair) for pair in zip(gradients, reference)]

    found = {name: errors(problem.run(name)) for name in variants}
    of_peers = {name: errors(launch()) for name, launch in launches.items()}
    wrong = []
    print(f"{row.name()}: relative errors of {', '.join(GRADIENTS)}")
    for name, values in {**found, **of_peers}.items():
        print(f"  {name:>18} " + " ".join(f"{value:9.2e}" for value in values))
    for line in refused:
        print("  " + line)
    for name, values in found.items():
        for index, gradient in enumerate(GRADIENTS):
            bound = (1.1 * of_peers[FA3][index] if FA3 in of_peers else ROUNDED[gradient])
            if not values[index] <= bound:
                wrong.append(f"{row.name()}: {name}: {gradient} errs by {values[index]:.2e}, "
                             f"more than {bound:.2e}")
    return wrong


def summarise(results, variants):
    wrong = [f"{result.row.name()}: {problem}" for result in results for problem in result.problems]
    print()
    means = {}
    for name in variants:
        compared = [result for result in results if result.ratios(name)]
        if not compared:
            continue
        means[name] = measure.geometric_mean(result.ratio(name) for result in compared)
        worst = min(compared, key=lambda result: result.ratio(name))
        print(f"{name}: geometric mean {means[name]:.3f} of {compared[0].peer}'s speed in "
              f"{len(compared)} rows, worst row {worst.row.name()}: {worst.ratio(name):.3f}")
    if wrong:
        print("wrong results: " + "; ".join(wrong))
    if means:
        print(f"geomean ratio {next(iter(means.values())):.3f}")
    return 1 if wrong else 0


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(parser)
    parser.add_argument("--dims", nargs="+", type=parse_dims,
                        default=[parse_dims(text) for text in DIMS],
                        help="multiples of 16 up to 256; 192/128 for a dim and a dim_v")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--masks", nargs="+", choices=MASKS, default=MASKS)
    parser.add_argument("--window", type=int, default=0, help="causal rows: keys that a query sees")
    parser.add_argument("--heads", type=int, help="2048 / dim_v if left out")
    parser.add_argument("--kv-heads", type=int, help="a divisor of the heads")
    parser.add_argument("--set", action="append", default=[], type=parse_settings,
                        metavar="NAME=VALUE", help="an option of our kernel, in all variants")
    parser.add_argument("--variants", nargs="+", type=parse_settings, default=[{}],
                        metavar="NAME=VALUE,...", help="several of ours, side by side")
    parser.add_argument("--with-forward", action="store_true",
                        help="run the forward pass before, on both sides")
    parser.add_argument("--fa3", action="store_true", help="run FlashAttention-3 beside ours")
    parser.add_argument("--cudnn", action="store_true", help="run cuDNN beside ours")
    parser.add_argument("--check", action="store_true",
                        help="first compare all with float64, at a small size; with --rounds 0 "
                             "that alone")
    return parser


def variants_of(arguments):
    """The options of each of ours, by the name that its column has."""
    common = measure.schedule_of(arguments)
    for settings in arguments.set:
        common.update(settings)
    variants = {}
    for settings in arguments.variants:
        name = ",".join(f"{key}={value}" for key, value in settings.items()) or "ours"
        variants[name] = {**common, **settings}
    return variants


def main(words=None):
    parser = make_parser()
    arguments = parser.parse_args(words)
    if arguments.fa3 and importlib.util.find_spec("flash_attn_interface") is None:
        parser.error("--fa3: Python finds no flash_attn_interface (FlashAttention-3)")
    if arguments.rounds < 1 and not arguments.check:
        parser.error("--rounds: without a round there is nothing to do but --check")
    variants = variants_of(arguments)
    if len(variants) < len(arguments.variants):
        parser.error("--variants: one stands twice")
    masks = ("causal",) if arguments.window else arguments.masks

    def row(dims, mask, length, heads=arguments.heads, kv_heads=arguments.kv_heads):
        return make_row(dims[0], mask, length, dims[1], heads, kv_heads, arguments.window)

    torch.manual_seed(arguments.seed)
    library = tilewright_c.Library(arguments.library)
    measure.print_versions(library)
    wrong = []
    if arguments.check:
        for dims in arguments.dims:
            for mask in masks:
                for heads in CHECKED_HEADS:
                    wrong += check_row(library, row(dims, mask, CHECKED_LENGTH, *heads), variants,
                                       arguments)
        print("\n".join(wrong) or "all errors are within their bounds")
    if arguments.rounds < 1:
        return 1 if wrong else 0

    columns = list(variants) + peers_of(arguments)
    results = []
    for dims in arguments.dims:
        for mask in masks:
            rows = [row(dims, mask, length) for length in arguments.lengths]
            print_header(rows[0], columns, variants)
            for each in rows:
                results.append(run_row(library, each, variants, arguments))
                print_row(results[-1], columns, variants)
    print(f"\ndevice: {measure.device_state()}")
    return max(summarise(results, variants), 1 if wrong else 0)


if __name__ == "__main__":
    sys.exit(main())

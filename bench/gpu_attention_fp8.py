#!/usr/bin/env python3
"""attention_forward_fp8 beside attention_forward of bf16, 16k tokens.

    bench/gpu_attention_fp8.py --library build/release/lib/libtilewright.so

`x` is the time of bf16 over that of e4m3. `errors` are root mean squares of O against float64, of
inputs as FlashAttention-3's paper (section 4.3) draws them: N(0, 1), and one element in a thousand
larger by N(0, 100). They are quantised with a scale for each head. `rotated`: Q and K are first
multiplied by one random rotation, which changes no score and spreads what is large. `error` of a
row is relative, against the inputs as they are in e4m3.
"""

import argparse
import statistics
import sys

import torch

import measure
import tilewright_c

TOKENS = 16384
LARGEST = 448
# Of FlashAttention-3's paper: bf16 none, FP8 with a scale a tensor, and its own, which has scales
# of blocks and rotates.
PUBLISHED = "published: 2.4e-2 with scales of tensors, 9.1e-3 with rotation and scales of blocks"
MOST = 2.5e-2
MOST_OF_WEIGHTS = 3.5e-2  # relative: what rounding weights explains


def quantised(tensor):
    """{batch, length, heads, dim} of float64 in e4m3, and the heads' scales."""
    scale = tensor.abs().amax((0, 1, 3)) / LARGEST
    return ((tensor / scale[:, None]).to(torch.float8_e4m3fn), scale.float())


class Problem:
    def __init__(self, length, causal, heads, dim, draw):
        shape = (TOKENS // length, length, heads, dim)
        self.options = {"heads": heads, "dim": dim, "causal": causal}
        self.exact = [draw(shape) for _ in range(3)]
        self.bytes, self.scales = zip(*map(quantised, self.exact))
        self.halves = [tensor.bfloat16() for tensor in self.exact]
        self.out = torch.empty(shape, device="cuda", dtype=torch.bfloat16)
        self.lse = torch.empty((shape[0], heads, length), device="cuda")
        self.operations = 4 * TOKENS * length * heads * dim // (2 if causal else 1)

    def launches(self, library):
        fp8 = library.kernel("attention_forward_fp8", **self.options)
        bf16 = library.kernel("attention_forward", **self.options)
        return {"e4m3": fp8.bind(*self.bytes, *self.scales, self.out, self.lse),
                "bf16": bf16.bind(*self.halves, self.out, self.lse)}

    def as_quantised(self):
        return [tensor.double() * scale[:, None]
                for tensor, scale in zip(self.bytes, self.scales)]

    def error(self, launch, inputs):
        """Of the first head of the first sequence, against these inputs, and what was expected."""
        measure.poison([self.out, self.lse])
        launch()
        torch.cuda.synchronize()
        q, k, v = (tensor[0, :, 0] for tensor in inputs)
        scores = q @ k.T * q.shape[-1] ** -0.5
        if self.options["causal"]:
            hidden = torch.ones_like(scores, dtype=torch.bool).triu(1)
            scores.masked_fill_(hidden, -torch.inf)
        wanted = scores.softmax(-1) @ v
        error = (self.out[0, :, 0].double() - wanted).square().mean().sqrt().item()
        return error, wanted.square().mean().sqrt().item()


def normal(shape):
    return torch.randn(shape, device="cuda", dtype=torch.float64)


def with_outliers(shape):
    return normal(shape) + normal(shape) * 10 * (torch.rand(shape, device="cuda") < 1e-3)


def print_errors(library):
    problem = Problem(2048, False, 2, 128, with_outliers)
    exact = problem.exact
    errors = {"as drawn": problem.error(problem.launches(library)["e4m3"], exact)[0]}
    rotation = torch.linalg.qr(normal((128, 128)))[0]
    rotated = [exact[0] @ rotation, exact[1] @ rotation, exact[2]]
    problem.bytes, problem.scales = zip(*map(quantised, rotated))
    errors["rotated"] = problem.error(problem.launches(library)["e4m3"], exact)[0]
    print(", ".join(f"{name} {error:.2e}" for name, error in errors.items()) + f"; {PUBLISHED}")
    return max(errors.values()) > MOST


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(parser)
    parser.add_argument("--lengths", nargs="+", type=int, default=[512, 2048, 8192, 16384])
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    library = tilewright_c.Library(arguments.library)
    measure.print_versions(library)
    failures = print_errors(library)
    print(f"{'length':>7} {'mask':>7} {'e4m3':>8} {'bf16':>8} TFLOP/s {'x':>6} {'error':>9}")
    for length in arguments.lengths:
        for causal in (False, True):
            problem = Problem(length, causal, 16, 128, normal)
            launches = problem.launches(library)
            error, size = problem.error(launches["e4m3"], problem.as_quantised())
            failures += error > MOST_OF_WEIGHTS * size
            times = measure.time_rounds(launches, arguments.rounds)
            seconds = {name: statistics.median(each) for name, each in times.items()}
            rates = [problem.operations / seconds[name] * 1e-12 for name in ("e4m3", "bf16")]
            ratio = statistics.median(b / a for a, b in zip(times["e4m3"], times["bf16"]))
            print(f"{length:7} {'causal' if causal else 'full':>7} {rates[0]:8.1f} "
                  f"{rates[1]:8.1f}         {ratio:6.3f} {error / size:9.2e}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

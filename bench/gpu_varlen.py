#!/usr/bin/env python3
"""attention_varlen_forward on sequences of random lengths beside attention_forward on as many of
one length with the same work: 32 sequences of 16384 tokens together, hidden 2048.

    bench/gpu_varlen.py --library build/release/lib/libtilewright.so [--dim 128] [--sequences 32]
    bench/gpu_varlen.py --library ... --backward --schedule atomic

`ratio` is the fixed batch's time over the ragged one's, each for the same work. With --backward
they are attention_varlen_backward and attention_backward.
"""

import argparse
import math
import random
import sys

import torch

import measure
import tilewright_c
from gpu_attention import make_row, reference_of
from gpu_attention_backward import reference_gradients

TOKENS = 16384
HIDDEN = 2048
MASKS = ("full", "causal")
SPREADS = ("uniform", "cuts")


def lengths_of(spread, sequences, generator):
    """`uniform`: lengths are 0.1 to 1.9 of the mean; `cuts`: between random places: some are
    very short and some several times the mean."""
    if spread == "uniform":
        weights = [generator.uniform(0.1, 1.9) for _ in range(sequences)]
        total, ends, offset = sum(weights), [], 0.0
        for weight in weights:
            offset += weight
            ends.append(round(TOKENS * offset / total))
    else:
        ends = sorted(generator.randint(0, TOKENS) for _ in range(sequences - 1)) + [TOKENS]
    return [end - begin for begin, end in zip([0] + ends, ends)]


def work_of(lengths, causal):
    return sum(4 * length * length * HIDDEN for length in lengths) * (0.5 if causal else 1)


def bind(library, arguments, causal, inputs, offsets):
    """A launch, and what it writes; with --backward the gradient of O stands before that."""
    heads, dim = inputs[0].shape[-2:]
    options = dict(heads=heads, dim=dim, causal=causal)
    schedule = measure.schedule_of(arguments)
    packed = "_varlen" if offsets else ""
    output = torch.empty_like(inputs[0])
    rows = inputs[0].shape[:-2]
    lse = torch.empty((*rows[:-1], heads, rows[-1]), device="cuda", dtype=torch.float32)
    forward = library.kernel(f"attention{packed}_forward", **options,
                             **({} if arguments.backward else schedule))
    forward = forward.bind(*inputs, *offsets, output, lse)
    if not arguments.backward:
        return forward, None, [output, lse]
    forward()
    torch.cuda.synchronize()
    d_output = torch.randn_like(output)
    gradients = [torch.empty_like(tensor) for tensor in inputs]
    backward = library.kernel(f"attention{packed}_backward", **options, **schedule)
    return (backward.bind(*inputs, *offsets, output, lse, d_output, *gradients), d_output,
            gradients)


def errors_of(row, inputs, d_output, results, rows):
    """Of a sequence: the largest relative error, and the largest difference of LSE."""
    parts = [tensor[None, rows] for tensor in inputs]
    if d_output is not None:
        wanted = reference_gradients(row, *parts, d_output[None, rows])
        return max(measure.relative_rms(got[None, rows], each)
                   for got, each in zip(results, wanted)), 0.0
    output, lse = results
    wanted, wanted_lse = reference_of(row, *parts)
    return (measure.relative_rms(output[None, rows], wanted),
            (lse[None, :, rows] - wanted_lse).abs().max().item())


def run_row(library, arguments, lengths, causal):
    heads = HIDDEN // arguments.dim
    packed = (TOKENS, heads, arguments.dim)
    inputs = [torch.randn(packed, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
    ends = torch.tensor([0] + lengths).cumsum(0).to(device="cuda", dtype=torch.int32)
    ours, d_output, results = bind(library, arguments, causal, inputs, [ends, ends.clone()])
    # As many sequences of one length, whose work is the same but for the rounding of the length.
    length = max(1, round(math.sqrt(sum(n * n for n in lengths) / len(lengths))))
    fixed = [torch.randn((len(lengths), length, heads, arguments.dim), device="cuda",
                         dtype=torch.bfloat16) for _ in range(3)]
    peer, *_ = bind(library, arguments, causal, fixed, [])

    measure.poison(results)
    ours()
    torch.cuda.synchronize()
    worst = worst_lse = 0.0
    begin = 0
    for n in lengths:
        rows = slice(begin, begin + n)
        begin += n
        # Of one key dQ and dK are 0 but for rounding.
        if n < (2 if arguments.backward else 1):
            continue
        row = make_row(arguments.dim, "causal" if causal else "full", n)
        error, lse_error = errors_of(row, inputs, d_output, results, rows)
        worst, worst_lse = max(worst, error), max(worst_lse, lse_error)
    alike = arguments.backward or measure.runs_alike(ours, results)
    pairs = measure.time_pairs(ours, peer, arguments.rounds)
    scale = work_of(lengths, causal) / work_of([length] * len(lengths), causal)
    good = worst <= (1e-2 if arguments.backward else 5e-3) and worst_lse <= 1e-4 and alike
    return pairs, scale, length, worst, worst_lse, good


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(parser)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--sequences", type=int, default=32)
    parser.add_argument("--backward", action="store_true", help="the gradients")
    parser.add_argument("--masks", nargs="+", choices=MASKS, default=MASKS)
    parser.add_argument("--spreads", nargs="+", choices=SPREADS, default=SPREADS)
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    library = tilewright_c.Library(arguments.library)
    measure.print_versions(library)
    print(f"{'lengths mask':>15} {'ragged us':>9} {'fixed us':>9} {'longest':>7} {'fixed':>6} "
          f"{'TFLOP/s':>8} {'fixed':>6} {'ratio':>6} {'10%..90%':>13} {'error':>9} {'LSE':>9}")
    ratios, wrong = {}, []
    for spread in arguments.spreads:
        lengths = lengths_of(spread, arguments.sequences, random.Random(arguments.seed))
        for mask in arguments.masks:
            causal = mask == "causal"
            name = f"{spread} {mask}"
            pairs, scale, length, error, lse_error, good = run_row(library, arguments, lengths,
                                                                   causal)
            work = 1e-12 * work_of(lengths, causal) * (2.5 if arguments.backward else 1)
            ratios[name] = pairs.ratio * scale
            print(f"{name:>15} {pairs.ours * 1e6:9.1f} {pairs.peer * 1e6:9.1f} {max(lengths):7} "
                  f"{length:6} {work / pairs.ours:8.1f} {work / scale / pairs.peer:6.1f} "
                  f"{ratios[name]:6.3f} {pairs.low * scale:6.3f}..{pairs.high * scale:5.3f} "
                  f"{error:9.2e} {lse_error:9.2e}", flush=True)
            if not good:
                wrong.append(name)
    print(f"device: {measure.device_state()}")
    worst = min(ratios, key=ratios.get)
    print(f"worst row {worst}: {ratios[worst]:.3f}")
    if wrong:
        print(f"wrong results: {', '.join(wrong)}")
    print(f"geomean ratio {measure.geometric_mean(ratios.values()):.3f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Attention over ranks beside attention alone on a rank's share, and NCCL with FlashAttention-3.

    bench/gpu_attention_ranks.py --library build/release/lib/libtilewright.so
    bench/gpu_attention_ranks.py --gpus 4 --no-peers 1x16384x32/8
    bench/gpu_attention_ranks.py --gradients
    bench/gpu_attention_ranks.py --ring --no-peers
    bench/gpu_attention_ranks.py --gradients 8192,8192,8192,8192x32/8

A row is batch x length x heads/kv_heads, of all ranks together, with dim 128, or lengths of packed
sequences, with commas between them, x heads/kv_heads. Each GPU has a process. `alone` is the faster
of ours and FlashAttention-3 on so many heads as there are for a rank, of whole sequences, on all
GPUs at once: the same arithmetic, and nothing crosses the link. `in turn` gathers K and V by NCCL
and then attends; `ring` sends them around under the attention. Packed rows have neither. Causal rows have zig-zag shards. All have tensors of the same sizes that are allocated before, and
many runs follow each other. `error` is that of eight rows of each rank against float64.
With --gradients all is the backward pass, which has no peers over ranks. With --ring ours is in a
ring too.
"""

import argparse
import sys

import torch

import measure
import tilewright_c
from distributed_ranks import Ranks, medians, text_of

SIZES = "1x16384x32/8 2x8192x64/8 1x65536x32/8".split()
DIM = 128


def row_of(text, causal, arguments):
    """What each rank makes of it, and the products of rows and keys that it has for each head."""
    *sizes, heads = text.split("x")
    heads, kv_heads = map(int, heads.split("/"))
    packed = len(sizes) == 1
    lengths = tuple(map(int, sizes[0].split(","))) if packed else None
    batch, length = (1, 0) if packed else map(int, sizes)
    operation = ("ring" if arguments.ring else "sequence_parallel") + \
        ("_varlen" if packed else "") + "_attention" + \
        ("_backward" if arguments.gradients else "")
    pairs = sum(each**2 for each in lengths) if packed else batch * length**2
    return (operation, *([lengths] if packed else [batch, length]), heads, kv_heads, DIM,
            causal), packed, heads * pairs


def measure_row(ranks, text, causal, arguments, variants):
    """The best ratio to attention alone, and whether a result was wrong."""
    row, packed, pairs = row_of(text, causal, arguments)
    checked = {options: ranks.check(row, options, arguments.repeats) for options in variants}
    # Two products of heads x length^2 x dim, or five, half of it under the mask.
    products = (5 if arguments.gradients else 2) * (0.5 if causal else 1)
    operations = 2 * products * pairs * DIM
    alone = ("ours alone",) if arguments.no_peers else ("ours alone", "FA3 alone")
    peers = ("collective", "in turn", "ring")
    if arguments.no_peers or arguments.gradients or packed:
        peers = ()
    times = medians(ranks, row, [*alone, *variants, *peers],
                    max(3, min(40, int(6e13 / operations))), arguments.rounds)
    bound = min(times[name] for name in alone if isinstance(times[name], float))
    best, wrong = float("inf"), False
    for options, name in variants.items():
        if isinstance(times[options], str) or isinstance(checked[options], str):
            print(f"{text:>14} {name:>14} failed: {checked[options]}")
            wrong = True
            continue
        error, alike = checked[options]
        best, wrong = min(best, times[options] / bound), wrong or error > 6e-3 or not alike
        columns = [times.get(each) for each in ("ours alone", "FA3 alone", "collective", "in turn",
                                                "ring")]
        print(f"{text:>14} {'causal' if causal else 'full':>6} {name:>14} "
              f"{text_of(times[options])} {text_of(bound)} {times[options] / bound:6.3f} "
              + " ".join(map(text_of, columns)) + f" {error:9.2e} {'yes' if alike else 'NO'}",
              flush=True)
    for what, answer in times.items():
        if isinstance(answer, str):
            print(f"  {what}: {answer}")
    return best, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/release/lib/libtilewright.so")
    parser.add_argument("--gpus", type=int, default=torch.cuda.device_count())
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--ring", action="store_true")
    parser.add_argument("--schedules", nargs="+", help="of ours; else what is chosen")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5, help="runs whose bits are compared")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("sizes", nargs="*", default=SIZES)
    arguments = parser.parse_args()

    measure.print_versions(tilewright_c.Library(arguments.library))
    ranks = Ranks(arguments.gpus, arguments.library)
    variants = ({(("schedule", name),): name for name in arguments.schedules}
                if arguments.schedules else {(): "chosen"})
    print(f"times in us\n{'':>14} {'mask':>6} {'ours':>14} {'time':>9} {'alone':>9} {'ratio':>6} "
          f"{'ours al.':>9} {'FA3 al.':>9} {'gather':>9} {'in turn':>9} {'ring':>9} {'error':>9} "
          f"same bits")
    worst, wrong = 0, False
    for size in arguments.sizes:
        for causal in (False, True):
            ratio, bad = measure_row(ranks, size, causal, arguments, variants)
            worst, wrong = max(worst, ratio), wrong or bad
    ranks.end()
    print(f"device: {measure.device_state()}")
    print(f"worst ratio to attention alone {worst:.3f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

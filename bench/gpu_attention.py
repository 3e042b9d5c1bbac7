#!/usr/bin/env python3
"""attention_forward beside cuDNN (PyTorch's scaled_dot_product_attention), 16k tokens, hidden 2048.

    bench/gpu_attention.py --library build/release/lib/libtilewright.so [--dim 128] [--lengths 2048 ...]

`ratio` is cuDNN's time over ours. `to FA3` is that ratio times cuDNN's time over FlashAttention-3's,
which FA3_TFLOPS and CUDNN_TFLOPS give: FlashAttention-3 itself is not needed here.
"""

import argparse
import math
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import measure
import tilewright_c

TOKENS = 16384
HIDDEN = 2048
LENGTHS = (2048, 4096, 8192, 16384)
MASKS = ("full", "causal")

# Forward, bf16, by (dim, mask): FlashAttention-3 and cuDNN 9.19, alternating in one process.
# Measured on one H200, 2026-11. In the order of LENGTHS.
FA3_TFLOPS = {
    (64, "full"): (498, 528, 579, 576),
    (64, "causal"): (419, 482, 548, 572),
    (128, "full"): (690, 726, 747, 747),
    (128, "causal"): (606, 692, 734, 757),
}
CUDNN_TFLOPS = {
    (64, "full"): (463, 480, 487, 475),
    (64, "causal"): (390, 430, 456, 469),
    (128, "full"): (649, 675, 685, 686),
    (128, "causal"): (506, 578, 618, 640),
}


def cudnn_over_fa3(dim, mask, length):
    """Speed of cuDNN relative to FlashAttention-3; None for a length that was not measured."""
    if (dim, mask) not in FA3_TFLOPS or length not in LENGTHS:
        return None
    index = LENGTHS.index(length)
    return CUDNN_TFLOPS[dim, mask][index] / FA3_TFLOPS[dim, mask][index]


def reference_of(q, k, v, causal):
    """In float64, a head and some rows at a time: O {batch, length, heads, dim} and LSE."""
    batch, length, heads, dim = q.shape
    output = torch.empty(q.shape, device="cuda", dtype=torch.float64)
    lse = torch.empty(batch, heads, length, device="cuda", dtype=torch.float64)
    rows = min(length, 4096)
    columns = torch.arange(length, device="cuda")
    for b in range(batch):
        for h in range(heads):
            keys, values = k[b, :, h].double(), v[b, :, h].double()
            for start in range(0, length, rows):
                part = slice(start, start + rows)
                scores = q[b, part, h].double() @ keys.T / math.sqrt(dim)
                if causal:
                    hidden = columns[None, :] > columns[part, None]
                    scores.masked_fill_(hidden, -math.inf)
                lse[b, h, part] = torch.logsumexp(scores, dim=1)
                output[b, part, h] = torch.softmax(scores, dim=1) @ values
    return output, lse


def run_row(kernel, dim, length, causal, rounds):
    shape = (TOKENS // length, length, HIDDEN // dim, dim)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    output = torch.empty_like(q)
    lse = torch.empty(shape[0], shape[2], length, device="cuda", dtype=torch.float32)
    ours = kernel.bind(q, k, v, output, lse)
    heads_first = [tensor.transpose(1, 2) for tensor in (q, k, v)]

    def peer():
        return torch.nn.functional.scaled_dot_product_attention(*heads_first, is_causal=causal)

    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        measure.poison([output, lse])
        ours()
        peer_output = peer().transpose(1, 2)
        torch.cuda.synchronize()
        reference, reference_lse = reference_of(q, k, v, causal)
        error = measure.relative_rms(output, reference)
        peer_error = measure.relative_rms(peer_output, reference)
        lse_error = measure.relative_rms(lse, reference_lse)
        del reference, reference_lse, peer_output
        alike = measure.runs_alike(ours, [output, lse])
        pairs = measure.time_pairs(ours, peer, rounds)
    good = error <= 1.1 * peer_error and lse_error <= 1e-5 and alike
    return pairs, error, peer_error, alike, good


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(parser)
    parser.add_argument("--dim", type=int, choices=(64, 128), default=128)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--masks", nargs="+", choices=MASKS, default=MASKS)
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    library = tilewright_c.Library(arguments.library)
    heads = HIDDEN // arguments.dim
    measure.print_versions(library)
    print(f"{'mask length':>14} {'ours us':>9} {'cuDNN us':>9} {'TFLOP/s':>8} {'cuDNN':>8} {'ratio':>6} "
          f"{'10%..90%':>13} {'to FA3':>6} {'error':>9} {'cuDNN':>9}  same bits")
    to_peer, to_fa3, wrong = {}, {}, []
    for mask in arguments.masks:
        causal = mask == "causal"
        kernel = library.kernel("attention_forward", heads=heads, dim=arguments.dim, causal=causal,
                                **measure.schedule_of(arguments))
        for length in arguments.lengths:
            name = f"{mask} {length}"
            pairs, error, peer_error, alike, good = run_row(kernel, arguments.dim, length, causal,
                                                            arguments.rounds)
            work = 4e-12 * TOKENS * length * HIDDEN * (0.5 if causal else 1)
            factor = cudnn_over_fa3(arguments.dim, mask, length)
            to_peer[name] = pairs.ratio
            if factor is not None:
                to_fa3[name] = pairs.ratio * factor
            print(f"{name:>14} {pairs.ours * 1e6:9.1f} {pairs.peer * 1e6:9.1f} "
                  f"{work / pairs.ours:8.1f} {work / pairs.peer:8.1f} {pairs.ratio:6.3f} "
                  f"{pairs.low:6.3f}..{pairs.high:5.3f} {to_fa3.get(name, math.nan):6.3f} "
                  f"{error:9.2e} {peer_error:9.2e}  {'yes' if alike else 'NO'}", flush=True)
            if not good:
                wrong.append(name)
    print(f"device: {measure.device_state()}")
    for mask in arguments.masks:
        rows = [ratio for name, ratio in to_peer.items() if name.startswith(mask)]
        fa3_rows = [ratio for name, ratio in to_fa3.items() if name.startswith(mask)]
        text = f"{mask}: {measure.geometric_mean(rows):.3f} of cuDNN's speed"
        if fa3_rows:
            text += f", {measure.geometric_mean(fa3_rows):.3f} of FlashAttention-3's"
        print(text)
    ratios = to_fa3 or to_peer
    worst = min(ratios, key=ratios.get)
    print(f"worst row {worst}: {ratios[worst]:.3f}")
    if wrong:
        print(f"wrong results: {', '.join(wrong)}")
    # To FlashAttention-3 where its speed is known, else to cuDNN.
    print(f"geomean ratio {measure.geometric_mean(ratios.values()):.3f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

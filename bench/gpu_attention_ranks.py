#!/usr/bin/env python3
"""Attention over ranks beside attention alone on a rank's share, and NCCL with FlashAttention-3.

    bench/gpu_attention_ranks.py --library build/release/lib/libtilewright.so
    bench/gpu_attention_ranks.py --no-peers 1x16384x32/8
    bench/gpu_attention_ranks.py --gradients

A row is batch x length x heads/kv_heads, of all ranks together, with dim 128. `alone` is the faster
of ours and FlashAttention-3 on so many heads as there are for a rank, of whole sequences, on all
GPUs at once: the same arithmetic, and nothing crosses the link. `in turn` gathers K and V by NCCL
and then attends; `ring` sends them around under the attention. Causal rows have zig-zag shards. All
have tensors of the same sizes that are allocated before, and many runs follow each other. `error`
is that of eight rows of each rank against float64. With `--gradients` it is the backward pass, alone
beside attention_backward; `error` is that against attention_backward of the whole on one GPU.
"""

import argparse
import statistics
import sys

import torch

import measure
import tilewright_c
from attention_peers import attention
from distributed_peers import ATTENTION, Peers
from gpu_distributed import seconds_on_gpus

SIZES = "1x16384x32/8 2x8192x64/8 1x65536x32/8".split()
DIM = 128


def zig_zag(whole, ranks):
    """Each rank's rows of axis 1."""
    pieces = whole.chunk(2 * ranks, 1)
    return [torch.cat((pieces[rank], pieces[2 * ranks - 1 - rank]), 1) for rank in range(ranks)]


class Row:
    operation, share_of_work = ATTENTION, 1

    def __init__(self, library, text, causal, gpus):
        batch, length, heads = text.split("x")
        self.batch, self.length = int(batch), int(length)
        self.heads, self.kv_heads = map(int, heads.split("/"))
        self.causal, self.gpus, self.text = causal, gpus, text
        whole = [torch.randn(self.batch, self.length, heads, DIM, device=0, dtype=torch.bfloat16)
                 for heads in (self.heads, self.kv_heads, self.kv_heads)]
        divide = zig_zag if causal else (lambda tensor, ranks: tensor.chunk(ranks, 1))
        self.divide = divide
        self.inputs = [[shard.to(gpu).contiguous() for shard in shards] for gpu, shards in
                       enumerate(zip(*(divide(each, gpus) for each in whole)))]
        self.outputs = [[torch.empty_like(q), torch.empty(self.batch, self.heads, q.shape[1],
                                                          device=q.device)]
                        for q, _, _ in self.inputs]
        self.prepare(library, whole)
        # Two products of heads x length^2 x dim, half of it under the mask.
        operations = 4 * self.batch * self.heads * self.length**2 * DIM * (0.5 if causal else 1)
        self.runs = max(3, min(40, int(6e13 / operations / self.share_of_work)))

    def prepare(self, _, whole):
        """Of each rank some rows: where they are, and what they should be."""
        places = self.divide(torch.arange(self.length).reshape(1, -1), self.gpus)
        self.samples = []
        for gpu, place in enumerate(places):
            own = place[0]
            last = len(own) - 1
            rows = [0, last // 2, last // 2 + 1, last, *torch.randint(len(own), (4,)).tolist()]
            wanted = torch.stack([self.exact(whole, own[row].item()) for row in rows], 1)
            self.samples.append((rows, wanted.to(gpu)))

    def exact(self, whole, row):
        """Of one query in float64: {batch, heads, dim}."""
        q, k, v = whole
        end = row + 1 if self.causal else self.length
        group = self.heads // self.kv_heads
        queries = q[:, row].double().unflatten(1, (self.kv_heads, group)) * DIM**-0.5
        weights = torch.einsum("bkgd,bnkd->bkgn", queries, k[:, :end].double()).softmax(-1)
        return torch.einsum("bkgn,bnkd->bkgd", weights, v[:, :end].double()).flatten(1, 2)

    def synchronize(self):
        for gpu in range(self.gpus):
            torch.cuda.synchronize(gpu)

    def launch(self, library, options):
        kernel = library.kernel(self.operation, ranks=self.gpus, heads=self.heads, dim=DIM,
                                kv_heads=self.kv_heads, causal=self.causal,
                                shards="zig_zag" if self.causal else "contiguous", **options)
        return kernel.bind_on_gpus(*([*inputs, *outputs] for inputs, outputs in
                                     zip(self.inputs, self.outputs)))

    def error(self, outputs):
        return max(measure.relative_rms(own[0][:, rows], wanted)
                   for own, (rows, wanted) in zip(outputs, self.samples))

    def check(self, launch, repeats):
        """The worst error, and whether all runs have the same bits."""
        def bits():
            measure.poison([tensor for own in self.outputs for tensor in own])
            self.synchronize()
            launch()
            self.synchronize()
            return [tensor.clone() for own in self.outputs for tensor in own]

        first = bits()
        error = self.error(self.outputs)
        alike = all(torch.equal(a.view(torch.int16), b.view(torch.int16))
                    for _ in range(repeats) for a, b in zip(first, bits()))
        return error, alike

    def alone(self, library):
        """On a rank's share of the heads, on all GPUs at once: ours, and FlashAttention-3."""
        sides = []
        for gpu in range(self.gpus):
            with torch.cuda.device(gpu):
                kv_heads = max(self.kv_heads // self.gpus, 1)
                sides.append(self.alone_on(gpu, library, *(
                    torch.randn(self.batch, self.length, heads, DIM, device=gpu,
                                dtype=torch.bfloat16)
                    for heads in (self.heads // self.gpus, kv_heads, kv_heads))))

        def on_all(launches):
            def launch():
                for gpu, each in enumerate(launches):
                    with torch.cuda.device(gpu):
                        each()
            return launch

        ours, theirs = zip(*sides)
        return {"ours alone": on_all(ours), "FA3 alone": on_all(theirs)}

    def forward(self, library, q, k, v, gpu):
        """Ours of one GPU: the launch, O and LSE."""
        o, lse = torch.empty_like(q), torch.empty(self.batch, q.shape[2], self.length, device=gpu)
        kernel = library.kernel("attention_forward", heads=q.shape[2], kv_heads=k.shape[2],
                                dim=DIM, causal=self.causal)
        return kernel.bind(q, k, v, o, lse), o, lse

    def alone_on(self, gpu, library, q, k, v):
        return (self.forward(library, q, k, v, gpu)[0], lambda: attention(q, k, v, self.causal))


class GradientRow(Row):
    operation, share_of_work = ATTENTION + "_backward", 2.5

    def prepare(self, library, whole):
        """What the forward pass gave, and the gradients that one GPU makes of the whole."""
        forward, o, lse = self.forward(library, *whole, 0)
        forward()
        d_o = torch.randn_like(o)
        backward, gradients = self.backward(library, *whole, o, lse, d_o)
        backward()
        torch.cuda.synchronize()
        sums = (each.transpose(1, 2).contiguous() for each in
                self.divide(lse.transpose(1, 2), self.gpus))
        more = zip(self.divide(o, self.gpus), sums, self.divide(d_o, self.gpus))
        for gpu, each in enumerate(more):
            self.inputs[gpu] += [tensor.to(gpu).contiguous() for tensor in each]
        self.outputs = [[torch.empty_like(tensor) for tensor in own[:3]] for own in self.inputs]
        self.wanted = [[tensor.to(gpu) for tensor in of_rank] for gpu, of_rank in
                       enumerate(zip(*(self.divide(each, self.gpus) for each in gradients)))]

    def backward(self, library, q, k, v, o, lse, d_o):
        kernel = library.kernel("attention_backward", heads=q.shape[2], kv_heads=k.shape[2],
                                dim=DIM, causal=self.causal)
        gradients = [torch.empty_like(tensor) for tensor in (q, k, v)]
        return kernel.bind(q, k, v, o, lse, d_o, *gradients), gradients

    def error(self, outputs):
        return max(measure.relative_rms(got, wanted.double()) for own, of_rank in
                   zip(outputs, self.wanted) for got, wanted in zip(own, of_rank))

    def alone_on(self, gpu, library, q, k, v):
        forward, o, lse = self.forward(library, q, k, v, gpu)
        forward()
        d_o = torch.randn_like(o)
        inputs = [tensor.detach().requires_grad_() for tensor in (q, k, v)]
        output = attention(*inputs, self.causal)[0]

        def theirs():
            torch.autograd.grad(output, inputs, d_o, retain_graph=True)

        return self.backward(library, q, k, v, o, lse, d_o)[0], theirs


def text_of(seconds):
    return f"{seconds * 1e6:9.1f}" if isinstance(seconds, float) else f"{'none':>9}"


def measure_row(row, library, arguments, peers, variants):
    launches = {name: row.launch(library, options) for name, options in variants.items()}
    checked = {name: row.check(launch, arguments.repeats) for name, launch in launches.items()}
    times, all_of_ours = {}, {**row.alone(library), **launches}
    for _ in range(arguments.rounds):
        for name, launch in all_of_ours.items():
            seconds_on_gpus(launch, 1, row.gpus)
            times.setdefault(name, []).append(seconds_on_gpus(launch, row.runs, row.gpus))
        wanted = (ATTENTION, row.batch, row.length, row.heads, row.kv_heads, DIM, row.causal)
        for what in ("collective", "in turn", "ring") if peers else ():
            times.setdefault(what, []).append(peers.seconds(wanted, what, row.runs))
    medians = {name: statistics.median(each) if not isinstance(each[0], str) else each[0]
               for name, each in times.items()}
    alone = min(medians["ours alone"], medians["FA3 alone"])
    ratios = []
    for name in launches:
        error, alike = checked[name]
        ratios.append(medians[name] / alone)
        print(f"{row.text:>14} {'causal' if row.causal else 'full':>6} {name:>14} "
              f"{text_of(medians[name])} {text_of(alone)} {ratios[-1]:6.3f} "
              f"{text_of(medians['ours alone'])} {text_of(medians['FA3 alone'])} "
              f"{text_of(medians.get('collective'))} {text_of(medians.get('in turn'))} "
              f"{text_of(medians.get('ring'))} {error:9.2e} {'yes' if alike else 'NO'}", flush=True)
    for what, answer in medians.items():
        if isinstance(answer, str):
            print(f"  {what}: {answer}")
    return min(ratios), any(error > 6e-3 or not alike for error, alike in checked.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/release/lib/libtilewright.so")
    parser.add_argument("--gpus", type=int, default=torch.cuda.device_count())
    parser.add_argument("--gradients", action="store_true", help="the backward pass")
    parser.add_argument("--schedules", nargs="+", help="of ours; else what is chosen")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5, help="runs whose bits are compared")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("sizes", nargs="*", default=SIZES)
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    library = tilewright_c.Library(arguments.library)
    measure.print_versions(library)
    peers = None if arguments.no_peers or arguments.gradients else Peers(arguments.gpus)
    variants = ({name: {"schedule": name} for name in arguments.schedules}
                if arguments.schedules else {"chosen": {}})
    print(f"times in us\n{'':>14} {'mask':>6} {'ours':>14} {'time':>9} {'alone':>9} {'ratio':>6} "
          f"{'ours al.':>9} {'FA3 al.':>9} {'gather':>9} {'in turn':>9} {'ring':>9} {'error':>9} "
          f"same bits")
    worst, wrong = 0, False
    for size in arguments.sizes:
        for causal in (False, True):
            row = (GradientRow if arguments.gradients else Row)(library, size, causal,
                                                                arguments.gpus)
            ratio, bad = measure_row(row, library, arguments, peers, variants)
            worst, wrong = max(worst, ratio), wrong or bad
            del row
            torch.cuda.empty_cache()
    if peers:
        peers.end()
    print(f"device: {measure.device_state()}")
    print(f"worst ratio to attention alone {worst:.3f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""A model of Llama's shape under torch.compile, with our attention and with PyTorch's, on one GPU.

    bench/gpu_torch_model.py --library build/release/lib/libtilewright.so

Two layers, hidden size 4096, 32 heads on 8 of keys, an MLP of 14336, bf16, causal: forward and
backward of one sequence. All but attention is PyTorch's in every row. The gradients are compared
first; all run in the same rounds, each with a cold L2 cache. `x` is the other's time over ours, and
`share` what attention alone takes of the step. PyTorch's run in both layouts in which models call
them: tokens before heads, as ours, and heads first.
"""

import argparse
import functools
import os
import pathlib
import statistics
import sys

import torch
import torch._functorch.config
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import measure
import tilewright_c

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

HIDDEN, HEADS, KV_HEADS, DIM, MLP, LAYERS = 4096, 32, 8, 128, 14336, 2
OURS = "tilewright.torch"
PEERS = {"PyTorch, flash": (SDPBackend.FLASH_ATTENTION, "flash_fwd"),
         "PyTorch, cuDNN": (SDPBackend.CUDNN_ATTENTION, "cudnn")}
SAME = 2e-2  # of gradients behind two layers that round to bf16


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        linear = functools.partial(torch.nn.Linear, bias=False)
        self.norms = torch.nn.ModuleList(torch.nn.RMSNorm(HIDDEN, eps=1e-5) for _ in range(2))
        self.q, self.o = linear(HIDDEN, HEADS * DIM), linear(HEADS * DIM, HIDDEN)
        self.k, self.v = (linear(HIDDEN, KV_HEADS * DIM) for _ in range(2))
        self.gate, self.up = (linear(HIDDEN, MLP) for _ in range(2))
        self.down = linear(MLP, HIDDEN)

    def forward(self, x, cos, sin, attend, heads_first):
        y = self.norms[0](x)
        q, k, v = (each(y).unflatten(-1, (-1, DIM)) for each in (self.q, self.k, self.v))
        if heads_first:
            q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        else:
            cos, sin = cos[:, None], sin[:, None]
        out = attend(rotated(q, cos, sin), rotated(k, cos, sin), v)
        x = x + self.o((out.transpose(1, 2) if heads_first else out).flatten(-2))
        y = self.norms[1](x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


def rotated(x, cos, sin):
    left, right = x.chunk(2, -1)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)


def by_pytorch(backend):
    """Two functions, of heads first and of tokens first. They are this backend's alone: a compiled
    graph is told from others by the functions that it calls, and not by what was enabled then."""
    def heads_first(q, k, v):
        with sdpa_kernel(backend):
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                           enable_gqa=True)

    def tokens_first(q, k, v):
        return heads_first(*(t.transpose(1, 2) for t in (q, k, v))).transpose(1, 2)

    return heads_first, tokens_first


def ways():
    """How each attends, whether the heads stand before the tokens while positions are turned in,
    and a part of the name of its kernels."""
    from tilewright.torch import attention

    found = {OURS: (lambda q, k, v: attention(q, k, v, causal=True), False, "attention_forward")}
    for name, (backend, kernel) in PEERS.items():
        heads_first, tokens_first = by_pytorch(backend)
        found[name] = (tokens_first, False, kernel)
        found[f"{name}, heads first"] = (heads_first, True, kernel)
    return found


def step_of(layers, way, x, cos, sin, d_out):
    attend, heads_first, _ = way

    def model(x):
        for layer in layers:
            x = layer(x, cos, sin, attend, heads_first)
        return x

    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=False)
    wanted = [x, *layers.parameters()]

    def step():
        out = compiled(x)
        return (out, *torch.autograd.grad(out, wanted, d_out))

    return step


def attention_alone(way, length):
    attend, heads_first, _ = way
    given = [torch.randn(1, length, heads, DIM, device="cuda", dtype=torch.bfloat16)
             for heads in (HEADS, KV_HEADS, KV_HEADS)]
    if heads_first:
        given = [each.transpose(1, 2) for each in given]
    for each in given:
        each.requires_grad_()
    d_out = torch.randn_like(given[0])

    return lambda: torch.autograd.grad(attend(*given), given, d_out)


def require_kernel(name, step, kernel):
    """Whether the step runs what it is called by."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    if not any(kernel in event.key for event in profile.key_averages()):
        sys.exit(f"{name} runs no kernel of {kernel}")


def print_length(layers, length, arguments):
    x = torch.randn(1, length, HIDDEN, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    d_out = torch.randn_like(x)
    angles = torch.outer(torch.arange(length), 500000.0 ** -(torch.arange(DIM // 2) / (DIM // 2)))
    cos, sin = (f(angles).to("cuda", torch.bfloat16) for f in (torch.cos, torch.sin))
    steps, alone, wanted = {}, {}, None
    for name, way in ways().items():
        step = step_of(layers, way, x, cos, sin, d_out)
        try:
            results = step()
        except RuntimeError as error:
            print(f"  {name:28} cannot: {str(error).splitlines()[0]}")
            continue
        wanted = wanted or results
        errors = [measure.relative_rms(a, b.double()) for a, b in zip(results, wanted)]
        if not max(errors) <= SAME:
            sys.exit(f"{name} and ours differ by {max(errors):.1e}, and {SAME:.0e} is allowed")
        require_kernel(name, step, way[-1])
        steps[name], alone[name] = step, attention_alone(way, length)
        del results
    del wanted
    seconds = measure.time_rounds(steps, arguments.rounds)
    of_attention = measure.time_rounds(alone, arguments.rounds)
    print(f"\nforward and backward of {LAYERS} layers, {length} tokens")
    for name in steps:
        ratios = sorted(b / a for a, b in zip(seconds[OURS], seconds[name]))
        whole, part = (statistics.median(each[name]) for each in (seconds, of_attention))
        print(f"  {name:28} {whole * 1e3:8.3f} ms   x {statistics.median(ratios):.3f} "
              f"({ratios[0]:.3f}..{ratios[-1]:.3f})   share {LAYERS * part / whole:.3f}",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(parser)
    parser.add_argument("--lengths", type=int, nargs="+", default=[4096, 16384])
    arguments = parser.parse_args()
    os.environ["TILEWRIGHT_LIBRARY"] = str(pathlib.Path(arguments.library).resolve())
    # Its keys do not tell which of PyTorch's kernels were enabled.
    torch._functorch.config.enable_autograd_cache = False
    torch.manual_seed(arguments.seed)
    measure.print_versions(tilewright_c.Library(arguments.library))
    layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS)).to("cuda", torch.bfloat16)
    for length in arguments.lengths:
        print_length(layers, length, arguments)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""tilewright.torch beside FlashAttention-3 and PyTorch: a training step, and what a call costs.

    bench/gpu_torch.py --library build/release/lib/libtilewright.so --fa3

The step is attention forward and backward through autograd: 4 sequences of 4096, 16 heads of 128,
causal, bf16. All run in the same rounds, each with a cold L2 cache; `x` is the peer's time over
ours. A call's cost is the host's time of one, of a single query, whose kernel takes less than that:
the least of several rounds of 200 calls. `launch` is that of the C interface with ready arguments:
what stands above it is Python's and PyTorch's. `--costs` prints nothing else.

The first call of attention and of its gradient is that of a new process which has imported PyTorch,
and used the GPU: with an empty cache, and with the one that this filled.
"""

import argparse
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch

import measure
import tilewright_c

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "python"
sys.path.insert(0, str(PACKAGE))

OURS, FA3, SDPA = "tilewright.torch", "FlashAttention-3", "PyTorch SDPA"
SAME = 1e-2  # of two implementations that round to bf16


def implementations(arguments):
    from tilewright.torch import attention

    def sdpa(q, k, v):
        out = torch.nn.functional.scaled_dot_product_attention(
            *(t.transpose(1, 2) for t in (q, k, v)), is_causal=q.shape[1] > 1)
        return out.transpose(1, 2)

    found = {OURS: lambda q, k, v: attention(q, k, v, causal=True)}
    if arguments.fa3:
        import flash_attn_interface

        def fa3(q, k, v):
            out = flash_attn_interface.flash_attn_func(q, k, v, causal=True)
            return out[0] if isinstance(out, tuple) else out

        found[FA3] = fa3
    found[SDPA] = sdpa
    return found


def random_tensors(batch, queries, keys, heads, dim, needs_gradients):
    return [torch.randn(batch, length, heads, dim, device="cuda", dtype=torch.bfloat16,
                        requires_grad=needs_gradients) for length in (queries, keys, keys)]


def print_steps(run, arguments):
    inputs = random_tensors(4, 4096, 4096, 16, 128, True)
    d_out = torch.randn_like(inputs[0])

    def step(attend):
        out = attend(*inputs)
        return (out, *torch.autograd.grad(out, inputs, d_out))

    launches = {name: lambda attend=attend: step(attend) for name, attend in run.items()}
    results = {name: launch() for name, launch in launches.items()}
    for name in run:
        errors = [measure.relative_rms(a, b.double())
                  for a, b in zip(results[OURS], results[name])]
        if not max(errors) <= SAME:
            sys.exit(f"{name} and ours differ by {max(errors):.1e}, and {SAME:.0e} is allowed")
    del results
    seconds = measure.time_rounds(launches, arguments.rounds)
    print("\nforward and backward, 4 x 4096, 16 heads, d128 causal")
    for name in run:
        ratios = sorted(b / a for a, b in zip(seconds[OURS], seconds[name]))
        print(f"  {name:18} {statistics.median(seconds[name]) * 1e3:8.3f} ms   x "
              f"{statistics.median(ratios):.3f} ({ratios[0]:.3f}..{ratios[-1]:.3f})")


def host_microseconds(call, rounds=20, calls=200):
    least = math.inf
    for _ in range(rounds):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(calls):
            call()
        least = min(least, (time.perf_counter() - started) / calls)
    return least * 1e6


def print_cost(name, *calls):
    print(f"  {name:28} " + " ".join(f"{host_microseconds(call):7.1f}" for call in calls))


def print_costs(run, arguments):
    q, k, v = random_tensors(1, 1, 64, 8, 128, False)
    out, lse = torch.empty_like(q), torch.empty(1, 8, 1, device="cuda")
    library = tilewright_c.Library(arguments.library)
    kernel = library.kernel("attention_forward", heads=8, kv_heads=8, dim=128, dim_v=128,
                            causal=True)
    print("\nhost time of a call with one query, us, without gradients and with them")
    print_cost("launch", kernel.bind(q, k, v, out, lse))
    graded = [t.clone().requires_grad_() for t in (q, k, v)]
    for name, attend in run.items():
        print_cost(name, lambda a=attend: a(q, k, v), lambda a=attend: a(*graded))
    print_paged_costs(library)


def print_paged_costs(library):
    """Of decoding from pages."""
    from tilewright.torch import attention_paged, attention_paged_plan
    from tilewright.torch.flash_attn import flash_attn_with_kvcache

    batch, heads, kv_heads, page = 4, 32, 8, 16
    q, *_ = random_tensors(batch, 1, 1, heads, 128, False)
    k, v = (torch.randn(64, page, kv_heads, 128, device="cuda", dtype=q.dtype) for _ in range(2))
    table = torch.arange(batch * 4, dtype=torch.int32, device="cuda").view(batch, 4)
    lengths = torch.full((batch,), 60, dtype=torch.int32, device="cuda")
    offsets = torch.arange(batch + 1, dtype=torch.int32, device="cuda")
    plan = attention_paged_plan(lengths, heads=heads, kv_heads=kv_heads)
    kernel = library.kernel("attention_paged", heads=heads, kv_heads=kv_heads, dim=128, dim_v=128,
                            page=page, planned=True)
    out, lse = torch.empty_like(q), torch.empty(batch, heads, device="cuda")
    bound = kernel.bind(q[:, 0], offsets, lengths, table, k, v, out[:, 0], lse, plan)
    bound()
    if not torch.equal(attention_paged(q, k, v, table, lengths, plan=plan), out):
        sys.exit("attention_paged and its kernel differ")
    print("host time of a call with a query of each of four sequences in pages, us")
    print_cost("launch by a plan", bound)
    print_cost("attention_paged by a plan",
               lambda: attention_paged(q, k, v, table, lengths, plan=plan))
    print_cost("attention_paged", lambda: attention_paged(q, k, v, table, lengths))
    print_cost("flash_attn_with_kvcache", lambda: flash_attn_with_kvcache(
        q, k, v, cache_seqlens=lengths, block_table=table, causal=True))


FIRST_CALL = """
import time, torch
q, k, v = (torch.randn(1, 4096, heads, 128, device="cuda", dtype=torch.bfloat16,
                       requires_grad=True) for heads in (32, 8, 8))
torch.autograd.grad(q.square(), q, torch.ones_like(q))  # imports a second's worth of PyTorch
torch.cuda.synchronize()
def seconds(call):
    started = time.perf_counter()
    result = call()
    torch.cuda.synchronize()
    return time.perf_counter() - started, result
imported, attention = seconds(lambda: __import__("tilewright.torch").torch.attention)
forward, out = seconds(lambda: attention(q, k, v, causal=True))
backward, _ = seconds(lambda: torch.autograd.grad(out, (q, k, v), out))
again, _ = seconds(lambda: attention(q, k, v, causal=True))
print(f"import {imported * 1e3:7.1f}   forward {forward * 1e3:9.1f}   backward "
      f"{backward * 1e3:9.1f}   second forward {again * 1e3:7.2f}")
"""


def print_first_calls():
    print("\nfirst calls of a process, 4096 tokens, 32 heads on 8, d128 causal, ms")
    with tempfile.TemporaryDirectory() as folder:
        for what in ("empty cache", "full cache", "full cache, again"):
            said = subprocess.run([sys.executable, "-c", FIRST_CALL], check=True, text=True,
                                  stdout=subprocess.PIPE, env={
                                      **os.environ, "TILEWRIGHT_CACHE": folder,
                                      "PYTHONPATH": str(PACKAGE)}).stdout
            print(f"  {what:18} {said.strip()}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(parser)
    parser.add_argument("--fa3", action="store_true", help="where Python finds its interface")
    parser.add_argument("--costs", action="store_true", help="what a call costs the host alone")
    arguments = parser.parse_args()
    os.environ["TILEWRIGHT_LIBRARY"] = str(pathlib.Path(arguments.library).resolve())
    torch.manual_seed(arguments.seed)
    measure.print_versions(tilewright_c.Library(arguments.library))
    run = implementations(arguments)
    if not arguments.costs:
        print_first_calls()
        print_steps(run, arguments)
    print_costs(run, arguments)


if __name__ == "__main__":
    main()

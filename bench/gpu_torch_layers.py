#!/usr/bin/env python3
"""tilewright.torch's functions of rows and linear layers beside PyTorch's own, on one GPU.

    bench/gpu_torch_layers.py --library build/release/lib/libtilewright.so

Each row is a forward pass, and each second one the backward pass behind it, through autograd, with
a cold L2 cache, all in the same rounds. `TB/s` counts each tensor that has to be read or written
once, `TFLOP/s` the products. `x` is PyTorch's time over ours. Results are compared first. With
`--variants` each schedule of the transposed products is timed, without autograd.
"""

import argparse
import os
import pathlib
import statistics
import sys

import torch
from torch.nn import functional

import measure
import tilewright_c

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

SAME = 1e-2  # of two implementations that round to bf16
ROWS = ((4096, 1024), (8192, 4096), (4096, 8192), (2048, 16384))
CLASSES = ((4096, 32000), (2048, 128256))
LAYERS = ((4096, 4096, 4096), (4096, 14336, 4096), (4096, 4096, 14336), (1024, 4096, 4096))


def normal(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


def rotated(x, cos, sin):
    left, right = x.chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None]
    return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)


def row_cases():
    """Name, our function, PyTorch's, its tensors, and the elements of a pass's traffic."""
    from tilewright import torch as ours

    for rows, columns in ROWS:
        size = f"{rows} x {columns}"
        x, w, b = normal(rows, columns), normal(columns), normal(columns)
        yield (f"rms_norm {size}", ours.rms_norm,
               lambda x, w: functional.rms_norm(x, w.shape, w, 1e-5), (x, w), 2 * x.numel())
        yield (f"layer_norm {size}", ours.layer_norm,
               lambda x, w, b: functional.layer_norm(x, w.shape, w, b), (x, w, b), 2 * x.numel())
        yield f"softmax {size}", ours.softmax, lambda x: x.softmax(-1), (x,), 2 * x.numel()
    for rows, classes in CLASSES:
        x, labels = normal(rows, classes), torch.randint(classes, (rows,), device="cuda")
        yield (f"cross_entropy {rows} x {classes}", lambda x, t=labels: ours.cross_entropy(x, t),
               lambda x, t=labels: functional.cross_entropy(x.float(), t), (x,), x.numel())
    x = normal(4, 4096, 32, 128)
    angles = torch.rand(4096, 64, device="cuda")
    cos, sin = angles.cos(), angles.sin()
    yield ("rotary 4 x 4096, 32 x 128", lambda x: ours.rotary(x, cos, sin),
           lambda x: rotated(x.float(), cos, sin).bfloat16(), (x,), 2 * x.numel())


def layer_cases():
    """The same, with floating operations in the place of traffic."""
    from tilewright import torch as ours

    for m, n, k in LAYERS:
        given = (normal(m, k), normal(n, k) / k ** 0.5, normal(n))
        yield (f"linear {m} x {n} x {k}", ours.linear, functional.linear, given, 2 * m * n * k)
        yield (f"linear, gelu {m} x {n} x {k}",
               lambda *t: ours.linear(*t, activation="gelu_tanh"),
               lambda *t: functional.gelu(functional.linear(*t), approximate="tanh"), given,
               2 * m * n * k)


def require_same(what, ours, theirs):
    for a, b in zip(ours, theirs):
        error = measure.relative_rms(a, b.double())
        if not error <= SAME:
            sys.exit(f"{what}: ours and PyTorch's differ by {error:.1e}, and {SAME:.0e} is allowed")


def print_row(what, launches, rounds, work, unit):
    seconds = measure.time_rounds(launches, rounds)
    ours, *_ = launches
    line = f"  {what:42}"
    for name in launches:
        ratio = statistics.median(b / a for a, b in zip(seconds[ours], seconds[name]))
        median = statistics.median(seconds[name])
        line += f"  {name} {median * 1e6:8.1f} us {work / median * 1e-12:7.2f} {unit}"
        line += "" if name == ours else f"  x {ratio:.3f}"
    print(line, flush=True)


def print_case(what, run, peer, given, work, unit, rounds):
    inputs = [t.clone().requires_grad_() for t in given]
    functions = {"ours": run, "PyTorch": peer}
    with torch.no_grad():
        forward = {name: (lambda f=f: f(*given)) for name, f in functions.items()}
        require_same(what, *[[f()] for f in forward.values()])
        print_row(what, forward, rounds, work, unit)
    outs = {name: f(*inputs) for name, f in functions.items()}
    d_out = torch.randn_like(outs["ours"])
    backward = {
        name: (lambda out=out: torch.autograd.grad(out, inputs, d_out.to(out.dtype),
                                                   retain_graph=True))
        for name, out in outs.items()}
    require_same(what, *[f() for f in backward.values()])
    # Of rows: the result's gradient, the input, and its gradient. Of a layer: two products.
    print_row(f"{what}, backward", backward, rounds, work * (1.5 if unit == "TB/s" else 2), unit)


def print_variants(library, rounds, variants):
    print("\nschedules of products of bf16 beside torch.matmul")
    for m, n, k in LAYERS:
        for name, a, b in (("gemm_nn", normal(m, k), normal(k, n)),
                           ("gemm_tn", normal(k, m), normal(k, n)),
                           ("gemm_tt", normal(k, m), normal(n, k))):
            left = a.t() if name[5] == "t" else a
            right = b.t() if name[6] == "t" else b
            c, wanted = normal(m, n), left @ right
            launches = {}
            for variant in variants:
                launches[variant] = library.kernel(name, schedule=variant).bind(a, b, c)
                c.fill_(float("nan"))
                launches[variant]()
                require_same(f"{name} {variant}", [c], [wanted])
            launches["torch"] = lambda x=left, y=right: torch.matmul(x, y)
            print_row(f"{name} {m} x {n} x {k}", launches, rounds, 2 * m * n * k, "TFLOP/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(parser)
    parser.add_argument("--only", default="", help="cases whose names have this")
    parser.add_argument("--variants", nargs="*", default=[])
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), metavar=("I", "N"),
                        help="every N-th case from number I on: parts fill one cache together")
    arguments = parser.parse_args()
    os.environ["TILEWRIGHT_LIBRARY"] = str(pathlib.Path(arguments.library).resolve())
    torch.manual_seed(arguments.seed)
    library = tilewright_c.Library(arguments.library)
    measure.print_versions(library)
    cases = [(*case, "TB/s") for case in row_cases()] + [(*case, "TFLOP/s")
                                                         for case in layer_cases()]
    first, step = arguments.part
    for what, run, peer, given, work, unit in cases[first::step]:
        if arguments.only in what:
            work = work * given[0].element_size() if unit == "TB/s" else work
            print_case(what, run, peer, given, work, unit, arguments.rounds)
    if arguments.variants:
        print_variants(library, arguments.rounds, arguments.variants[first::step])


if __name__ == "__main__":
    main()

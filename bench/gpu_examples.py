#!/usr/bin/env python3
"""The kernels of examples/ beside the sequences of PyTorch calls that they replace, bf16.

    bench/gpu_examples.py --libraries build/release/lib [--kernels fused_mlp ...]

Build with -DTILEWRIGHT_BENCHMARKS=ON: each example is then a library of its own. The sequences are
cuBLAS products with elementwise kernels between, on tensors laid out as suits them.
"""

import argparse
import ctypes
import math
import pathlib
import sys

import torch
import torch.nn.functional as F

import measure
import tilewright_c

BF16 = torch.bfloat16


class Example:
    """The kernel of one example, compiled for the current GPU at its first launch."""

    def __init__(self, folder, name):
        path = pathlib.Path(folder).resolve() / f"libexample_{name}.so"
        self.function = ctypes.CDLL(str(path)).example_launch
        self.function.argtypes = [ctypes.POINTER(tilewright_c._Tensor), ctypes.c_int32,
                                  ctypes.c_void_p]

    def bind(self, *tensors):
        arguments = tilewright_c.tensor_arguments(tensors)

        def launch(arguments=arguments, tensors=tensors):
            stream = torch.cuda.current_stream().cuda_stream
            status = self.function(arguments, len(tensors), stream)
            if status != 0:
                raise tilewright_c.TilewrightError(f"status {status}")

        return launch


def normal(*shape, scale=1.0, dtype=BF16):
    return (torch.randn(*shape, device="cuda", dtype=torch.float32) * scale).to(dtype)


# Each row: our launch, our output, the peer's function (returns its output in the same layout), the
# float64 reference, floating operations.


def linear_attention(example, batch, length):
    heads, dim, chunk = 16, 128, 128
    q, k, v = (normal(batch, length, heads, dim) for _ in range(3))
    o = torch.empty_like(q)
    chunks = (batch * heads, length // chunk, chunk, dim)
    # Heads first, as batched products like it.
    qc, kc, vc = (t.transpose(1, 2).contiguous().view(chunks) for t in (q, k, v))
    seen = torch.ones(chunk, chunk, device="cuda", dtype=torch.bool).tril()

    def peer():
        within = (qc @ kc.transpose(2, 3)).masked_fill(~seen, 0) @ vc
        states = kc.transpose(2, 3) @ vc
        before = states.float().cumsum(1).to(BF16)
        out = within
        out[:, 1:] += qc[:, 1:] @ before[:, :-1]
        return out.view(batch, heads, length, dim).transpose(1, 2)

    def reference():
        wanted = torch.empty(q.shape, device="cuda", dtype=torch.float64)
        for b in range(batch):
            for h in range(heads):
                scores = (q[b, :, h].double() @ k[b, :, h].double().T).tril_()
                wanted[b, :, h] = scores @ v[b, :, h].double()
        return wanted

    work = batch * heads * (length // chunk) * 2 * (2 * chunk * chunk * dim + 2 * chunk * dim * dim)
    return example.bind(q, k, v, o), o, peer, reference, work


def fused_mlp(example, rows, hidden):
    dim = 256
    x, up = normal(rows, dim), normal(hidden, dim, scale=dim**-0.5)
    down = normal(hidden, dim, scale=hidden**-0.5)
    y = torch.empty_like(x)

    def peer():
        return F.gelu(x @ up.T, approximate="tanh") @ down

    def reference():
        return F.gelu(x.double() @ up.double().T, approximate="tanh") @ down.double()

    return example.bind(x, up, down, y), y, peer, reference, 4 * rows * hidden * dim


def mla_decode(example, batch, heads, keys):
    q, kv = normal(batch, heads, 576), normal(batch, keys, 576)
    o = torch.empty(batch, heads, 512, device="cuda", dtype=BF16)
    scale = 192**-0.5

    def peer():
        scores = torch.bmm(q, kv.transpose(1, 2)) * scale
        return torch.bmm(torch.softmax(scores, 2), kv[:, :, :512])

    def reference():
        wanted = torch.empty(o.shape, device="cuda", dtype=torch.float64)
        for b in range(batch):
            rows = kv[b].double()
            wanted[b] = torch.softmax(q[b].double() @ rows.T * scale, 1) @ rows[:, :512]
        return wanted

    return example.bind(q, kv, o), o, peer, reference, 2 * batch * heads * keys * (576 + 512)


def alibi_sigmoid_attention(example, batch, length):
    heads, dim = 16, 128
    q, k, v = (normal(batch, length, heads, dim) for _ in range(3))
    slopes = torch.exp2(-8 / heads * torch.arange(1, heads + 1, device="cuda"))
    o = torch.empty_like(q)
    qh, kh, vh = (t.transpose(1, 2).contiguous() for t in (q, k, v))
    place = torch.arange(length, device="cuda")
    distance = place[None, :] - place[:, None]

    def biases(dtype):
        bias = slopes.to(dtype)[:, None, None] * distance - math.log(length)
        return bias.masked_fill_(distance > 0, -math.inf)

    bias = biases(torch.float32).to(BF16)

    def peer():
        scores = torch.matmul(qh, kh.transpose(2, 3)) * dim**-0.5 + bias
        return (torch.sigmoid(scores) @ vh).transpose(1, 2)

    def reference():
        wanted = torch.empty(q.shape, device="cuda", dtype=torch.float64)
        exact = biases(torch.float64)
        for b in range(batch):
            for h in range(heads):
                scores = q[b, :, h].double() @ k[b, :, h].double().T * dim**-0.5 + exact[h]
                wanted[b, :, h] = torch.sigmoid(scores) @ v[b, :, h].double()
        return wanted

    return example.bind(q, k, v, slopes, o), o, peer, reference, 2 * batch * heads * length**2 * dim


def layernorm_gemm(example, m, n, k):
    x = normal(m, k) * normal(m, 1).abs() + normal(m, 1)
    gain, bias = normal(k, dtype=torch.float32), normal(k, dtype=torch.float32)
    w = normal(n, k, scale=k**-0.5)
    y = torch.empty(m, n, device="cuda", dtype=BF16)
    gain16, bias16 = gain.to(BF16), bias.to(BF16)

    def peer():
        return F.layer_norm(x, (k,), gain16, bias16, 1e-5) @ w.T

    def reference():
        normalised = F.layer_norm(x.double(), (k,), gain.double(), bias.double(), 1e-5)
        return normalised @ w.double().T

    return example.bind(x, gain, bias, w, y), y, peer, reference, 2 * m * n * k


ROWS = {
    linear_attention: [(8, 4096), (16, 2048)],
    fused_mlp: [(16384, 1024), (32768, 4096)],
    mla_decode: [(128, 16, 4096), (128, 64, 4096), (64, 128, 8192)],
    alibi_sigmoid_attention: [(4, 4096), (1, 8192)],
    layernorm_gemm: [(8192, 4096, 1024), (8192, 4096, 4096)],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", default="build/release/lib",
                        help="the folder that has libexample_*.so")
    parser.add_argument("--rounds", type=int, default=20, help="pairs of runs for each row")
    parser.add_argument("--seed", type=int, default=0)
    names = [row.__name__ for row in ROWS]
    parser.add_argument("--kernels", nargs="+", choices=names, default=names)
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}")
    print(f"device: {measure.device_state()}")
    print(f"{'kernel':>24} {'sizes':>16} {'ours us':>9} {'peer us':>9} {'TFLOP/s':>8} {'peer':>8} "
          f"{'ratio':>6} {'10%..90%':>13} {'error':>9} {'peer':>9}  same bits")
    ratios, wrong = {}, []
    for row, sizes in ROWS.items():
        if row.__name__ not in arguments.kernels:
            continue
        example = Example(arguments.libraries, row.__name__)
        for size in sizes:
            name = f"{row.__name__} {' x '.join(map(str, size))}"
            try:
                ours, output, peer, reference, work = row(example, *size)
                measure.poison([output])
                ours()
                torch.cuda.synchronize()
                wanted = reference()
                error = measure.relative_rms(output, wanted)
                peer_error = measure.relative_rms(peer(), wanted)
                del wanted
                alike = measure.runs_alike(ours, [output])
                pairs = measure.time_pairs(ours, peer, arguments.rounds)
            except tilewright_c.TilewrightError as problem:
                print(f"{name}: {problem}", flush=True)
                wrong.append(name)
                continue
            print(f"{row.__name__:>24} {'x'.join(map(str, size)):>16} {pairs.ours * 1e6:9.1f} "
                  f"{pairs.peer * 1e6:9.1f} {work * 1e-12 / pairs.ours:8.1f} "
                  f"{work * 1e-12 / pairs.peer:8.1f} {pairs.ratio:6.3f} "
                  f"{pairs.low:6.3f}..{pairs.high:5.3f} {error:9.2e} {peer_error:9.2e}  "
                  f"{'yes' if alike else 'NO'}", flush=True)
            ratios[name] = pairs.ratio
            if not error <= 1.1 * peer_error or not alike:
                wrong.append(name)
            del ours, output, peer, reference
    print(f"device: {measure.device_state()}")
    if ratios:
        worst = min(ratios, key=ratios.get)
        print(f"worst row {worst}: {ratios[worst]:.3f}")
        print(f"geomean ratio {measure.geometric_mean(ratios.values()):.3f}")
    if wrong:
        print(f"wrong results: {', '.join(wrong)}")
    return 1 if wrong or not ratios else 0


if __name__ == "__main__":
    sys.exit(main())

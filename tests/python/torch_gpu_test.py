"""tilewright.torch on a GPU: results and gradients, streams, CUDA graphs, and compiled code."""

import threading
import unittest

import torch
import torch_reference as reference
from tilewright.torch import (
    attention,
    attention_paged,
    attention_paged_plan,
    cross_entropy,
    disable,
    enable,
    gemm,
    gemm_fp8,
    layer_norm,
    linear,
    rms_norm,
    rotary,
    scaled_dot_product_attention,
    softmax,
)
from tilewright.torch.flash_attn import flash_attn_with_kvcache
from torch.nn import functional
from torch_reference import ALLOWED, leaves, normal, opcheck, require_close, require_refusal

# Batch, queries, keys, heads, heads of the keys, dim, dim of the values.
CASES = {
    "plain": ((2, 300, 300, 4, 4, 128, 128), {}),
    "causal, shared heads": ((1, 257, 513, 8, 2, 128, 128), {"causal": True}),
    "window and cap": ((1, 300, 300, 2, 2, 64, 64), {"causal": True, "window": 77, "softcap": 3.0}),
    "scale, another dim": ((1, 130, 70, 2, 1, 96, 64), {"scale": 0.05}),
    "one row": ((3, 1, 500, 8, 8, 128, 128), {}),
    "no rows": ((1, 0, 5, 2, 2, 64, 64), {}),
}


def inputs_of(sizes, dtype=torch.bfloat16):
    batch, queries, keys, heads, kv_heads, dim, dim_v = sizes
    return leaves(*(t.cuda() for t in (
        normal(batch, queries, heads, dim, dtype=dtype),
        normal(batch, keys, kv_heads, dim, dtype=dtype, seed=1),
        normal(batch, keys, kv_heads, dim_v, dtype=dtype, seed=2))))


@unittest.skipUnless(torch.cuda.is_available(), "there is no GPU")
class Gpu(unittest.TestCase):
    def check(self, what, run, reference_run, inputs):
        exact = leaves(*(t.double() for t in inputs))
        ours, wanted = run(*inputs), reference_run(*exact)
        d_out = normal(*ours.shape, dtype=ours.dtype, seed=5).cuda()
        require_close(self, what, ours.detach(), wanted.detach(), ours.dtype)
        mine = torch.autograd.grad(ours, inputs, d_out, retain_graph=True)
        for i, (gradient, again, right) in enumerate(zip(
                mine, torch.autograd.grad(ours, inputs, d_out),
                torch.autograd.grad(wanted, exact, d_out.double()))):
            self.assertTrue(torch.equal(gradient, again), f"{what}: gradient {i} twice")
            coarser = max(gradient.dtype, ours.dtype, key=ALLOWED.get)
            require_close(self, f"{what}: gradient {i}", gradient / 8, right / 8, coarser)

    def test_attention(self):
        for what, (sizes, options) in CASES.items():
            for dtype in (torch.bfloat16, torch.float16):
                with self.subTest(what, dtype=dtype):
                    self.check(what, lambda *t, o=options: attention(*t, **o),
                               lambda *t, o=options: reference.attention(*t, **o)[0],
                               inputs_of(sizes, dtype))

    def test_sinks_and_packed(self):
        given = inputs_of((1, 300, 300, 4, 2, 64, 64))
        sinks = normal(4).cuda().requires_grad_()
        self.check("sinks", lambda q, k, v, s: attention(q, k, v, sinks=s, causal=True),
                   lambda q, k, v, s: reference.attention(q, k, v, sinks=s, causal=True)[0],
                   [*given, sinks])
        ends = [0, 70, 70, 75, 300]
        cu = torch.tensor(ends, dtype=torch.int32, device="cuda")
        self.check("packed", lambda *t: attention(*t, cu_seqlens=cu, causal=True),
                   lambda *t: reference.packed(*t, ends, ends, causal=True)[0],
                   leaves(*(t[0] for t in given)))

    def test_another_device_than_the_current_one(self):
        if torch.cuda.device_count() < 2:
            self.skipTest("there are no two GPUs")
        found = []
        for device in ("cuda:0", "cuda:1", "cuda:1"):  # the third call is like an earlier one
            q, k, v = leaves(*(t.detach().to(device) for t in inputs_of(
                (2, 200, 200, 4, 2, 128, 128))))
            weight = normal(4 * 128, dtype=torch.bfloat16).to(device)
            out = attention(q, k, v, causal=True)
            x = rms_norm(out.flatten(2), weight)
            y = gemm(x, normal(4 * 128, 64, dtype=torch.bfloat16, seed=3).to(device))
            gradients = torch.autograd.grad(y, (q, k, v), y.detach())
            with torch.no_grad():
                again = attention(q, k, v, causal=True)
            for each in (again, y, *gradients):
                self.assertEqual(each.device, torch.device(device))
            found.append([each.detach().cpu() for each in (again, y, *gradients)])
        self.assertEqual(torch.cuda.current_device(), 0)
        for other in found[1:]:
            for mine, wanted in zip(other, found[0]):
                self.assertTrue(torch.equal(mine, wanted))

    def test_strides(self):
        q, k, v = (t.detach() for t in inputs_of((2, 70, 90, 4, 2, 64, 64)))
        wanted = attention(q, k, v)
        wide = torch.zeros(2, 90, 2, 67, dtype=q.dtype, device="cuda")
        wide[..., 3:] = k  # rows that begin at no multiple of 16 bytes
        for what, form in (("heads first", k.transpose(1, 2).contiguous().transpose(1, 2)),
                           ("strided dim", k.transpose(1, 3).contiguous().transpose(1, 3)),
                           ("unaligned rows", wide[..., 3:])):
            self.assertTrue(torch.equal(attention(q, form, v), wanted), what)
        part = torch.empty(k.numel() + 1, dtype=q.dtype, device="cuda")[1:].view_as(k).copy_(k)
        self.assertTrue(torch.equal(attention(q, part, v), wanted), "an odd address")

    def test_gemm(self):
        a, b = (normal(*shape, dtype=torch.bfloat16).cuda() for shape in ((72, 256), (128, 256)))
        self.check("gemm", lambda x, y: gemm(x, y.t()), lambda x, y: x @ y.t(), leaves(a, b))

    def test_layers(self):
        """Every layout, and what stands behind a product."""
        x, w, bias, added = (normal(*shape, dtype=torch.bfloat16, seed=seed).cuda() for seed, shape
                             in enumerate(((200, 136), (264, 136), (264,), (200, 264))))
        for what, a, b in (("nt", x, w.t()), ("nn", x, w.t().contiguous()),
                           ("tn", x.t().contiguous().t(), w.t().contiguous()),
                           ("tt", x.t().contiguous().t(), w.t())):
            require_close(self, what, gemm(a, b), a.double() @ b.double(), torch.bfloat16)
        for activation, function in ((None, lambda z: z), ("gelu", functional.gelu)):
            self.check(f"linear, {activation}",
                       lambda *t, name=activation: linear(*t[:3], activation=name, residual=t[3]),
                       lambda *t, f=function: f(t[0] @ t[1].t() + t[2]) + t[3],
                       leaves(x, w / 12, bias, added))
        a, b = (t.to(torch.float8_e4m3fn) for t in (x[:, :128], w[:, :128]))
        one = torch.ones(1, device="cuda")
        require_close(self, "fp8", gemm_fp8(a, b.t(), one, 2 * one),
                      2 * a.double() @ b.double().t(), torch.bfloat16)

    def test_rows(self):
        for dtype, sizes in ((torch.bfloat16, ((70, 1000), (3, 4096), (2, 8192), (2, 20000))),
                             (torch.float16, ((70, 1000),)), (torch.float32, ((70, 1000),))):
            for rows, columns in sizes:
                x, w, b = (normal(*shape, dtype=dtype, seed=seed).cuda() for seed, shape
                           in enumerate(((rows, columns), (columns,), (columns,))))
                labels = torch.arange(rows, device="cuda") * 7
                labels[0] = -100
                with self.subTest(dtype=dtype, columns=columns):
                    self.check("rms_norm", rms_norm,
                               lambda x, w: functional.rms_norm(x, w.shape, w, 1e-5), leaves(x, w))
                    self.check("layer_norm", layer_norm,
                               lambda x, w, b: functional.layer_norm(x, w.shape, w, b),
                               leaves(x, w, b))
                    self.check("softmax", softmax, lambda x: x.softmax(-1), leaves(x))
                    self.check("cross_entropy", lambda x, t=labels: cross_entropy(x, t),
                               lambda x, t=labels: functional.cross_entropy(x, t), leaves(x))

    def test_rotary(self):
        x = normal(2, 9, 40, 96, dtype=torch.bfloat16).cuda()
        angles = torch.rand(9, 48, generator=torch.Generator().manual_seed(1)).cuda()
        wanted = torch.view_as_complex(x.double().unflatten(-1, (48, 2)))
        turns = torch.polar(torch.ones_like(angles).double(), angles.double())[:, None]
        wanted = torch.view_as_real(wanted * turns).flatten(-2)
        ours = rotary(x, angles.cos(), angles.sin(), interleaved=True)
        require_close(self, "neighbours", ours, wanted, torch.bfloat16)

        def halves(t):
            return torch.cat([t[..., ::2], t[..., 1::2]], -1)

        require_close(self, "halves", rotary(halves(x), angles.cos(), angles.sin()),
                      halves(wanted), torch.bfloat16)

    def test_opcheck(self):
        opcheck(
            torch.ops.tilewright.attention.default,
            (*inputs_of((2, 70, 90, 4, 2, 64, 64)), None, None, None, True, 0, 0.0, 0.0, 0, 0, ""),
            error=1e-2)
        a, b = leaves(*(normal(64, 64, dtype=torch.bfloat16, seed=s).cuda() for s in (0, 1)))
        opcheck(torch.ops.tilewright.gemm.default, (a, b, ""), error=1e-2)

    def test_a_cache(self):
        """Whole, and in pages; two new keys of each sequence join it."""
        dtype, lengths = torch.bfloat16, [300, 17, 128]
        q, new = (normal(3, 2, heads, 128, dtype=dtype).cuda() for heads in (8, 2))
        keys = normal(3, 320, 2, 128, dtype=dtype, seed=1).cuda()
        wanted = [reference.attention(q[b:b + 1], *[torch.cat(
            [keys[b:b + 1, :length], new[b:b + 1]], 1)] * 2, causal=True)[0]
            for b, length in enumerate(lengths)]
        seqlens = torch.tensor(lengths, dtype=torch.int32, device="cuda")
        table = torch.randperm(60).view(3, 20).int().cuda()
        pages = torch.empty(60, 16, 2, 128, dtype=dtype, device="cuda")
        pages[table.long()] = keys.view(3, 20, 16, 2, 128)
        for what, cache, options in (("whole", keys, {}), ("pages", pages, {"block_table": table})):
            out = flash_attn_with_kvcache(q, cache.clone(), cache.clone(), new, new,
                                          cache_seqlens=seqlens, causal=True, **options)
            require_close(self, what, out, torch.cat(wanted), dtype)

    def test_a_gradient_is_built_while_a_graph_is_captured(self):
        inputs, x = inputs_of((1, 64, 64, 2, 2, 64, 64)), torch.zeros(8, device="cuda")
        attention(*(tensor.detach() for tensor in inputs), scale=0.37)
        out, graph = attention(*inputs, scale=0.37), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for thread in threading.enumerate():
                if thread.name.startswith("tilewright builds"):
                    thread.join()
            x += 1
        graph.replay()
        self.assertEqual(x.tolist(), [1.0] * 8)
        torch.autograd.grad(out, inputs, out)

    def test_pytorchs_own_attention(self):
        enable()
        self.addCleanup(disable)
        pytorchs = torch.nn.functional.scaled_dot_product_attention
        for heads_first in (True, False):
            given = [t.detach().transpose(1, 2) for t in inputs_of((2, 130, 130, 4, 4, 64, 64))]
            inputs = leaves(*[t.contiguous() for t in given] if heads_first else given)
            self.assertTrue(torch.equal(pytorchs(*inputs, is_causal=True),
                                        scaled_dot_product_attention(*inputs, is_causal=True)))
            self.check("switched", lambda *t: pytorchs(*t, is_causal=True),
                       lambda *t: reference.attention(*(x.transpose(1, 2) for x in t), causal=True)[
                           0].transpose(1, 2), inputs)

    def test_runs_follow_the_current_stream(self):
        q, k, v = (t.detach() for t in inputs_of((1, 256, 256, 4, 4, 64, 64)))
        wanted = attention(q, k, v)
        late = torch.zeros_like(q)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        for _ in range(3):  # the first one goes the whole way
            with torch.cuda.stream(stream):
                late.zero_()
                torch.cuda._sleep(50_000_000)
                late.copy_(q)
                out = attention(late, k, v)
            stream.synchronize()
            self.assertTrue(torch.equal(out, wanted))

    def test_a_cuda_graph_of_a_plan_and_two_layers(self):
        """It is launched again for other lengths, which nobody on the host knows."""
        pages, page, most = 64, 16, 16
        lengths = torch.tensor([most * page, 7, 0, 100], dtype=torch.int32, device="cuda")
        table = torch.randperm(pages, device="cuda").int().view(4, most)
        layers = [[normal(*shape, dtype=torch.bfloat16, seed=seed).cuda() for seed, shape in (
            (i, (4, 1, 16, 128)), (i + 2, (pages, page, 4, 128)), (i + 4, (pages, page, 4, 128)))]
            for i in range(2)]

        def step():
            plan = attention_paged_plan(lengths, heads=16, kv_heads=4)
            return [attention_paged(*layer, table, lengths, plan=plan) for layer in layers]

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            captured = step()
        for seed in range(20):
            torch.manual_seed(seed)
            lengths.copy_(torch.randint(0, most * page + 1, (4,)))
            for out in captured:
                out.fill_(torch.nan)
            graph.replay()
            for (q, k, v), out in zip(layers, captured):
                for b, length in enumerate(lengths.tolist()):
                    own = [t[table[b].long()].flatten(0, 1)[None, :length] for t in (k, v)]
                    wanted, _ = reference.attention(q[b:b + 1].double(),
                                                    *(t.double() for t in own))
                    require_close(self, f"graph {seed}, {b}", out[b:b + 1], wanted, out.dtype)

    def test_a_cuda_graph_of_a_step(self):
        inputs = inputs_of((2, 300, 300, 4, 2, 64, 64))

        def step():
            out = attention(*inputs, causal=True)
            return (out, *torch.autograd.grad(out, inputs, torch.ones_like(out)))

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            captured = step()
        for seed in range(100):
            with torch.no_grad():
                for number, tensor in enumerate(inputs):
                    torch.manual_seed(seed * 3 + number)
                    tensor.normal_()
            for tensor in captured:
                tensor.fill_(torch.nan)
            graph.replay()
            for ours, wanted in zip(captured, step()):
                self.assertTrue(torch.equal(ours, wanted), seed)

    def test_a_capture_without_a_kernel(self):
        q = normal(1, 64, 2, 48, dtype=torch.bfloat16).cuda()
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            require_refusal(self, lambda: attention(q, q, q), "attention_forward", "captured")

    def test_compiled(self):
        def step(q, k, v):
            return attention(q, k, v, causal=True).float().square().mean()

        compiled = torch.compile(step, fullgraph=True, dynamic=True)
        for length in (130, 200):
            eager = inputs_of((2, length, length + 3, 4, 2, 64, 64))
            traced = leaves(*eager)
            step(*eager).backward()
            compiled(*traced).backward()
            for mine, wanted in zip(traced, eager):
                require_close(self, "gradient", mine.grad, wanted.grad.double(), torch.bfloat16)

    def test_refusals(self):
        q = normal(1, 8, 1, 16, dtype=torch.bfloat16).cuda()
        for call, *parts in (
                (lambda: attention(q, q.cpu(), q), "k is on cpu", "cuda:0"),
                (lambda: attention(q, q, q, target="interpreter"), "target is interpreter"),
                (lambda: attention(q[0], q[0], q[0], cu_seqlens=torch.tensor(
                    [0, 8], dtype=torch.int32)), "cu_seqlens is on cpu")):
            with self.subTest(parts[0]):
                require_refusal(self, call, *parts)

"""tilewright.torch.attention on the target cpu against float64, with its gradients, by PyTorch's
own checks of operators, and compiled."""

import unittest
import warnings

import torch
import torch_reference as reference
from tilewright.torch import attention
from torch_reference import leaves, normal, opcheck, require_close, require_refusal

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
# Batch, queries, keys, heads, heads of the keys, dim, dim of the values.
CASES = {
    "plain": ((2, 70, 70, 2, 2, 32, 32), {}),
    "shared heads": ((1, 37, 90, 6, 2, 16, 48), {}),
    "causal": ((1, 33, 70, 2, 1, 32, 32), {"causal": True}),
    "rows without keys": ((1, 40, 20, 2, 2, 16, 16), {"causal": True}),
    "window": ((1, 70, 70, 2, 2, 16, 16), {"causal": True, "window": 9}),
    "scale and cap": ((1, 20, 30, 2, 2, 16, 16), {"scale": 0.3, "softcap": 1.5}),
    "one row": ((1, 1, 50, 4, 2, 64, 64), {}),
    "no rows": ((2, 0, 5, 2, 2, 16, 16), {}),
    "no keys": ((1, 3, 0, 2, 2, 16, 16), {}),
    "no batch": ((0, 3, 4, 2, 2, 16, 16), {}),
}


def tensors_of(sizes, dtype):
    batch, queries, keys, heads, kv_heads, dim, dim_v = sizes
    return (normal(batch, queries, heads, dim, dtype=dtype),
            normal(batch, keys, kv_heads, dim, dtype=dtype, seed=1),
            normal(batch, keys, kv_heads, dim_v, dtype=dtype, seed=2))


def operands(q, k, v, sinks=None, cu_q=None, cu_k=None, *, causal=False, window=0, softcap=0.0):
    """Of the operator."""
    return (q, k, v, sinks, cu_q, cu_k, causal, window, 0.0, softcap, 0, 0, "")


class Attention(unittest.TestCase):
    def check(self, what, ours, theirs, inputs, dtype):
        """Pairs of results, and their gradients from random ones of both."""
        for name, mine, wanted in zip(("out", "lse"), ours, theirs[0]):
            require_close(self, f"{what}: {name}", mine, wanted.detach(), dtype)
        d_out = normal(*ours[0].shape, dtype=dtype, seed=5)
        d_lse = normal(*ours[1].shape, seed=6)
        # The log of a row that sees nothing is no number to differentiate.
        d_lse = d_lse.masked_fill(theirs[0][1].isinf(), 0)
        mine = torch.autograd.grad(ours, inputs, [d_out, d_lse], retain_graph=True)
        again = torch.autograd.grad(ours, inputs, [d_out, d_lse])
        finite = theirs[0][1].masked_fill(theirs[0][1].isinf(), 0)
        wanted = torch.autograd.grad([theirs[0][0], finite], theirs[1],
                                     [d_out.double(), d_lse.double()])
        for i, (gradient, second, exact) in enumerate(zip(mine, again, wanted)):
            self.assertTrue(torch.equal(gradient, second), f"{what}: gradient {i} twice")
            # Sums of as many products as there are rows, of a rounded difference.
            require_close(self, f"{what}: gradient {i}", gradient / 8, exact / 8, dtype)

    def test_cases(self):
        for what, (sizes, options) in CASES.items():
            for dtype in DTYPES:
                with self.subTest(what, dtype=dtype):
                    given = tensors_of(sizes, dtype)
                    inputs, exact = leaves(*given), leaves(*(t.double() for t in given))
                    self.check(what, attention(*inputs, return_lse=True, **options),
                               (reference.attention(*exact, **options), exact), inputs, dtype)

    def test_sinks(self):
        given = (*tensors_of((2, 20, 30, 4, 2, 16, 16), torch.float32), normal(4))
        inputs, exact = leaves(*given), leaves(*(t.double() for t in given))
        q, k, v, sinks = inputs
        self.check("sinks", attention(q, k, v, sinks=sinks, causal=True, return_lse=True),
                   (reference.attention(*exact[:3], sinks=exact[3], causal=True), exact), inputs,
                   torch.float32)
        halves = attention(q, k, v, sinks=sinks.to(torch.bfloat16))
        wanted = attention(q, k, v, sinks=sinks.to(torch.bfloat16).float())
        self.assertTrue(torch.equal(halves, wanted))

    def test_packed(self):
        cu_q, cu_k = [0, 20, 20, 33, 70], [0, 11, 30, 31, 90]
        given = (normal(70, 4, 16), normal(90, 2, 16, seed=1), normal(90, 2, 16, seed=2))
        for options in ({}, {"causal": True}, {"causal": True, "window": 5, "softcap": 2.0}):
            with self.subTest(**options):
                inputs, exact = leaves(*given), leaves(*(t.double() for t in given))
                offsets = [torch.tensor(cu, dtype=torch.int32) for cu in (cu_q, cu_k)]
                ours = attention(*inputs, cu_seqlens=offsets, max_lengths=(37, 59),
                                 return_lse=True, **options)
                self.check("packed", ours, (reference.packed(*exact, cu_q, cu_k, **options), exact),
                           inputs, torch.float32)

    def test_rows_of_no_sequence_are_zero(self):
        q = normal(12, 2, 16).requires_grad_()
        cu = torch.tensor([2, 5, 9], dtype=torch.int32)
        out, lse = attention(q, q, q, cu_seqlens=cu, return_lse=True)
        (d_q,) = torch.autograd.grad(out.sum(), q)
        for rows in (slice(0, 2), slice(9, 12)):
            self.assertEqual(out[rows].abs().max(), 0)
            self.assertEqual(d_q[rows].abs().max(), 0)
            self.assertTrue(lse[:, rows].isneginf().all())
        wanted, _ = reference.packed(q, q, q, [2, 5, 9], [2, 5, 9])
        require_close(self, "rows", out[2:9], wanted.detach(), torch.float32)

    def test_strides(self):
        """A kernel reads what it can in place, and all of it gives the same bits."""
        q, k, v = tensors_of((2, 20, 30, 4, 2, 16, 16), torch.float32)
        wide = torch.zeros(2, 30, 5, 40)
        wide[:, :, 1:3, 8:24] = k
        forms = {
            "heads before lengths": k.transpose(1, 2).contiguous().transpose(1, 2),
            "part of a larger one": wide[:, :, 1:3, 8:24],
            "dim is strided": k.transpose(1, 3).contiguous().transpose(1, 3),
            "reversed axes": k.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
        }
        wanted = attention(q, k, v)
        for what, form in forms.items():
            self.assertTrue(torch.equal(attention(q, form, v), wanted), what)
        expanded = k[:1, :, :1].expand_as(k)
        self.assertTrue(torch.equal(attention(q, expanded, v),
                                    attention(q, expanded.contiguous(), v)))
        one = normal(1, 7, 1, 16).as_strided((1, 7, 1, 16), (3, 16, 5, 1))
        self.assertTrue(torch.equal(attention(one, one, one), attention(*[one.clone()] * 3)))

    def test_gradients_that_are_expanded_or_transposed(self):
        inputs = leaves(*tensors_of((2, 20, 30, 4, 2, 16, 16), torch.float32))
        out = attention(*inputs)
        forms = {"of a sum": torch.ones(()).expand_as(out),
                 "a row for all": normal(16).expand_as(out),
                 "transposed": normal(2, 4, 16, 20).permute(0, 3, 1, 2)}
        for what, form in forms.items():
            ours = torch.autograd.grad(out, inputs, form, retain_graph=True)
            dense = torch.autograd.grad(out, inputs, form.clone(
                memory_format=torch.contiguous_format), retain_graph=True)
            for mine, wanted in zip(ours, dense):
                self.assertTrue(torch.equal(mine, wanted), what)

    def test_heads_before_lengths(self):
        q, k, v = tensors_of((2, 20, 30, 4, 2, 16, 16), torch.float32)
        wanted, lse = attention(q, k, v, causal=True, return_lse=True)
        ours = attention(*(t.transpose(1, 2) for t in (q, k, v)), causal=True, return_lse=True,
                         layout="bhsd")
        self.assertTrue(torch.equal(ours[0].transpose(1, 2), wanted))
        self.assertTrue(torch.equal(ours[1], lse))

    def test_other_targets(self):
        q = normal(1, 6, 1, 16)
        require_close(self, "interpreter", attention(q, q, q, target="interpreter"),
                      reference.attention(q, q, q)[0], torch.float32)

    def test_gradients_are_those_of_the_forward_pass(self):
        q, k, v = leaves(normal(1, 4, 2, 16), normal(1, 5, 1, 16), normal(1, 5, 1, 16, seed=3))
        sinks = normal(2).requires_grad_()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the inputs are of f32
            self.assertTrue(torch.autograd.gradcheck(
                lambda *given: attention(*given[:3], sinks=given[3], causal=True, return_lse=True),
                (q, k, v, sinks), eps=1e-2, atol=1e-2, rtol=1e-2))

    def test_two_backward_passes_over_one_graph(self):
        inputs = leaves(*tensors_of((2, 9, 13, 4, 2, 16, 16), torch.float32))
        out, lse = attention(*inputs, causal=True, return_lse=True)
        first, second = (torch.autograd.grad((out, lse), inputs, (2 * out.detach(), lse.detach()),
                                             retain_graph=again) for again in (True, False))
        for mine, wanted in zip(second, first):
            self.assertTrue(torch.equal(mine, wanted))
        with self.assertRaisesRegex(RuntimeError, "second time"):
            torch.autograd.grad(out, inputs, out.detach())

    def test_autocast(self):
        q, k, v = leaves(*tensors_of((1, 20, 30, 2, 2, 16, 16), torch.float32))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = attention(q, k, v)
        self.assertEqual(out.dtype, torch.bfloat16)
        out.sum().backward()
        self.assertEqual(q.grad.dtype, torch.float32)
        wanted = attention(*(t.to(torch.bfloat16) for t in (q, k, v)))
        self.assertTrue(torch.equal(out, wanted))

    def test_autocast_leaves_float64_alone(self):
        inputs = [t.double() for t in tensors_of((1, 3, 4, 2, 1, 4, 4), torch.float32)]
        wanted = attention(*inputs, target="interpreter")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.assertTrue(torch.equal(attention(*inputs, target="interpreter"), wanted))
            self.assertEqual(wanted.dtype, torch.float64)


class Operators(unittest.TestCase):
    def test_opcheck(self):
        q, k, v = tensors_of((2, 20, 30, 4, 2, 16, 16), torch.float32)
        cu = torch.tensor([0, 3, 9], dtype=torch.int32)
        of_rows = [normal(9, heads, 16).requires_grad_() for heads in (4, 2, 2)]
        cases = {
            "plain": (leaves(q, k, v), {}),
            "without gradients": ([q, k, v], {"causal": True}),
            "transposed": ([t.transpose(1, 2).contiguous().transpose(1, 2).requires_grad_()
                            for t in (q, k, v)], {"causal": True, "window": 4}),
            "expanded, with sinks": ([q.requires_grad_(), k[:1].expand(2, 30, 2, 16),
                                      v, normal(4).requires_grad_()], {"softcap": 2.0}),
            "one row": (leaves(q[:, :1], k, v), {}),
            "empty": (leaves(q[:, :0], k, v), {}),
            "bf16": ([t.detach().to(torch.bfloat16).requires_grad_() for t in (q, k, v)], {}),
            "packed": ([*of_rows, None, cu, cu], {"causal": True}),
        }
        for what, (inputs, settings) in cases.items():
            with self.subTest(what):
                opcheck(torch.ops.tilewright.attention.default,
                        operands(*inputs, **settings), error=1e-2)

    def test_opcheck_of_the_gradients(self):
        q, k, v = tensors_of((1, 20, 30, 4, 2, 16, 16), torch.float32)
        out, lse = torch.ops.tilewright.attention(*operands(q, k, v))
        for what, d_out, d_lse in (("plain", normal(*out.shape), normal(*lse.shape)),
                                   ("expanded", torch.ones(()).expand_as(out), None)):
            with self.subTest(what):
                opcheck(
                    torch.ops.tilewright.attention_backward.default,
                    (d_out, d_lse, q, k, v, out, lse, None, None, None, False, 0, 0.0, 0.0, ""))

    def test_reviewed_fault_11_a_compiled_step_is_the_eager_one(self):
        """Compiling broke the autograd of attention. One graph
        serves all lengths, forward and backward, bit by bit."""
        from torch._dynamo.testing import CompileCounterWithBackend
        counter = CompileCounterWithBackend("aot_eager")

        def step(q, k, v):
            out, lse = attention(q, k, v, causal=True, window=7, return_lse=True)
            return out.square().sum() + lse.sum()

        compiled = torch.compile(step, fullgraph=True, dynamic=True, backend=counter)
        first = 0  # how often the first call compiles
        for length in range(33, 53):
            inputs = tensors_of((2, length, length + 3, 4, 2, 16, 16), torch.float32)
            eager, traced = leaves(*inputs), leaves(*inputs)
            step(*eager).backward()
            compiled(*traced).backward()
            for mine, wanted in zip(traced, eager):
                self.assertTrue(torch.equal(mine.grad, wanted.grad), length)
            first = first or counter.frame_count
        self.assertEqual(counter.frame_count, first)


class Refusals(unittest.TestCase):
    def test_what_cannot_be_done(self):
        q, k, v = tensors_of((1, 20, 30, 4, 2, 16, 16), torch.float32)
        rows = normal(9, 2, 16)
        cu = torch.tensor([0, 3, 9], dtype=torch.int32)
        refusals = [
            (lambda: attention(q[0], k, v), "q has 3 axes", "{batch, length, heads, dim}"),
            (lambda: attention(q.double(), k, v), "q", "torch.float64"),
            (lambda: attention(q, k.half(), v), "k", "torch.float16", "torch.float32"),
            (lambda: attention(q, [1], v), "k is of type list"),
            (lambda: attention(q.to("meta"), k, v), "q is on meta"),
            (lambda: attention(q, k[..., :8], v), "dim of k is 8", "16"),
            (lambda: attention(q, k, v[:, :7]), "length of v is 7", "30"),
            (lambda: attention(q, k.expand(2, -1, -1, -1), v), "batch of k is 2", "1"),
            (lambda: attention(q, k, v.expand(2, -1, -1, -1)), "batch of v is 2", "1"),
            (lambda: attention(q[:, :, :3], k, v), "q has 3 heads", "k has 2"),
            (lambda: attention(q, k, v, window=3), "window is 3", "set causal=True"),
            (lambda: attention(q, k, v, causal=True, window=0), "window is 0"),
            (lambda: attention(q, k, v, scale=0), "scale is 0"),
            (lambda: attention(q, k, v, softcap=-1), "softcap is -1"),
            (lambda: attention(q, k, v, sinks=normal(3)), "sinks", "3", "4"),
            (lambda: attention(q, k, v, layout="bsd"), "layout is 'bsd'"),
            (lambda: attention(q, k, v, max_lengths=3), "max_lengths is 3"),
            (lambda: attention(q, k, v, target="tpu"), "tpu"),
            (lambda: attention(rows, rows, rows, cu_seqlens=cu.long()), "cu_seqlens",
             "torch.int64"),
            (lambda: attention(rows, rows, rows, cu_seqlens=(cu, cu[:2])), "2 sequences",
             "1 of keys"),
            (lambda: attention(rows, rows, rows, cu_seqlens=cu + 1), "[1, 4, 10]", "9 rows"),
            (lambda: attention(rows, rows, rows, cu_seqlens=cu.flip(0)), "[9, 3, 0]"),
            (lambda: attention(rows, rows, rows, cu_seqlens=cu, max_lengths=5), "6 rows", "says 5"),
        ]
        for call, *parts in refusals:
            with self.subTest(parts[0]):
                require_refusal(self, call, *parts)

    def test_gradients_of_gradients(self):
        inputs = leaves(*tensors_of((1, 20, 30, 4, 2, 16, 16), torch.float32))
        (d_q,) = torch.autograd.grad(attention(*inputs).sum(), inputs[:1], create_graph=True)
        require_refusal(self, lambda: d_q.sum().backward(), "gradients of attention")

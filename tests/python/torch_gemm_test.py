"""tilewright.torch.gemm on the target cpu against float64, with its gradients, and compiled."""

import unittest
import warnings

import torch
import torch_reference as reference
from tilewright.torch import gemm
from torch_reference import leaves, normal, require_close, require_refusal


class Gemm(unittest.TestCase):
    def test_products_and_gradients(self):
        for dtype in reference.ALLOWED:
            for m, n, k in ((70, 40, 33), (1, 9, 100), (5, 1, 8), (0, 4, 4), (4, 4, 0)):
                with self.subTest(dtype=dtype, m=m, n=n, k=k):
                    given = (normal(m, k, dtype=dtype), normal(n, k, dtype=dtype, seed=1))
                    inputs, exact = leaves(*given), leaves(*(t.double() for t in given))
                    ours, wanted = (gemm(inputs[0], inputs[1].t()), exact[0] @ exact[1].t())
                    require_close(self, "product", ours, wanted.detach(), dtype)
                    d_c = normal(m, n, dtype=dtype, seed=2)
                    for mine, right in zip(torch.autograd.grad(ours, inputs, d_c),
                                           torch.autograd.grad(wanted, exact, d_c.double())):
                        require_close(self, "gradient", mine, right, dtype)

    def test_any_operand_may_be_transposed(self):
        a, b = normal(20, 30), normal(30, 10)
        wanted = gemm(a, b)
        require_close(self, "product", wanted, a.double() @ b.double(), torch.float32)
        for x in (a, a.t().contiguous().t(), normal(20, 60)[:, ::2].copy_(a)):
            for y in (b, b.t().contiguous().t(), normal(60, 10)[::2].copy_(b)):
                self.assertTrue(torch.equal(gemm(x, y), wanted))
        row = normal(30)
        self.assertTrue(torch.equal(gemm(row.expand(20, 30), b), gemm(row.repeat(20, 1), b)))

    def test_a_linear_layer(self):
        x, weight = leaves(normal(2, 3, 16), normal(8, 16))
        ours = gemm(x, weight.t())
        wanted = torch.nn.functional.linear(x, weight)
        require_close(self, "linear", ours.detach(), wanted.detach().double(), torch.float32)
        gradients = torch.autograd.grad(ours.square().sum(), (x, weight))
        for mine, right in zip(gradients, torch.autograd.grad(wanted.square().sum(), (x, weight))):
            require_close(self, "gradient", mine / 8, right.double() / 8, torch.float32)

    def test_only_what_gradients_need_is_kept(self):
        kept = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
            weight = normal(8, 16).requires_grad_()
            gemm(normal(4, 16), weight.t())
        self.assertEqual([tuple(t.shape) for t in kept], [(4, 16)])

    def test_gradients_of_gradients(self):
        inputs = leaves(normal(3, 5), normal(4, 5))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the inputs are of f32
            how = {"eps": 1e-2, "atol": 1e-2, "rtol": 1e-2}
            self.assertTrue(torch.autograd.gradcheck(lambda a, b: gemm(a, b.t()), inputs, **how))
            self.assertTrue(torch.autograd.gradgradcheck(lambda a, b: gemm(a, b.t()), inputs,
                                                         **how))

    def test_opcheck(self):
        a, b = normal(20, 30), normal(30, 10)
        for what, inputs in {"plain": leaves(a, b), "transposed": [a.t().contiguous().t(), b],
                             "expanded": [a[:1].expand(20, 30), b.requires_grad_()],
                             "empty": leaves(a[:0], b), "one row": leaves(a[:1], b)}.items():
            with self.subTest(what):
                torch.library.opcheck(torch.ops.tilewright.gemm.default, (*inputs, ""), rtol=1e-4,
                                      atol=1e-4)

    def test_compiled(self):
        compiled = torch.compile(lambda x, w: gemm(x, w.t()).relu(), fullgraph=True, dynamic=True,
                                 backend="aot_eager")
        for rows in (5, 9):
            eager = leaves(normal(rows, 16), normal(8, 16))
            traced = leaves(*eager)
            gemm(eager[0], eager[1].t()).relu().sum().backward()
            compiled(*traced).sum().backward()
            for mine, wanted in zip(traced, eager):
                self.assertTrue(torch.equal(mine.grad, wanted.grad))

    def test_autocast(self):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.assertEqual(gemm(normal(4, 8), normal(8, 4)).dtype, torch.bfloat16)

    def test_what_cannot_be_done(self):
        a, b = normal(4, 8), normal(8, 3)
        for call, *parts in (
                (lambda: gemm(a, b.t()), "k of b is 3", "8"),
                (lambda: gemm(a, b[0]), "b has 1 axes", "{k, n}"),
                (lambda: gemm(a.double(), b), "a has elements of torch.float64"),
                (lambda: gemm(a, b.half()), "b has elements of torch.float16", "torch.float32"),
                (lambda: gemm(a, 2), "b is of type int"),
                (lambda: gemm(a, b, target="tpu"), "tpu")):
            with self.subTest(parts[0]):
                require_refusal(self, call, *parts)

"""tilewright.torch.gemm on the target cpu against float64, with its gradients, and compiled."""

import unittest
import warnings

import tilewright.torch._gemm as _gemm_module
import torch
import torch_reference as reference
from tilewright.torch import gemm, gemm_fp8, linear
from torch.nn import functional
from torch_reference import leaves, normal, opcheck, require_close, require_refusal


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

    def test_nothing_is_copied(self):
        """Of a linear layer's forward and backward pass, whose operands lie in four ways."""
        copied = []
        own, _gemm_module.readable = _gemm_module.readable, lambda t: copied.append(t) or t
        self.addCleanup(setattr, _gemm_module, "readable", own)
        asked = [(normal(5, 8), normal(8, 7).t().contiguous().t()), (normal(5, 8), normal(8, 7)),
                 (normal(8, 5).t(), normal(8, 7)),
                 (normal(8, 5).t(), normal(7, 8).t())]
        for number, (a, b) in enumerate(asked):
            require_close(self, f"layout {number}", gemm(a, b), a.double() @ b.double(),
                          torch.float32)
        self.assertTrue(all(tensor.is_contiguous() for tensor in copied))

    def test_epilogues(self):
        activations = {None: lambda z: z, "relu": torch.relu, "gelu": functional.gelu,
                       "gelu_tanh": lambda z: functional.gelu(z, approximate="tanh"),
                       "silu": functional.silu}
        for dtype in reference.ALLOWED:
            x, w = normal(2, 35, 16, dtype=dtype), normal(9, 16, dtype=dtype, seed=1)
            bias, added = normal(9, dtype=dtype, seed=2), normal(2, 35, 9, dtype=dtype, seed=3)
            for name, function in activations.items():
                with self.subTest(dtype=dtype, activation=name):
                    inputs = leaves(x, w, bias, added)
                    exact = leaves(*(t.double() for t in inputs))
                    ours = linear(inputs[0], inputs[1], inputs[2], activation=name,
                                  residual=inputs[3])
                    wanted = function(exact[0] @ exact[1].t() + exact[2]) + exact[3]
                    require_close(self, "linear", ours.detach(), wanted.detach(), dtype)
                    d_out = normal(*ours.shape, dtype=dtype, seed=4)
                    for mine, right in zip(torch.autograd.grad(ours, inputs, d_out),
                                           torch.autograd.grad(wanted, exact, d_out.double())):
                        require_close(self, "gradient", mine, right, dtype)
        self.assertTrue(torch.equal(gemm(x[0], w.t(), bias=bias), linear(x[0], w, bias)))
        # What a gradient needs is kept whichever tensor wants it.
        x, w, bias = normal(5, 16), normal(9, 16, seed=1), normal(9, seed=2)
        for alone in range(3):
            given = [t.clone().requires_grad_(i == alone) for i, t in enumerate((x, w, bias))]
            exact = [t.detach().double().requires_grad_(t.requires_grad) for t in given]
            linear(*given, activation="silu").sum().backward()
            functional.silu(functional.linear(*exact)).sum().backward()
            require_close(self, f"of {alone} alone", given[alone].grad, exact[alone].grad,
                          torch.float32)

    def test_fp8(self):
        a, b = (normal(*shape).to(torch.float8_e4m3fn) for shape in ((40, 64), (24, 64)))
        scales = torch.tensor(0.5), torch.tensor([3.0])
        wanted = 1.5 * a.double() @ b.double().t()
        require_close(self, "fp8", gemm_fp8(a, b.t(), *scales), wanted, torch.bfloat16)
        require_close(self, "fp8", gemm_fp8(a, b.t().contiguous(), *scales), wanted,
                      torch.bfloat16)
        opcheck(torch.ops.tilewright.gemm_fp8.default,
                (a, b.t(), *(s.reshape(1) for s in scales), ""),
                test_utils="test_faketensor")  # PyTorch compares no e4m3
        require_refusal(self, lambda: gemm_fp8(a, b.t().float(), *scales), "b has elements",
                        "float8_e4m3fn")
        require_refusal(self, lambda: gemm_fp8(a, b.t(), scales[0].half(), scales[1]),
                        "scale_a is {} of torch.float16")

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

    def test_gradients_of_an_activations_gradients_are_no_silence(self):
        """Also where those of the result are constants, so that only what was kept depends on a."""
        a, b, v = leaves(normal(3, 5), normal(5, 4), normal(4))
        for of in (a, b, v):
            gradient, = torch.autograd.grad(gemm(a, b, bias=v, activation="silu").sum(), of,
                                            create_graph=True)
            require_refusal(self, lambda g=gradient, of=of: torch.autograd.grad(g.sum(), of),
                            "the gradients of an activation are differentiated")

    def test_the_gradient_of_what_is_kept(self):
        inputs = leaves(normal(3, 5), normal(5, 4), normal(4))
        for weights in ((2, 3), (0, 3)):
            sums, right = [], torch.addmm(inputs[2], *inputs[:2])
            for c, z in (torch.ops.tilewright.linear(*inputs, None, "gelu", True, ""),
                         (torch.nn.functional.gelu(right), right)):
                parts = [weight * each.sum() for weight, each in zip(weights, (c, z)) if weight]
                sums.append(torch.autograd.grad(sum(parts), inputs))
            for mine, wanted in zip(*sums):
                require_close(self, "gradient", mine, wanted.double(), torch.float32)

    def test_opcheck(self):
        a, b = normal(20, 30), normal(30, 10)
        for what, inputs in {"plain": leaves(a, b), "transposed": [a.t().contiguous().t(), b],
                             "expanded": [a[:1].expand(20, 30), b.requires_grad_()],
                             "empty": leaves(a[:0], b), "one row": leaves(a[:1], b)}.items():
            with self.subTest(what):
                opcheck(torch.ops.tilewright.gemm.default, (*inputs, ""), error=1e-4)

    def test_opcheck_and_gradcheck_of_a_layer(self):
        given = leaves(normal(3, 5), normal(5, 4), normal(4), normal(3, 4))
        for activation, keeps in (("none", False), ("gelu", True)):
            opcheck(torch.ops.tilewright.linear.default,
                    (*given, activation, keeps, ""), error=1e-4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the inputs are of f32
            how = {"eps": 1e-2, "atol": 1e-2, "rtol": 1e-2}
            for activation in (None, "gelu", "gelu_tanh", "silu"):
                self.assertTrue(torch.autograd.gradcheck(
                    lambda a, b, v, r, name=activation: gemm(a, b, bias=v, activation=name,
                                                             residual=r),
                    given, **how))

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
                (lambda: gemm(a, b[0]), "b has 1 axis", "{k, n}"),
                (lambda: gemm(a.double(), b), "a has elements of torch.float64"),
                (lambda: gemm(a, b.half()), "b has elements of torch.float16", "torch.float32"),
                (lambda: gemm(a, 2), "b is of type int"),
                (lambda: gemm(a, b, activation="elu"), "activation is 'elu'", "gelu_tanh"),
                (lambda: gemm(a, b, bias=normal(4)), "the n of bias is 4, and that of b is 3"),
                (lambda: gemm(a, b, residual=normal(4, 4)), "n of residual is 4", "3"),
                (lambda: linear(a, b[0]), "weight has 1 axis"),
                (lambda: gemm(a, b, target="tpu"), "tpu")):
            with self.subTest(parts[0]):
                require_refusal(self, call, *parts)

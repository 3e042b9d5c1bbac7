"""Kernels of one's own on PyTorch's and NumPy's tensors, with gradients."""

import os
import pathlib
import re
import unittest

import tilewright
import torch
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch_reference import leaves, normal, opcheck, require_close, require_refusal

PLUGIN = os.environ.get("PLUGIN")


def squares(x, factor):
    y = factor * x * x
    return y, y.sum(1)


@unittest.skipUnless(PLUGIN, "the plug-in of the tests is not named by PLUGIN")
class Own(unittest.TestCase):
    def setUp(self):
        self.kernel = tilewright.load(PLUGIN, "squares", gradient="squares_backward")

    def test_gradients(self):
        inputs, exact = leaves(normal(21, 40)), leaves(normal(21, 40).double())
        ours, wanted = self.kernel(*inputs, factor=3), squares(*exact, 3)
        for mine, right in zip(ours, wanted):
            require_close(self, "output", mine.detach(), right.detach(), torch.float32)
        # Of a sum alone the gradient is expanded, and that of Y is zeros.
        for loss in (lambda y, s: y.square().sum() + s.sum(), lambda y, s: s.sum(),
                     lambda y, s: y.t()[:5].sum()):
            mine, = torch.autograd.grad(loss(*ours), inputs, retain_graph=True)
            right, = torch.autograd.grad(loss(*wanted), exact, retain_graph=True)
            require_close(self, "gradient", mine, right, torch.float32)

    def test_any_strides(self):
        x = normal(40, 21)
        for given in (x.t(), x[:1].t().expand(21, 40), normal(21, 80)[:, ::2]):
            for ours, right in zip(self.kernel(given, factor=2), squares(given.double(), 2)):
                require_close(self, "output", ours, right, torch.float32)

    def test_check(self):
        checked = self.kernel.check(squares, normal(21, 40), factor=3)
        self.assertTrue(checked)
        self.assertIn("Y: ok", str(checked))
        wrong = self.kernel.check(lambda x, factor: (x, x.sum(1)), normal(21, 40), factor=3)
        self.assertFalse(wrong)
        self.assertIn("Y: WRONG", str(wrong))
        # Half of what is right.
        half = self.kernel.check(lambda x, factor: squares(x, 2 * factor), normal(21, 40), factor=3)
        self.assertAlmostEqual(half.differences[0].error, 0.5, places=4)

    def test_check_of_arrays_and_of_what_has_gradients(self):
        wanted = leaves(normal(21, 40))[0]
        for given in (normal(21, 40).numpy(), wanted):
            self.assertTrue(self.kernel.check(squares, given, factor=3))
            self.assertFalse(self.kernel.check(lambda x, factor: squares(x, 1.01 * factor), given,
                                               factor=3))

    def test_arrays_and_what_has_dlpack_alone(self):
        class Shared:
            def __init__(self, tensor):
                self.tensor = tensor

            def __dlpack__(self):
                return self.tensor.__dlpack__()

        x = normal(21, 40)
        wanted = self.kernel(x, factor=2)[0]
        for given in (x.numpy(), Shared(x), Shared(x.t().contiguous().t().contiguous())):
            ours = self.kernel(given, factor=2)[0]
            self.assertTrue(torch.equal(torch.from_numpy(ours), wanted))
        require_refusal(self, lambda: self.kernel(Shared(x > 0), factor=1), "DLPack's type")

    def test_what_is_written_is_known_to_autograd(self):
        weight = torch.ones(21, 40, requires_grad=True)
        y, sums, others = normal(21, 40), normal(21), tilewright.Kernel("gemm", "cpu", dtype="f32")
        for write in (lambda: self.kernel(normal(21, 40), factor=1, out=(y, sums)),
                      lambda: others(normal(21, 8), normal(40, 8), y)):
            loss = (weight * y).sum()
            write()
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                loss.backward()

    def test_negated_views(self):
        x = normal(21, 40)
        negated = torch._neg_view(x)
        zeros = torch.zeros(21)
        ours, right = (tilewright.load(PLUGIN, "squares_backward")(given, x, zeros, factor=1)
                       for given in (negated, -x))
        self.assertTrue(torch.equal(ours, right))
        multiply = tilewright.Kernel("gemm", "cpu", dtype="f32")
        require_refusal(self, lambda: multiply(negated, normal(8, 40), torch.empty(21, 8)),
                        "negated", "resolve_neg()")

    def test_the_operator_of_the_document(self):
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs/python.md").read_text()
        block, = (each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL)
                  if "custom_op" in each)
        backward = tilewright.load(PLUGIN, "squares_backward")
        names = {"torch": torch,
                 "softmax": lambda x, temperature: self.kernel(x.detach(), factor=temperature)[0],
                 "softmax_backward": lambda x, dY, temperature: backward(
                     x, dY, torch.zeros(len(x)), factor=temperature)}
        exec(block, names)
        x, = leaves(normal(21, 40))
        opcheck(names["softmax_operator"], (x, 2.0), error=1e-5)

        class Model(torch.nn.Module):
            def forward(self, x):
                return names["softmax_operator"](x, 2.0) + 1

        exported = torch.export.export(Model(), (normal(21, 40),)).module()
        for model in (Model(), torch.compile(Model(), fullgraph=True, backend="aot_eager"),
                      exported):
            gradient, = torch.autograd.grad(model(x).sum(), x)
            require_close(self, "gradient", gradient, 4 * x.detach(), torch.float32)

    def test_what_cannot_be_done(self):
        x, = leaves(normal(21, 40))
        alone = tilewright.load(PLUGIN, "squares")
        require_refusal(self, lambda: alone(x, factor=1), "no gradient kernel", "gradient=")
        require_refusal(self, lambda: self.kernel(x, factor=1, out=(x, x)), "leave out= out")
        # Also where the gradients of the outputs are constants.
        gradient, = torch.autograd.grad(self.kernel(x, factor=1)[0].sum(), x, create_graph=True)
        require_refusal(self, lambda: torch.autograd.grad(gradient.square().sum(), x),
                        "the gradients of squares are differentiated", "create_graph=True")
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(normal(21, 40), normal(21, 40))
            require_refusal(self, lambda: self.kernel(dual, factor=1), "in forward mode")
        require_refusal(self, lambda: self.kernel(x, factor=torch.ones((), requires_grad=True)),
                        "the scalar factor requires a gradient", "factor.detach()")
        require_refusal(self, lambda: alone(normal(21, 40), factor=1, out=(x, x[:, 0])),
                        "Y in out= requires a gradient", "no_grad")
        plain = normal(21, 40)
        for call in (lambda: make_fx(lambda x: alone(x, factor=1))(plain),
                     lambda: torch.jit.trace(lambda x: alone(x, factor=1), plain)):
            require_refusal(self, call, "under a tracer", "register an operator")
        for call in (lambda: torch.vmap(lambda x: alone(x, factor=1))(plain[None]),
                     lambda: torch.func.grad(lambda x: alone(x, factor=1)[1].sum())(plain)):
            require_refusal(self, call, "torch.vmap or torch.func", "register an operator")
        with torch.no_grad():
            self.assertEqual(alone(x, factor=1)[0].shape, x.shape)
        # A gradient kernel of some inputs, which says nothing of dY.
        some = tilewright.load(PLUGIN, "squares_backward", gradient="squares",
                               gradients={"Y": "X", "SUM": "dSUM"})
        y, s = normal(21, 40), normal(21)
        require_refusal(self, lambda: some(x.detach(), y.requires_grad_(), s, factor=1),
                        "dY requires a gradient, and squares computes none", "dY.detach()")
        self.assertTrue(some(x, y.detach(), s, factor=1).requires_grad)

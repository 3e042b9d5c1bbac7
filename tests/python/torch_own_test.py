"""Kernels of one's own on PyTorch's and NumPy's tensors, with gradients."""

import os
import unittest

import tilewright
import torch
from torch_reference import leaves, normal, require_close, require_refusal

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

    def test_what_cannot_be_done(self):
        x, = leaves(normal(21, 40))
        alone = tilewright.load(PLUGIN, "squares")
        require_refusal(self, lambda: alone(x, factor=1), "no gradient kernel", "gradient=")
        require_refusal(self, lambda: self.kernel(x, factor=1, out=(x, x)), "leave out= out")
        loss = torch.autograd.grad(self.kernel(x, factor=1)[0].sum(), x, create_graph=True)[0]
        with self.assertRaises(RuntimeError):
            torch.autograd.grad(loss.sum(), x)
        with torch.no_grad():
            self.assertEqual(alone(x, factor=1)[0].shape, x.shape)
        # A gradient kernel of some inputs, which says nothing of dY.
        some = tilewright.load(PLUGIN, "squares_backward", gradient="squares",
                               gradients={"Y": "X", "SUM": "dSUM"})
        y, s = normal(21, 40), normal(21)
        require_refusal(self, lambda: some(x.detach(), y.requires_grad_(), s, factor=1),
                        "dY requires a gradient, and squares computes none", "dY.detach()")
        self.assertTrue(some(x, y.detach(), s, factor=1).requires_grad)

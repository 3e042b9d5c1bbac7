"""Calls of tilewright.torch.attention that go to the kernels without PyTorch's dispatcher: the same
results, and only where nobody else has a part in them."""

import unittest
from unittest import mock

import torch
from tilewright.torch import _attention, attention
from tilewright.torch._run import is_usable
from torch.utils._python_dispatch import TorchDispatchMode
from torch_reference import leaves, normal


def operands(**how):
    return [normal(2, 9, 4, 16, **how), normal(2, 13, 2, 16, seed=1, **how),
            normal(2, 13, 2, 16, seed=2, **how)]


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        self.names.append(function.name())
        return function(*arguments, **(named or {}))


class Direct(unittest.TestCase):
    def setUp(self):
        _attention._made.__dict__.clear()

    def runs(self, *given, **how):
        """What attention gives, and how many runs it made without the dispatcher."""
        run = _attention._Direct.run
        with mock.patch.object(_attention._Direct, "run", autospec=True, side_effect=run) as seen:
            return attention(*given, **how), seen.call_count

    def test_the_second_call_is_direct_and_the_same(self):
        for layout in ("bshd", "bhsd"):
            for dtype in (torch.float32, torch.bfloat16):
                with self.subTest(layout=layout, dtype=dtype):
                    given = operands(dtype=dtype)
                    if layout == "bhsd":
                        given = [tensor.transpose(1, 2) for tensor in given]
                    how = {"causal": True, "layout": layout, "return_lse": True}
                    wanted, first = self.runs(*given, **how)
                    ours, second = self.runs(*given, **how)
                    self.assertEqual((first, second), (0, 1))
                    for mine, right in zip(ours, wanted):
                        self.assertTrue(torch.equal(mine, right))
                        self.assertEqual(mine.stride(), right.stride())

    def test_other_settings_and_tensors_are_told_apart(self):
        q, k, v = operands()
        attention(q, k, v)
        turned_q, turned_k, turned_v = (t.transpose(0, 1).contiguous().transpose(0, 1)
                                        for t in (q, k, v))
        for given, how in (((q, k, v), {"causal": True}), ((q, k, v), {"scale": 2.0}),
                           ((q, k, v), {"causal": True, "window": 3}),
                           ((q, k, v), {"softcap": 2.0}), ((q[:, :5], k, v), {}),
                           ((turned_q, k, v), {}), ((q, turned_k, v), {}),
                           ((q, k, turned_v), {})):
            ours, again = self.runs(*given, **how)[0], self.runs(*given, **how)[0]
            _attention._made.__dict__.clear()
            wanted, direct = self.runs(*given, **how)
            self.assertEqual(direct, 0)
            self.assertTrue(torch.equal(ours, wanted) and torch.equal(again, wanted))

    def test_gradients(self):
        for layout in ("bshd", "bhsd"):
            found = []
            for _ in range(2):
                given = leaves(*operands())
                views = [t.transpose(1, 2) for t in given] if layout == "bhsd" else given
                out, direct = self.runs(*views, causal=True, layout=layout)
                found.append(torch.autograd.grad(out.square().sum(), given))
            self.assertEqual(direct, 1)
            for mine, right in zip(*found):
                self.assertTrue(torch.equal(mine, right))

    def test_others_have_a_part(self):
        given = operands()
        wanted = attention(*given)
        self.assertEqual(self.runs(*given)[1], 1)
        with Seen() as seen:
            self.assertEqual(self.runs(*given)[1], 0)
        self.assertIn("tilewright::attention", seen.names)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out, direct = self.runs(*given)
        self.assertEqual((out.dtype, direct), (torch.bfloat16, 0))
        compiled = torch.compile(attention, backend="aot_eager", fullgraph=True)
        self.assertTrue(torch.equal(compiled(*given), wanted))
        with torch.device("cpu"):  # a mode that sees functions
            self.assertEqual(self.runs(*given)[1], 0)
        for mode in (torch.inference_mode, torch.no_grad):
            with mode():
                out, direct = self.runs(*given)
            self.assertTrue(torch.equal(out, wanted))
            self.assertEqual(direct, 1)

    def test_transforms(self):
        given = operands()
        attention(*given)
        gradient = torch.func.grad(lambda q: attention(q, *given[1:]).square().sum())
        leaf, = leaves(given[0])
        wanted, = torch.autograd.grad(attention(leaf, *given[1:]).square().sum(), leaf)
        try:
            self.assertTrue(torch.equal(gradient(given[0]), wanted))
        except RuntimeError as error:  # PyTorch has the function say how it is transformed
            self.assertIn("setup_context", str(error))

    def test_tensors_of_other_kinds(self):
        q, k, v = operands()
        wanted = attention(q, k, v)
        attention(-q, k, v)
        ours, direct = self.runs(torch._neg_view(q), k, v)
        self.assertEqual(direct, 0)
        self.assertTrue(torch.equal(ours, attention(-q, k, v)))
        for other in (q.to("meta"), q.to_sparse(), torch.nested.nested_tensor([q[0], q[1]])):
            with self.assertRaises(RuntimeError):
                attention(other, k, v)
        self.assertTrue(torch.equal(self.runs(q, k, v)[0], wanted))
        seen = []
        with mock.patch.object(_attention._Direct, "run", side_effect=seen.append):
            for transform in (torch.func.vmap, torch.func.functionalize):
                try:
                    transform(lambda q: attention(q, k, v))(q)
                except RuntimeError:
                    pass  # what the operator has no rule for
        self.assertEqual(seen, [])

    def test_on_a_gpu_rows_begin_at_multiples_of_16_bytes(self):
        given = operands()
        with mock.patch.object(torch.Tensor, "is_cuda", True), \
                mock.patch.object(_attention, "call_of"):
            made = _attention._Direct(*given, (False, 0, 0.0, 0.0), "bshd", None)
        self.assertIsNotNone(made.run(*given))
        for number, tensor in enumerate(given):
            moved = list(given)
            moved[number] = tensor.new_empty(tensor.numel() + 1)[1:].view(tensor.shape)
            self.assertIsNone(made.run(*moved))
        made._device = 1
        with mock.patch.object(torch._C, "_cuda_getDevice", create=True, return_value=0):
            self.assertIsNone(made.run(*given))

    def test_what_a_kernel_takes_in_place(self):
        rows = normal(4, 24)
        for tensor, host, gpu in ((rows, True, True), (rows[:, :8], True, True),
                                  (rows.view(-1)[1:17], True, False),
                                  (normal(4, 25)[:, :8], True, False),
                                  (rows[:, ::2], False, False), (rows.t(), False, False),
                                  (rows[:1].expand(4, 24), False, False)):
            self.assertEqual(is_usable(tensor), host)
            with mock.patch.object(torch.Tensor, "is_cuda", True):
                self.assertEqual(is_usable(tensor), gpu)

    def test_what_is_no_tensor(self):
        q, k, v = operands()
        attention(q, k, v)
        for given in ((1, k, v), (q, None, v)):
            with self.assertRaises(RuntimeError):
                attention(*given)

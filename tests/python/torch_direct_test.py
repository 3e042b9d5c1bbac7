"""Calls of tilewright.torch.attention that go to the kernels without PyTorch's dispatcher: the same
results, and only where nobody else has a part in them."""

import unittest
from unittest import mock

import torch
from tilewright.torch import _attention, attention
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

    def test_a_log_sum_exp_that_nobody_asks_for_is_not_allocated(self):
        given = operands()
        wanted, lse = attention(*given, return_lse=True)
        for how in ({}, {"return_lse": True}):
            with mock.patch.object(torch, "empty_like", side_effect=torch.empty_like) as allocated:
                ours = attention(*given, **how)
            self.assertEqual(allocated.call_count, 2 if how else 1)
        self.assertTrue(torch.equal(ours[0], wanted) and torch.equal(ours[1], lse))
        others = attention(*given, return_lse=True)[1]
        self.assertNotEqual(others.data_ptr(), ours[1].data_ptr())

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

    def test_what_is_no_tensor(self):
        q, k, v = operands()
        attention(q, k, v)
        for given in ((1, k, v), (q, None, v)):
            with self.assertRaises(RuntimeError):
                attention(*given)

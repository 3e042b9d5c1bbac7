"""PyTorch's own attention switched over on the target cpu: what becomes ours, and what stays."""

import unittest

import torch
from tilewright.torch import disable, enable, scaled_dot_product_attention
from torch.nn.functional import scaled_dot_product_attention as pytorchs
from torch_reference import leaves, normal, require_close


def tensors(queries=40, keys=40, dtype=torch.float32, heads_first=True):
    made = [normal(2, length, 4, 16, dtype=dtype, seed=seed)
            for seed, length in enumerate((queries, keys, keys))]
    made = [t.transpose(1, 2) for t in made]
    return [t.contiguous() for t in made] if heads_first else made


class Switch(unittest.TestCase):
    def setUp(self):
        enable()
        self.addCleanup(disable)

    def theirs(self, call):
        disable()
        try:
            return call()
        finally:
            enable()

    def test_results_and_gradients(self):
        for dtype in (torch.float32, torch.bfloat16):
            for heads_first in (True, False):
                for options in ({}, {"is_causal": True}, {"scale": 0.3}):
                    with self.subTest(dtype=dtype, heads_first=heads_first, **options):
                        given = tensors(dtype=dtype, heads_first=heads_first)
                        ours, exact = leaves(*given), leaves(*(t.double() for t in given))
                        out = pytorchs(*ours, **options)
                        self.assertTrue(torch.equal(
                            out, scaled_dot_product_attention(*given, **options)))
                        wanted = self.theirs(lambda e=exact, o=options: pytorchs(*e, **o))
                        require_close(self, "result", out.detach(), wanted.detach(), dtype)
                        d_out = normal(*out.shape, dtype=dtype, seed=5)
                        for mine, right in zip(torch.autograd.grad(out, ours, d_out),
                                               torch.autograd.grad(wanted, exact, d_out.double())):
                            require_close(self, "gradient", mine / 8, right / 8, dtype)

    def test_results_lie_in_memory_as_before(self):
        operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
        for heads_first in (True, False):
            given = tensors(heads_first=heads_first)
            for ours, wanted in zip(operator(*given), self.theirs(lambda g=given: operator(*g))):
                self.assertEqual(ours.stride(), wanted.stride())
                require_close(self, "result", ours, wanted.double(), torch.float32)

    def test_rows_that_lie_apart(self):
        # Results lie as q does, where no kernel can write them.
        operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
        q, k, v = tensors()
        apart = q.transpose(-1, -2).contiguous().transpose(-1, -2)
        out = operator(apart, k, v)[0]
        self.assertEqual(out.stride(), apart.stride())
        self.assertTrue(torch.equal(out, operator(q, k, v)[0]))

    def test_the_rest_stays(self):
        q, k, v = tensors(20, 30)
        wide = [t.double() for t in (q, k, v)]
        mask = torch.rand(20, 30) > 0.5
        calls = {"a mask": lambda: pytorchs(q, k, v, attn_mask=mask),
                 "float64": lambda: pytorchs(*wide),
                 "a causal mask of fewer queries": lambda: pytorchs(q, k, v, is_causal=True)}
        for what, call in calls.items():
            self.assertTrue(torch.equal(call(), self.theirs(call)), what)
        torch.manual_seed(3)
        dropped = pytorchs(q, k, v, dropout_p=0.5)
        torch.manual_seed(3)
        self.assertTrue(torch.equal(dropped, self.theirs(lambda: pytorchs(q, k, v, dropout_p=0.5))))

    def test_modules_and_compiled_code(self):
        layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        x = normal(2, 10, 64)
        for module in (layer, torch.compile(layer, fullgraph=True, backend="aot_eager")):
            given, again = leaves(x, x)
            ours = module(given)
            wanted = self.theirs(lambda a=again: layer(a))
            require_close(self, "layer", ours.detach(), wanted.detach().double(), torch.float32)
            ours.square().sum().backward()
            self.theirs(lambda w=wanted: w.square().sum().backward())
            require_close(self, "gradient", given.grad / 8, again.grad.double() / 8, torch.float32)

    def test_back(self):
        q, k, v = tensors()
        ours = pytorchs(q, k, v)
        enable()  # once more is the same
        disable()
        before = pytorchs(q, k, v)
        disable()
        self.assertFalse(torch.equal(ours, before))
        self.assertTrue(torch.equal(before, pytorchs(q, k, v)))

"""Padded batches as packed sequences, and back: tilewright.torch's names and bert_padding's."""

import unittest
import warnings

import torch
import torch_reference as reference
from tilewright.torch import attention, cu_seqlens, pad, unpad
from tilewright.torch.bert_padding import (
    index_first_axis,
    index_put_first_axis,
    pad_input,
    unpad_input,
)
from torch.fx.experimental.proxy_tensor import make_fx
from torch_reference import leaves, normal, require_close, require_refusal

MASK = torch.tensor([[1, 1, 1, 0, 0], [0, 0, 0, 0, 0], [0, 1, 1, 1, 1], [1, 0, 1, 0, 0]])
TOKENS = MASK.flatten().nonzero().flatten()


class Packing(unittest.TestCase):
    def test_cu_seqlens(self):
        for given in (MASK, MASK.bool(), torch.tensor([3, 0, 4, 2])):
            found = cu_seqlens(given)
            self.assertEqual(found.dtype, torch.int32)
            self.assertEqual(found.tolist(), [0, 3, 3, 7, 9])

    def test_there_and_back(self):
        x = normal(4, 5, 3)
        packed, places, offsets = unpad(x, MASK)
        self.assertTrue(torch.equal(places, TOKENS))
        self.assertTrue(torch.equal(packed, x.flatten(0, 1)[TOKENS]))
        self.assertEqual(offsets.tolist(), [0, 3, 3, 7, 9])
        self.assertTrue(torch.equal(pad(packed, places, 4, 5), x * MASK[..., None]))

    def test_more_rows_than_tokens(self):
        """As it is where nobody knows how many there are."""
        x = normal(4, 5, 3)
        for total in (20, 25, 9):
            packed, places, _ = unpad(x, MASK, total=total)
            self.assertEqual(packed.shape, (total, 3))
            self.assertTrue(torch.equal(packed[:9], x.flatten(0, 1)[TOKENS]))
            self.assertTrue((packed[9:] == 0).all() and (places[9:] == 20).all())
            self.assertTrue(torch.equal(pad(packed, places, 4, 5), x * MASK[..., None]))

    def test_gradients(self):
        (x,) = leaves(normal(4, 5, 3))
        for total in (9, 20):
            packed, places, _ = unpad(x, MASK, total=total)
            d_packed = normal(total, 3, seed=1)
            (d_x,) = torch.autograd.grad(packed, x, d_packed)
            wanted = torch.zeros(20, 3)
            wanted[TOKENS] = d_packed[:9]
            self.assertTrue(torch.equal(d_x, wanted.view(4, 5, 3)))
            (rows,) = leaves(packed)
            d_padded = normal(4, 5, 3, seed=2)
            (d_rows,) = torch.autograd.grad(pad(rows, places, 4, 5), rows, d_padded)
            self.assertTrue(torch.equal(d_rows[:9], d_padded.flatten(0, 1)[TOKENS]))
            self.assertTrue((d_rows[9:] == 0).all())
        double = normal(4, 5, 2).double().requires_grad_()
        self.assertTrue(torch.autograd.gradcheck(
            lambda x: pad(*unpad(x, MASK, total=12)[:2], 4, 5), double))

    def test_attention_to_a_padded_batch(self):
        """With rows that belong to no sequence, and with none."""
        q, k, v = (normal(4, 5, 2, 16, seed=seed) for seed in range(3))
        mask = torch.arange(5) < torch.tensor([3, 1, 5, 2])[:, None]
        for total in (None, 20):
            packed = [unpad(t, torch.tensor([3, 1, 5, 2]), total=total) for t in (q, k, v)]
            places, offsets = packed[0][1:]
            out = attention(*(rows for rows, *_ in packed), cu_seqlens=offsets, causal=True)
            out = pad(out, places, 4, 5)
            wanted = reference.attention(q, k, v, causal=True)[0] * mask[..., None, None]
            require_close(self, "attention", out, wanted, torch.float32)

    def test_no_tokens(self):
        packed, places, offsets = unpad(normal(4, 5, 3), torch.zeros(4, 5))
        self.assertEqual(packed.shape, (0, 3))
        self.assertEqual(offsets.tolist(), [0] * 5)
        self.assertTrue((pad(packed, places, 4, 5) == 0).all())

    def test_no_sequences(self):
        """An empty batch goes all the way, and rows of no sequence see nothing."""
        packed, places, offsets = unpad(normal(0, 5, 2, 16), torch.zeros(0, 5))
        self.assertEqual(offsets.tolist(), [0])
        for rows in (packed, normal(3, 2, 16)):
            q = rows.clone().requires_grad_()
            out, lse = attention(q, q, q, cu_seqlens=offsets, max_lengths=7, return_lse=True)
            self.assertEqual(out.shape, rows.shape)
            self.assertTrue((out == 0).all() and (lse == -torch.inf).all())
            out.sum().backward()
            self.assertTrue((q.grad == 0).all())
        self.assertEqual(pad(packed, places, 0, 5).shape, (0, 5, 2, 16))

    def test_compiled(self):
        def step(x, mask):
            packed, places, _ = unpad(x, mask, total=x.shape[0] * x.shape[1])
            return pad(packed * 2, places, *x.shape[:2])

        compiled = torch.compile(step, fullgraph=True, dynamic=True, backend="aot_eager")
        for length in (5, 7):
            x = normal(4, length, 3)
            mask = torch.arange(length) < torch.tensor([1, 3, 0, 2])[:, None]
            self.assertTrue(torch.equal(compiled(x, mask), 2 * x * mask[..., None]))

    def test_traced_graphs_serve_other_masks(self):
        def step(x, mask):
            packed, places, offsets = unpad(x, mask)
            return pad(packed * 2, places, *x.shape[:2]), offsets

        def flash(x, mask):
            packed, indices, offsets, longest, _ = unpad_input(x, mask)
            return pad_input(packed * 2, indices, *x.shape[:2]), offsets, torch.as_tensor(longest)

        x, few, many = normal(4, 5, 3), torch.arange(5) < 1, torch.arange(5) < 4
        few, many = few.expand(4, 5), many.expand(4, 5)
        for f in (step, flash):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that tracing is deprecated, and shapes are read
                traced = torch.jit.trace(f, (x, few))
            recorded = make_fx(f)(x, few)
            for graph in (traced, recorded):
                padded, offsets = graph(x, many)[:2]
                self.assertTrue(torch.equal(padded, 2 * x * many[..., None]))
                self.assertEqual(offsets.tolist(), [0, 4, 8, 12, 16])
        self.assertGreaterEqual(int(traced(x, many)[2]), 4)

    def test_bert_padding(self):
        x = normal(4, 5, 3)
        packed, indices, offsets, longest, used = unpad_input(x, MASK)
        self.assertTrue(torch.equal(packed, x.flatten(0, 1)[TOKENS]))
        self.assertTrue(torch.equal(indices, TOKENS))
        self.assertEqual((offsets.tolist(), longest, used.tolist()),
                         ([0, 3, 3, 7, 9], 4, [3, 0, 4, 2]))
        self.assertTrue(torch.equal(pad_input(packed, indices, 4, 5), x * MASK[..., None]))
        more = torch.zeros_like(MASK)
        more[1, 2] = 1
        packed, indices, offsets, longest, used = unpad_input(x, MASK, more)
        self.assertEqual((packed.shape[0], offsets.tolist(), used.tolist()),
                         (10, [0, 3, 4, 8, 10], [3, 0, 4, 2]))
        rows = normal(20, 3)
        self.assertTrue(torch.equal(index_first_axis(rows, TOKENS), rows[TOKENS]))
        self.assertTrue(torch.equal(index_put_first_axis(rows[TOKENS], TOKENS, 20),
                                    rows * MASK.flatten()[:, None]))

    def test_what_cannot_be_done(self):
        x = normal(4, 5, 3)
        for call, *parts in (
                (lambda: unpad(x, MASK[:, :4]), "mask is {4, 4}", "{4, 5}"),
                (lambda: unpad(x, MASK, total=8), "total is 8", "9 tokens"),
                (lambda: unpad(x[0, 0], MASK), "x has 1 axis"),
                (lambda: pad(x[0], TOKENS, 4, 5), "places is {9}", "5 rows"),
                (lambda: cu_seqlens(torch.rand(3)), "lengths is {3} of torch.float32"),
                (lambda: unpad_input(x, MASK[:, 1:]), "attention_mask is {4, 4}")):
            with self.subTest(parts[0]):
                require_refusal(self, call, *parts)

"""Other packages' names on the target cpu: their order, their masks, and what is refused."""

import inspect
import math
import unittest

import torch
import torch_reference as reference
from tilewright.torch import (
    flash_attn,
    flash_attn_interface,
    scaled_dot_product_attention,
    varlen_attn,
)
from torch_reference import leaves, normal, require_close, require_refusal

QKV = ("q", "k", "v")
PACKED = (*QKV, "cu_seqlens_q", "cu_seqlens_k", "max_seqlen_q", "max_seqlen_k")


def parameters(function):
    return [(p.name, p.default) for p in inspect.signature(function).parameters.values()]


def defaults(text):
    """"a=1 b" as [("a", 1), ("b", None)]."""
    pairs = (word.partition("=") for word in text.split())
    return [(name, eval(value) if value else None) for name, _, value in pairs]


def required(names):
    return [(name, inspect.Parameter.empty) for name in names]


def sees_of_flash_attn(i, j, queries, keys, causal, window_size):
    """Whether query i sees key j, as that package's own text says it."""
    left, right = window_size
    own = i + keys - queries
    right = 0 if causal else right
    return (left < 0 or j >= own - left) and (right < 0 or j <= own + right)


def by_mask(q, k, v, sees, scale=None):
    """In float64, of {batch, length, heads, dim}; rows that see nothing are 0."""
    q, k, v = (t.double().transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for t in (k, v))
    visible = torch.tensor([[sees(i, j, q.shape[2], k.shape[2]) for j in range(k.shape[2])]
                            for i in range(q.shape[2])])
    scores = q @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    scores = scores.masked_fill(~visible, -math.inf)
    return (scores.softmax(-1).nan_to_num(0) @ v).transpose(1, 2)


def tensors(queries, keys, heads=4, kv_heads=2, dim=16):
    return (normal(2, queries, heads, dim), normal(2, keys, kv_heads, dim, seed=1),
            normal(2, keys, kv_heads, dim, seed=2))


class Signatures(unittest.TestCase):
    def test_flash_attn(self):
        rest = defaults("dropout_p=0.0 softmax_scale causal=False window_size=(-1,-1) softcap=0.0 "
                        "alibi_slopes deterministic=False return_attn_probs=False")
        self.assertEqual(parameters(flash_attn.flash_attn_func), required(QKV) + rest)
        self.assertEqual(parameters(flash_attn.flash_attn_varlen_func),
                         required(PACKED) + rest + defaults("block_table"))

    def test_flash_attn_interface(self):
        rest = defaults("softmax_scale causal=False qv q_descale k_descale v_descale "
                        "window_size=(-1,-1) attention_chunk=0 softcap=0.0 num_splits=1 pack_gqa "
                        "deterministic=False sm_margin=0 return_attn_probs=False")
        self.assertEqual(parameters(flash_attn_interface.flash_attn_func), required(QKV) + rest)
        self.assertEqual(parameters(flash_attn_interface.flash_attn_varlen_func),
                         required(PACKED) + defaults("seqused_q seqused_k") + rest)

    def test_pytorch(self):
        self.assertEqual(
            parameters(scaled_dot_product_attention),
            required(("query", "key", "value")) +
            defaults("attn_mask dropout_p=0.0 is_causal=False scale enable_gqa=False"))
        try:
            from torch.nn.attention.varlen import varlen_attn as theirs
        except ImportError as error:
            self.skipTest(str(error))
        if "is_causal" in inspect.signature(theirs).parameters:
            self.skipTest("PyTorch 2.10, which says a causal mask otherwise than later ones")
        self.assertEqual(parameters(varlen_attn), parameters(theirs))


class Masks(unittest.TestCase):
    def test_flash_attn(self):
        for queries, keys in ((7, 7), (4, 9), (9, 4)):
            for causal, window in ((False, (-1, -1)), (True, (-1, -1)), (True, (2, 0)),
                                   (False, (3, 0)), (False, (-1, 0)), (True, (3, 5))):
                q, k, v = tensors(queries, keys)
                wanted = by_mask(q, k, v, lambda *at, c=causal, w=window: sees_of_flash_attn(
                    *at, c, w))
                for package in (flash_attn, flash_attn_interface):
                    with self.subTest(package.__name__, queries=queries, causal=causal,
                                      window=window):
                        ours = package.flash_attn_func(q, k, v, causal=causal, window_size=window)
                        require_close(self, "result", ours, wanted, torch.float32)

    def test_pytorch(self):
        """Pairs with PyTorch, of as many queries as keys, of fewer, and of more."""
        for queries, keys in ((7, 7), (4, 9), (9, 4)):
            for causal in (False, True):
                q, k, v = (t.transpose(1, 2) for t in tensors(queries, keys))
                ours, theirs = leaves(q, k, v), leaves(*(t.double() for t in (q, k, v)))
                options = {"is_causal": causal, "scale": 0.3, "enable_gqa": True}
                out = scaled_dot_product_attention(*ours, **options)
                wanted = torch.nn.functional.scaled_dot_product_attention(*theirs, **options)
                with self.subTest(queries=queries, causal=causal):
                    require_close(self, "result", out.detach(), wanted.detach(), torch.float32)
                    out.square().sum().backward()
                    wanted.square().sum().backward()
                    for mine, exact in zip(ours, theirs):
                        require_close(self, "gradient", mine.grad / 8, exact.grad / 8,
                                      torch.float32)

    def test_without_a_batch(self):
        q = normal(3, 5, 16)
        wanted = torch.nn.functional.scaled_dot_product_attention(*[q.double()] * 3)
        require_close(self, "result", scaled_dot_product_attention(q, q, q), wanted, torch.float32)


class Answers(unittest.TestCase):
    def test_positions(self):
        """The fourth argument is dropout_p in one package, and softmax_scale in the other."""
        q, k, v = tensors(5, 5)
        wanted = reference.attention(q, k, v, scale=0.5, causal=True)[0]
        for ours in (flash_attn.flash_attn_func(q, k, v, 0.0, 0.5, True),
                     flash_attn_interface.flash_attn_func(q, k, v, 0.5, True)):
            require_close(self, "result", ours, wanted, torch.float32)

    def test_packed_tensors(self):
        q, k, v = tensors(6, 6, 4, 4)
        wanted = flash_attn.flash_attn_func(q, k, v, causal=True)
        self.assertTrue(torch.equal(wanted, flash_attn.flash_attn_qkvpacked_func(
            torch.stack([q, k, v], dim=2), causal=True)))
        self.assertTrue(torch.equal(wanted, flash_attn.flash_attn_kvpacked_func(
            q, torch.stack([k, v], dim=2), 0.0, None, True)))
        qkv = normal(9, 3, 4, 16)
        cu = torch.tensor([0, 4, 9], dtype=torch.int32)
        wanted = flash_attn.flash_attn_varlen_func(*qkv.unbind(1), cu, cu, 5, 5)
        self.assertTrue(torch.equal(wanted, flash_attn.flash_attn_varlen_qkvpacked_func(
            qkv, cu, 5)))
        self.assertTrue(torch.equal(wanted, flash_attn.flash_attn_varlen_kvpacked_func(
            qkv[:, 0], qkv[:, 1:], cu, cu, 5, 5)))

    def test_sequences_and_their_log_sum_exp(self):
        rows, ends = normal(9, 2, 16), [0, 4, 9]
        cu = torch.tensor(ends, dtype=torch.int32)
        out, lse = reference.packed(rows, rows, rows, ends, ends, causal=True)

        class Aux:
            lse = True

        for what, answer in (
                ("flash_attn", flash_attn.flash_attn_varlen_func(
                    rows, rows, rows, cu, cu, 5, 5, causal=True, return_attn_probs=True)),
                ("flash_attn_interface", flash_attn_interface.flash_attn_varlen_func(
                    rows, rows, rows, cu, cu, 5, 5, causal=True, return_attn_probs=True)),
                ("varlen_attn", varlen_attn(rows, rows, rows, cu, cu, 5, 5, window_size=(-1, 0),
                                            return_aux=Aux()))):
            require_close(self, what, answer[0], out, torch.float32)
            require_close(self, what, answer[1], lse, torch.float32)


class Refusals(unittest.TestCase):
    def test_what_cannot_be_honoured(self):
        q, k, v = tensors(5, 5)
        rows = normal(9, 2, 16)
        cu = torch.tensor([0, 4, 9], dtype=torch.int32)
        varlen = (rows, rows, rows, cu, cu, 5, 5)
        heads_first = [t.transpose(1, 2) for t in (q, k, v)]
        one = torch.ones(1)
        two, three = flash_attn, flash_attn_interface
        for name, call in (
                ("dropout_p is 0.1", lambda: two.flash_attn_func(q, k, v, 0.1)),
                ("alibi_slopes is a tensor {1}",
                 lambda: two.flash_attn_func(q, k, v, alibi_slopes=one)),
                ("window_size is (2, 2)", lambda: two.flash_attn_func(q, k, v, window_size=(2, 2))),
                ("window_size is (2, -1)",
                 lambda: three.flash_attn_func(q, k, v, window_size=(2, -1))),
                ("block_table", lambda: two.flash_attn_varlen_func(*varlen, block_table=one)),
                ("qv", lambda: three.flash_attn_func(q, k, v, qv=one)),
                ("q_descale", lambda: three.flash_attn_func(q, k, v, q_descale=one)),
                ("k_descale", lambda: three.flash_attn_func(q, k, v, k_descale=one)),
                ("v_descale", lambda: three.flash_attn_func(q, k, v, v_descale=one)),
                ("attention_chunk is 4", lambda: three.flash_attn_func(q, k, v, attention_chunk=4)),
                ("sm_margin is 8", lambda: three.flash_attn_func(q, k, v, sm_margin=8)),
                ("seqused_k", lambda: three.flash_attn_varlen_func(*varlen, seqused_k=one)),
                *((f"of {name} has a sequence of 5 rows, and max_lengths (or max_seqlen) says 4",
                   lambda package=package, longest=longest:
                       package.flash_attn_varlen_func(*varlen[:-2], *longest))
                  for package in (two, three)
                  for name, longest in (("queries", (4, 5)), ("keys", (5, 4)))),
                ("attn_mask", lambda: scaled_dot_product_attention(*heads_first, one)),
                ("enable_gqa is False", lambda: scaled_dot_product_attention(*heads_first)),
                ("dropout_p is 0.5",
                 lambda: scaled_dot_product_attention(*heads_first, dropout_p=0.5)),
                ("block_table", lambda: varlen_attn(*varlen, block_table=one)),
                ("cu_seq_k is None", lambda: varlen_attn(*varlen[:4], None, 5, 5))):
            with self.subTest(name):
                require_refusal(self, call, name)

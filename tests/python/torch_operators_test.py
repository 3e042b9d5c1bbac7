"""Every operator of torch.ops.tilewright by PyTorch's own checks: opcheck with tensors that lie in
many ways, and gradcheck in float64, which the interpreter computes."""

import unittest

import torch
from tilewright.torch import (
    attention,
    cross_entropy,
    gemm,
    layer_norm,
    linear,
    rms_norm,
    rotary,
    softmax,
)
from torch_reference import leaves, normal, opcheck, require_refusal

OPERATORS = torch.ops.tilewright
I32 = {"dtype": torch.int32}


def laid_out(tensor):
    """The same tensor as it may lie in memory, by what that is called."""
    size = tensor.shape
    apart = tensor.new_empty(*size[:-1], size[-1] + 3)[..., 1:size[-1] + 1].copy_(tensor)
    yield "contiguous", tensor
    yield "with gaps, behind an offset", apart
    if tensor.dim() > 1:
        yield "transposed", tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
        yield "expanded", tensor[:1].expand(size)


def numbers(*values):
    return torch.tensor(values, **I32)


def cases(rows):
    """Of each operator what it takes: floating tensors, then the rest. `rows` may be 0."""
    x, w, rest = normal(rows, 6), normal(6, seed=1), (False, 1e-5, "")
    stats = normal(rows, seed=2), normal(rows, seed=3).abs() + 0.5
    q, k, v = normal(2, rows, 2, 8), normal(2, 5, 1, 8, seed=1), normal(2, 5, 1, 4, seed=2)
    out, lse = OPERATORS.attention(q, k, v, None, None, None, False, 0, 0.0, 0.0, 0, 0, "")
    a, b, d_c = normal(rows, 6), normal(6, 4, seed=1), normal(rows, 4, seed=2)
    labels = torch.arange(rows) % 6
    pages = normal(4, 3, 1, 8, seed=1)
    table, lengths = numbers(0, 1, 2, 3).view(2, 2), numbers(4, 2)
    offsets = numbers(0, rows // 2, rows)
    paged = (offsets, lengths, table, None, None, False, 0, 0.0, 0.0, 0, None, "")
    fp8 = [tensor.to(torch.float8_e4m3fn) for tensor in (a, b, pages)]
    one = torch.ones(1)
    return {
        "attention": ((q, k, v), (None, None, None, True, 0, 0.0, 0.0, 0, 0, "")),
        "attention_backward": ((normal(*out.shape, seed=7), normal(*lse.shape, seed=8), q, k, v,
                                out, lse), (None, None, None, False, 0, 0.0, 0.0, "")),
        "attention_fp8": ((), (*(tensor.to(torch.float8_e4m3fn) for tensor in (q, k, v)),
                               torch.ones(2), one, one, False, 0.0, torch.bfloat16, "")),
        "kv_append": ((), (normal(rows, 1, 8), normal(rows, 1, 4), numbers(*[0] * rows),
                           numbers(*range(rows)), table, normal(4, 3, 1, 8),
                           normal(4, 3, 1, 4), normal(6, 2), None, None, "")),
        "kv_append_mla": ((), (normal(rows, 8), numbers(*[0] * rows), numbers(*range(rows)), table,
                               normal(4, 3, 8), normal(6, 2), "")),
        "attention_paged": ((normal(rows, 2, 8), pages, pages), paged),
        "attention_paged_fp8": ((normal(rows, 2, 8),), (fp8[2], fp8[2], one, one, *paged)),
        "attention_paged_mla": ((normal(rows, 2, 8), pages[:, :, 0]), (4, *paged)),
        "attention_paged_plan": ((), (offsets, lengths, 2, 1, 0, 0, False, "")),
        "merge_states": ((normal(3, rows, 2, 8), normal(3, rows, 2, seed=1)), ("",)),
        "gemm": ((a, b), ("",)),
        "linear": ((a, b, normal(4, seed=5), d_c), ("gelu", True, "")),
        "activation_backward": ((d_c, normal(rows, 4, seed=6)), ("silu", True, "")),
        "column_sums": ((d_c,), ("",)),
        "gemm_fp8": ((), (fp8[0], fp8[1], one, one, "")),
        "norm": ((x, w, None), rest),
        "norm_backward": ((normal(rows, 6, seed=4), x, w, *stats), (True, True, 1e-5, "")),
        "softmax": ((x,), ("",)),
        "softmax_backward": ((normal(rows, 6, seed=4), x.softmax(-1)), ("",)),
        "cross_entropy": ((x,), (labels, 0.1, -100, "")),
        "cross_entropy_backward": ((stats[0], x), (labels, x.logsumexp(-1), 0.1, -100, "")),
        "rotary": ((normal(1, rows, 2, 8),), (normal(9, 3), normal(9, 3, seed=1), None, False,
                                              False, "")),
    }


# Of these nobody asks for gradients: they have none, or have been checked with those that they are.
WITHOUT_GRADIENTS = {"attention_paged", "attention_paged_fp8", "attention_paged_mla",
                     "merge_states", "attention_backward",
                     "norm_backward", "softmax_backward", "cross_entropy_backward",
                     "activation_backward"}


OF_E4M3 = {"attention_fp8", "attention_paged_fp8", "gemm_fp8"}  # which PyTorch does not compare


class Opcheck(unittest.TestCase):
    def test_all_operators_are_here(self):
        defined = {name.partition("::")[2].partition(".")[0]
                   for name in torch._C._dispatch_get_all_op_names()
                   if name.startswith("tilewright::")}
        self.assertEqual(defined, set(cases(3)))

    def check(self, name, tensors, rest):
        if name not in WITHOUT_GRADIENTS and tensors:
            tensors = [None if tensor is None else tensor.detach().requires_grad_()
                       for tensor in tensors]
        how = {"test_utils": "test_faketensor"} if name in OF_E4M3 else {}
        opcheck(getattr(OPERATORS, name).default, (*tensors, *rest), error=1e-4, **how)

    def test_ways_to_lie(self):
        for name, (tensors, rest) in cases(4).items():
            ways = [list(laid_out(tensor)) for tensor in tensors if tensor is not None]
            for how in dict(ways[0]) if ways else ["contiguous"]:
                with self.subTest(name, how=how):
                    self.check(name, [None if tensor is None else
                                      dict(laid_out(tensor)).get(how, tensor)
                                      for tensor in tensors], rest)

    def test_no_rows_and_one(self):
        for rows in (0, 1):
            for name, (tensors, rest) in cases(rows).items():
                with self.subTest(name, rows=rows):
                    self.check(name, tensors, rest)

    def test_bf16_and_f16(self):
        """The schema, and what a fake tensor says."""
        for dtype in (torch.bfloat16, torch.float16):
            for name, (tensors, rest) in cases(4).items():
                tests = "test_faketensor" if name in OF_E4M3 else ("test_schema", "test_faketensor")
                beside = {"norm_backward": 3, "attention_backward": 6,
                          "merge_states": 1}.get(name, 9)  # f32 from here
                given = [tensor if tensor is None or i >= beside or (
                    name, i) in (("attention_backward", 1), ("cross_entropy_backward", 0))
                    else tensor.to(dtype) for i, tensor in enumerate(tensors)]
                with self.subTest(name, dtype=dtype):
                    opcheck(getattr(OPERATORS, name).default, (*given, *rest),
                            test_utils=tests)


class Float64(unittest.TestCase):
    """By the interpreter, so that differences are those of the formula and not of rounding."""

    def gradients_agree(self, function, *tensors):
        self.assertTrue(torch.autograd.gradcheck(
            function, leaves(*(tensor.double() for tensor in tensors)), eps=1e-6, atol=1e-8,
            rtol=1e-6, nondet_tol=0.0))

    def test_attention(self):
        q, k, v = normal(1, 4, 2, 4), normal(1, 5, 1, 4, seed=1), normal(1, 5, 1, 3, seed=2)
        for options in ({}, {"causal": True}, {"causal": True, "window": 2, "softcap": 1.5},
                        {"scale": 0.7}):
            with self.subTest(options):
                self.gradients_agree(lambda *given, options=options: attention(
                    *given, target="interpreter", return_lse=True, **options), q, k, v)
        self.gradients_agree(lambda q, k, v, sinks: attention(
            q, k, v, sinks=sinks, causal=True, target="interpreter", return_lse=True), q, k, v,
            normal(2, seed=3))

    def test_packed(self):
        offsets = numbers(0, 1, 4), numbers(0, 2, 5)  # each row sees a key
        self.gradients_agree(lambda q, k, v: attention(
            q, k, v, cu_seqlens=offsets, causal=True, target="interpreter", return_lse=True),
            normal(4, 2, 4), normal(5, 1, 4, seed=1), normal(5, 1, 3, seed=2))

    def test_products(self):
        a, b = normal(3, 4), normal(4, 5, seed=1)
        self.gradients_agree(lambda a, b: gemm(a, b, target="interpreter"), a, b)
        self.gradients_agree(lambda a, b: gemm(a, b.t(), target="interpreter"), a,
                             b.t().contiguous())
        for activation in (None, "relu", "gelu", "gelu_tanh", "silu"):
            with self.subTest(activation):
                self.gradients_agree(lambda x, w, bias, residual, activation=activation: linear(
                    x, w, bias, activation=activation, residual=residual, target="interpreter"),
                    a, b.t(), normal(5, seed=2), normal(3, 5, seed=3))
        self.assertTrue(torch.autograd.gradgradcheck(
            lambda a, b: gemm(a, b, target="interpreter"),
            leaves(a.double(), b.double()), atol=1e-7))

    def test_rows(self):
        x, w, bias = normal(3, 5), normal(5, seed=1), normal(5, seed=2)
        how = {"target": "interpreter"}
        self.gradients_agree(lambda x, w: rms_norm(x, w, **how), x, w)
        self.gradients_agree(lambda x, w, b: layer_norm(x, w, b, **how), x, w, bias)
        self.gradients_agree(lambda x: layer_norm(x, **how), x)
        self.gradients_agree(lambda x: softmax(x, **how), x)
        self.gradients_agree(lambda x: softmax(x, dim=0, **how), x)
        labels = torch.tensor([4, -100, 0])
        for reduction in ("mean", "sum", "none"):
            self.gradients_agree(lambda x, reduction=reduction: cross_entropy(
                x, labels, label_smoothing=0.2, reduction=reduction, **how), x)
        angles = normal(7, 2, seed=3).double()
        for interleaved in (False, True):
            self.gradients_agree(lambda x, interleaved=interleaved: rotary(
                x, angles.cos(), angles.sin(), interleaved=interleaved,
                positions=numbers(6, 0, 3).view(1, 3), **how), normal(1, 3, 2, 6))

    def test_results_are_those_of_float64(self):
        x = normal(3, 50).double()
        ours = softmax(x, target="interpreter")
        self.assertEqual(ours.dtype, torch.float64)
        self.assertLess((ours - x.softmax(-1)).abs().max().item(), 1e-15)

    def test_other_targets_refuse_it(self):
        x = normal(3, 5).double()
        for call in (lambda: softmax(x), lambda: gemm(x, x.t(), target="cpu"),
                     lambda: attention(*[x.view(1, 3, 1, 5)] * 3)):
            require_refusal(self, call, "torch.float64", "target='interpreter' alone")

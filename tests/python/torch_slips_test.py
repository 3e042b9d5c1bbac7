"""What a newcomer gets wrong: each call is an error of Python's that names the argument, its value
and the fix."""

import copy
import pathlib
import pickle
import tempfile
import unittest
from functools import partial

import tilewright
import torch
from tilewright.torch import (
    attention,
    attention_paged,
    attention_paged_mla,
    attention_paged_plan,
    bert_padding,
    cross_entropy,
    cu_seqlens,
    distributed,
    flash_attn,
    flash_attn_interface,
    gemm,
    gemm_fp8,
    kv_append,
    layer_norm,
    linear,
    pad,
    rms_norm,
    rotary,
    scaled_dot_product_attention,
    softmax,
    unpad,
    varlen_attn,
)
from torch.autograd import forward_ad
from torch_reference import normal, require_refusal

GEMM = pathlib.Path(__file__).resolve().parents[1] / "kernels/goldens/gemm.tw"
I32, FP8 = torch.int32, torch.float8_e4m3fn


def kernel(name="gemm", **options):
    return tilewright.Kernel(name, target="cpu", dtype="f32", **options)


def zeros(*shape, dtype=torch.int64):
    return torch.zeros(shape, dtype=dtype)



def read_only(*shape):
    array = torch.zeros(shape).numpy()
    array.flags.writeable = False
    return array


Q, K, X, W = normal(2, 8, 4, 16), normal(2, 8, 2, 16), normal(4, 8), normal(8)
PAGES, ANGLES, CACHE = normal(4, 4, 2, 16), normal(8, 8), {"causal": True}
PADDED = normal(2, 3, 4)


def paged(table=0, lengths=(1, 2), **options):
    return attention_paged(Q[:, :1], PAGES, PAGES, torch.full((2, 2), table, dtype=I32),
                           torch.tensor(lengths, dtype=I32), **options)


class OnGpu:
    __cuda_array_interface__ = {"data": (64, False), "shape": (4, 4), "strides": None,
                                "typestr": "<f4", "version": 3}


class Slips(unittest.TestCase):
    def refused(self, call, *parts):
        with self.subTest(parts[0]):
            require_refusal(self, call, *parts)

    def test_kernels(self):
        multiply, closed = kernel(), kernel()
        closed.close()
        for call, *parts in (
                (lambda: tilewright.Kernel("gem"), "no kernel 'gem'; the nearest name is gemm\n"),
                (lambda: kernel(dtypes="f32"), "no option 'dtypes'", "dtype"),
                (lambda: tilewright.Kernel("gemm", target="cpu", dtype="float32"),
                 "dtype = 'float32'", "f32"),
                (lambda: tilewright.Kernel("gemm", target="gpu"), "no target 'gpu'", "cuda"),
                (lambda: tilewright.Kernel("gemm", target=torch.device("cpu")),
                 "the target of a kernel is device(type='cpu')", "'cpu'"),
                (lambda: tilewright.Kernel(None), "the name of a kernel is None"),
                (lambda: tilewright.Kernel("gemm\0s"), "the name of a kernel is", "no NUL"),
                (lambda: tilewright.Kernel("\udc80"), "the name of a kernel is", "characters"),
                (lambda: tilewright.Kernel("gemm", dtype="f32\0"), "the options of a kernel are"),
                (lambda: multiply(X, X), "gemm takes 3 tensors, and 2", "A, B, C; outputs too"),
                (lambda: multiply(X, [[1.0]], X), "gemm: B: list"),
                (lambda: multiply(X.double(), X, X), "gemm: A: ", "float64",
                 "fix: convert it to f32"),
                (lambda: tilewright.set_log(3), "log is 3", "a function"),
                (lambda: multiply(X.bfloat16(), X, X), "A is bf16", "f32"),
                (lambda: multiply(X, normal(4, 7), X), "k is 8", "7 by axis 1 of B"),
                (lambda: multiply(X.to("meta"), X, normal(4, 4)), "A has no data"),
                (lambda: multiply(X.to_sparse(), X, normal(4, 4)),
                 "gemm: A: Tensor", "torch.sparse_coo", "to_dense"),
                (lambda: closed(X, X, normal(4, 4)), "gemm was closed", "another Kernel"),
                (lambda: multiply(b"12345678", X, X), "gemm: A: bytes", "read-only", "bytearray"),
                (lambda: multiply(X, X.clone().requires_grad_(), X),
                 "gemm: B requires a gradient, and a Kernel records none", "B.detach()"),
                (lambda: tilewright.Kernel("gemm", device="cuda:0"), "device is 'cuda:0'"),
                (lambda: multiply(X, X, X, stream="s"), "gemm: stream is 's'"),
                (lambda: multiply(X, X, read_only(4, 4)), "gemm: C is written", "read-only"),
                (lambda: multiply(X, X, OnGpu()), "gemm: C lies on a GPU", "target cuda"),
                (lambda: tilewright.load(None), "load is given None", ".tw"),
                (lambda: tilewright.load("nothing.tw"), "nothing.tw cannot be read"),
                (lambda: tilewright.load(__file__), "is no plug-in"),
                (lambda: tilewright.load_library("/nowhere.so"), "/nowhere.so"),
                (lambda: tilewright.load_library("libc.so.6"), "libc.so.6 has no function",
                 "TILEWRIGHT_LIBRARY")):
            self.refused(call, *parts)

    def test_own_kernels(self):
        a, b = normal(4, 8, dtype=torch.bfloat16), normal(3, 8, dtype=torch.bfloat16)
        load, multiply = tilewright.load, tilewright.load(GEMM)
        with tempfile.NamedTemporaryFile(suffix=".tw") as binary:
            binary.write(bytes(range(256)))
            binary.flush()
            self.refused(lambda: load(binary.name), "cannot be read: it is no text")
        for call, *parts in (
                (lambda: load(GEMM, "other"), "has no kernel other", "leave name out"),
                (lambda: load(GEMM, target=torch.device("cpu")), "target is device(", "'cpu'"),
                (lambda: load(GEMM, device="cuda:0"), "device is 'cuda:0'", "number of a GPU"),
                (lambda: load(GEMM, schedule="stages=3"), "schedule is 'stages=3'", "dict"),
                (lambda: load(GEMM, gradient=3), "gradient is 3", "file"),
                (lambda: load(GEMM, gradient=GEMM, gradients=["dA"]), "gradients is ['dA']"),
                (lambda: load(GEMM, gradient=GEMM), "computes no gradient of gemm", "dX"),
                (lambda: multiply(a, None), "gemm: B: NoneType"),
                (lambda: multiply(a, 3.0), "gemm: B: float"),
                (lambda: multiply(a, b, out="C"), "gemm: C: str"),
                (lambda: multiply(a, b, out=read_only(4, 3)), "gemm: C is written", "read-only"),
                (lambda: multiply(a.to_sparse(), b), "gemm: A is torch.sparse_coo", "to_dense"),
                (lambda: multiply(a.to("meta"), b), "gemm: A is on meta", "CPU"),
                (lambda: multiply(a, b, stream="s"), "stream is 's'", "cuda_stream"),
                (lambda: multiply.check("ref", a, b), "reference is 'ref'", "function"),
                (lambda: multiply.check(lambda a, b: a @ b.t(), a, b, tolerance="1"),
                 "tolerance is '1'", "number"),
                (lambda: multiply.check(lambda a, b: (a @ b.t())[:2], a, b),
                 "C of the reference is of the shape (2, 3)", "(4, 3)"),
                (lambda: multiply.check(lambda a, b: None, a, b), "the reference is NoneType")):
            self.refused(call, *parts)
        self.assertTrue(multiply.check(lambda a, b: a @ b.t(), a, b))

    def test_reports(self):
        for call, *parts in (
                (lambda: tilewright.simulate("gem"), "no kernel 'gem'; the nearest name is gemm\n"),
                (lambda: tilewright.simulate("gemm", m="many"), "m = 'many'"),
                (lambda: tilewright.time("gemm", target="cpu", m=-1), "m = '-1'"),
                (lambda: tilewright.tune("gemm", sizes={"q": 1}, model_only=True),
                 "no length 'q'")):
            self.refused(call, *parts)

    def test_ways_to_differentiate(self):
        def tangent():
            with forward_ad.dual_level():
                return attention(forward_ad.make_dual(Q, Q), K, K)

        attention(Q, K, K)  # later calls are like an earlier one
        for call in (tangent, lambda: torch.func.jvp(lambda q: attention(q, K, K), (Q,), (Q,)),
                     lambda: torch.func.jvp(softmax, (X,), (X,))):
            self.refused(call, "in forward mode", "torch.autograd.grad")
        for function in (lambda q: attention(q, K, K).sum(), lambda q: softmax(q).sum()):
            self.refused(lambda f=function: torch.func.grad(f)(Q), "torch.func differentiates",
                         "torch.autograd.grad")
        with forward_ad.dual_level():  # of others alone
            self.assertEqual(attention(Q, K, K).shape, Q.shape)

    def test_copies_of_kernels(self):
        for again in (copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))):
            product = zeros(4, 4, dtype=torch.float32)
            again(kernel())(X, X, product)
            self.assertTrue(torch.allclose(product, X @ X.t()))

    def test_attention(self):
        offsets = torch.tensor([0, 8], dtype=I32)
        for call, *parts in (
                (lambda: attention(Q.tolist(), K, K), "q is of type list"),
                (lambda: attention(Q.numpy(), K, K), "q is of type ndarray"),
                (lambda: attention(Q.int(), K, K), "q has elements of torch.int32", "bfloat16"),
                (lambda: attention(Q.bfloat16(), K, K), "k has elements of torch.float32",
                 "convert k to torch.bfloat16"),
                (lambda: attention(Q, K.to("meta"), K), "k is on meta"),
                (lambda: attention(Q.to_sparse(), K, K), "q is torch.sparse_coo", "to_dense"),
                (lambda: attention(Q[0], K, K), "q has 3 axes: {8, 4, 16}", "{batch, length"),
                (lambda: attention(Q, *[K[:, :, :1].expand(2, 8, 3, 16)] * 2), "4 heads", "3"),
                (lambda: attention(Q, *[K[:, :, :1].expand(2, 8, 8, 16)] * 2), "4 heads", "8"),
                (lambda: attention(Q, K, Q), "number of heads of v is 4", "2"),
                (lambda: attention(Q, K, K, causal="no"), "causal is 'no'", "True or False"),
                (lambda: attention(Q, K, K, window=-1, **CACHE), "window is -1", "None"),
                (lambda: attention(Q, K, K, window=2.5, **CACHE), "window is 2.5"),
                (lambda: attention(Q, K, K, window=True, **CACHE), "window is True"),
                (lambda: attention(Q, K, K, window=(2, 0), **CACHE), "window is (2, 0)"),
                (lambda: attention(Q, K, K, window=2), "causal is False", "causal=True"),
                (lambda: attention(Q, K, K, scale="1"), "scale is '1'"),
                (lambda: attention(Q, K, K, scale=W), "scale is a tensor {8}"),
                (lambda: attention(Q, K, K, softcap=None), "softcap is None"),
                (lambda: attention(Q, K, K, scale=float("inf")), "scale is inf"),
                (lambda: attention(Q, K, K, layout="sbhd"), "layout is 'sbhd'", "bshd"),
                (lambda: attention(Q, K, K, target="gpu"), "no target 'gpu'"),
                (lambda: attention(Q, K, K, target=torch.device("cpu")), "target is device("),
                (lambda: attention(torch.nested.nested_tensor([Q[0], Q[1]]), K, K),
                 "q is a nested tensor", "cu_seqlens"),
                (lambda: attention(Q, K, K, target="cuda"), "target is cuda", "on cpu"),
                (lambda: attention(Q, K, K, sinks=[0.0]), "sinks is of type list"),
                (lambda: attention(Q[0], K[0], K[0], cu_seqlens=[0, 8]), "cu_seqlens is of int"),
                (lambda: attention(Q[0], K[0], K[0], cu_seqlens=offsets.long()), "torch.int64"),
                (lambda: attention(Q[0], K[0], K[0], cu_seqlens=offsets + 1), "[1, 9], of 8 rows"),
                (lambda: attention(Q[0], K[0], K[0], cu_seqlens=offsets - 1), "[-1, 7], of 8 rows"),
                (lambda: attention(Q[0], K[0], K[0],
                                   cu_seqlens=torch.tensor([0, 5, 4, 8], dtype=I32)),
                 "[0, 5, 4, 8], of 8 rows", "ascend"),
                (lambda: attention(Q[0], K[0], K[0], cu_seqlens=offsets, max_lengths=(8, 5)),
                 "keys has a sequence of 8 rows, and max_lengths (or max_seqlen) says 5"),
                (lambda: attention(Q[0], K[0], K[0], cu_seqlens=offsets, max_lengths="8"),
                 "max_lengths is '8'"),
                (lambda: attention(Q[0], K[0], K[0], cu_seqlens=offsets, max_lengths=(8, 8, 8)),
                 "max_lengths has 3 numbers")):
            self.refused(call, *parts)
        # A packed call before does not make a dense one of its tensors right.
        attention(Q[0], K[0], K[0], cu_seqlens=offsets)
        self.refused(lambda: attention(Q[0], K[0], K[0]), "q has 3 axes")
        for batch, keys in ((0, 8), (2, 0)):  # nothing is no mistake
            out = attention(Q[:batch], K[:batch, :keys], K[:batch, :keys])
            self.assertTrue(torch.equal(out, torch.zeros(batch, 8, 4, 16)))

    def test_pages(self):
        rows, at, table = PAGES[:1, 0], zeros(1, dtype=I32), zeros(1, 1, dtype=I32)
        for call, *parts in (
                (lambda: attention_paged(Q, PAGES, PAGES, [[0]], [1]), "block_table is of list"),
                (lambda: paged(9), "block_table has 9", "4 pages"),
                (lambda: paged(4), "block_table has 4", "4 pages"),
                (lambda: attention_paged_mla(Q, PAGES[:, :, 0], zeros(2, 2, dtype=I32),
                                             zeros(2, dtype=I32), scale=1.0, dim_v=0),
                 "dim_v is 0", "16"),
                (lambda: paged(-2), "block_table has -2"),
                (lambda: paged(0, (1, 99)), "lengths has 99", "room for 8 keys"),
                (lambda: paged(0, (1, -1)), "lengths has -1"),
                (lambda: paged(fixed_split_size=None), "fixed_split_size is None", "64"),
                (lambda: paged(fixed_split_size=65), "fixed_split_size is 65", "64"),
                (lambda: kv_append(rows, rows, PAGES, PAGES[:, :1], at, at, table),
                 "the page of v_cache is 1, and that of k_cache is"),
                (lambda: kv_append(rows.clone().requires_grad_(), rows, PAGES, PAGES, at, at,
                                   table), "kv_append has no gradients, and k requires one"),
                (lambda: kv_append(rows, rows, PAGES, PAGES.clone().requires_grad_(), at, at,
                                   table), "v_cache requires one", "no_grad"),
                (lambda: attention_paged_plan([1], heads=4, kv_heads=2), "lengths is of list"),
                (lambda: attention_paged_plan(zeros(2, dtype=I32), heads=4, kv_heads=3),
                 "heads 4", "kv_heads 3")):
            self.refused(call, *parts)
        paged(9, (0, 0))  # what no key lies in may say anything
        lengths = torch.tensor([70, 0, 500], dtype=I32)
        self.assertTrue(torch.equal(
            attention_paged_plan(lengths, heads=4, kv_heads=2, queries=99),
            attention_paged_plan(lengths, heads=4, kv_heads=2,
                                 cu_seqlens=99 * torch.arange(4, dtype=I32))))

    def test_products(self):
        narrow = X.to(FP8)
        for call, *parts in (
                (lambda: gemm(None, X), "a is of type NoneType"),
                (lambda: gemm(X, W), "b has 1 axis: {8}", "{k, n}"),
                (lambda: gemm(X, X), "the k of b is 4", "8"),
                (lambda: gemm(X.int(), X.t().int()), "a has elements of torch.int32"),
                (lambda: gemm(PADDED, PADDED), "b has 3 axes"),
                (lambda: gemm(X, X.t(), bias=1.0), "bias is of type float"),
                (lambda: gemm(X, X.t(), bias=normal(4, 1)), "bias has 2 axes"),
                (lambda: gemm(X, X.t(), residual=normal(1, 4)), "the m of residual is 1"),
                (lambda: gemm(X, X.t(), activation="tanh"), "activation is 'tanh'", "relu"),
                (lambda: linear(X, None), "weight is of type NoneType"),
                (lambda: linear(X, normal(8, 4)), "the k of weight is 4", "x is 8"),
                (lambda: linear(X, X.bfloat16()), "weight has elements of torch.bfloat16"),
                (lambda: gemm_fp8(X, X.t(), W, W), "a has elements of torch.float32", "e4m3fn"),
                (lambda: gemm_fp8(narrow, X.t().to(torch.float8_e5m2), W, W),
                 "b has elements of torch.float8_e5m2", "convert b to torch.float8_e4m3fn"),
                (lambda: gemm_fp8(narrow, narrow.t(), 1.0, 1.0), "scale_a is of type float")):
            self.refused(call, *parts)

    def test_rows(self):
        labels = zeros(4)
        for call, *parts in (
                (lambda: rms_norm(X, (8,)), "weight is of type tuple"),
                (lambda: rms_norm(X, normal(4)), "length of weight is 4", "8"),
                (lambda: rms_norm(X.bfloat16(), W), "weight has elements of torch.float32"),
                (lambda: rms_norm(X, W, eps=-1), "eps is -1"),
                (lambda: rms_norm(X, W, eps=None), "eps is None"),
                (lambda: rms_norm(torch.tensor(1.0)), "x has 0 axes"),
                (lambda: layer_norm(X, 8), "weight is of type int"),
                (lambda: softmax(X > 0), "x has elements of torch.bool"),
                (lambda: softmax(X, dim=2), "dim is 2", "from -2 to 1"),
                (lambda: softmax(X, dim=None), "dim is None"),
                (lambda: cross_entropy(X, [0]), "labels is of list"),
                (lambda: cross_entropy(X, labels.int()), "labels is of torch.int32"),
                (lambda: cross_entropy(X, labels + 8), "labels has 8, of 8"),
                (lambda: cross_entropy(X, labels - 1), "labels has -1, of 8"),
                (lambda: cross_entropy(X, labels, reduction="avg"), "reduction is 'avg'"),
                (lambda: cross_entropy(X, labels, label_smoothing=2), "label_smoothing is 2"),
                (lambda: cross_entropy(X, labels, label_smoothing=None), "label_smoothing is None"),
                (lambda: cross_entropy(X, labels, ignore_index=None), "ignore_index is None"),
                (lambda: cross_entropy(PADDED, zeros(2, 4)), "labels is {2, 4}", "{2, 3, 4}"),
                (lambda: rotary(X, ANGLES, ANGLES), "x has 2 axes"),
                (lambda: rotary(Q, None, None), "cos is of type NoneType"),
                (lambda: rotary(Q, ANGLES[:4], ANGLES[:4]), "8 tokens", "4 positions"),
                (lambda: rotary(Q, ANGLES, ANGLES, positions=[0]), "positions is of type list"),
                (lambda: rotary(Q[0], ANGLES, ANGLES, positions=[0]), "positions is of type list"),
                (lambda: rotary(Q, ANGLES, ANGLES, positions=zeros(2, 8)), "of torch.int64"),
                (lambda: rotary(Q, ANGLES, ANGLES, positions=zeros(2, 8, dtype=I32) + 8),
                 "positions has 8, of 8")):
            self.refused(call, *parts)
        for rows in range(8):
            angles, positions = ANGLES[:rows], zeros(2, 8, dtype=I32) + rows
            self.refused(partial(rotary, Q, angles, angles, positions=positions),
                         f"positions has {rows}, of {rows}")

    def test_packing(self):
        for call, *parts in (
                (lambda: unpad([1], [1]), "x is of type list"),
                (lambda: unpad(PADDED, [[1]]), "mask is of type list"),
                (lambda: unpad(PADDED, torch.ones(2, 4)), "mask is {2, 4}"),
                (lambda: unpad(PADDED, torch.tensor([4, 1])), "a length is 4", "at most 3"),
                (lambda: unpad(PADDED, torch.ones(2, 3), total=2), "total is 2", "6 tokens"),
                (lambda: unpad(PADDED, torch.ones(2, 3), total=6.0), "total is 6.0"),
                (lambda: cu_seqlens([1, 2]), "lengths is of type list"),
                (lambda: cu_seqlens(torch.tensor([1.0])), "torch.float32"),
                (lambda: cu_seqlens(torch.tensor([1, -2])), "a length is -2"),
                (lambda: pad(None, zeros(3), 1, 3), "packed is of type NoneType"),
                (lambda: pad(X, 2, 3, 4), "places is of type int"),
                (lambda: pad(X, zeros(4), None, 4), "batch is None"),
                (lambda: pad(X, torch.tensor([0, 1, 2, 13]), 3, 4), "places has 13", "has 12"),
                (lambda: pad(X, torch.tensor([0, -1, 2, 3]), 3, 4), "places has -1"),
                (lambda: bert_padding.unpad_input(PADDED, None), "attention_mask is of type")):
            self.refused(call, *parts)

    def test_others_names(self):
        flash, cached = flash_attn.flash_attn_func, flash_attn.flash_attn_with_kvcache
        swapped = [tensor.transpose(1, 2) for tensor in (Q, K, K)]
        for call, *parts in (
                (lambda: flash(Q, K, K, 0.1), "dropout_p is 0.1", "0"),
                (lambda: flash(Q, K, K, window_size=3), "window_size is 3", "(left, right)"),
                (lambda: flash(Q, K, K, window_size=(1.5, 0)), "window_size is 1.5"),
                (lambda: flash_attn.flash_attn_qkvpacked_func(Q), "qkv is a tensor {2, 8, 4, 16}",
                 "3 along axis 2"),
                (lambda: cached(Q[:, :1], K, K, cache_seqlens=torch.tensor([8, 8])),
                 "cache_seqlens is of torch.int64", "int32"),
                (lambda: cached([0], K, K), "q is of type list"),
                (lambda: cached(Q[:, :1], None, K), "k_cache is of type NoneType"),
                (lambda: cached(Q[:, :1], K, K[:, :4]), "the length of v_cache is 4", "8"),
                (lambda: cached(Q[:, :1], K, K, K[:, :2], K[:, :1], cache_seqlens=3),
                 "the length of v is 1, and that of k is 2"),
                (lambda: cached(Q, K[:1], K[:1]), "the batch of k_cache is 1", "2"),
                (lambda: cached(Q[:, :1], K, K, cache_seqlens=9), "cache_seqlens has 9", "8 keys"),
                (lambda: cached(Q[:, :1], K, K, cache_seqlens=zeros(3, dtype=I32)),
                 "the batch of cache_seqlens is 3", "2"),
                (lambda: cached(Q[:, :1], K, K, cache_batch_idx=[0, 1]), "cache_batch_idx is of"),
                (lambda: cached(Q[:, :1], K, K, cache_batch_idx=zeros(2) + 5),
                 "cache_batch_idx has 5, of 2"),
                (lambda: cached(Q[:, :1], K, K, block_table=zeros(2, dtype=I32)),
                 "block_table is a tensor {2}", "most pages"),
                (lambda: flash_attn_interface.flash_attn_with_kvcache(
                    Q[:, :1], K, K, page_table=[0]), "page_table is of list"),
                (lambda: cached(Q[:, :1], K, K, K[:1, :1], K[:1, :1], cache_seqlens=1),
                 "the batch of k is 1", "2"),
                (lambda: cached(Q[:, :1], K, K, Q[:, :1], Q[:, :1], cache_seqlens=1),
                 "the number of heads of k is 4", "the cache is 2"),
                (lambda: flash_attn.flash_attn_varlen_func(
                    Q[0], K[0], K[0], *[zeros(2, dtype=I32)] * 2, None, 8), "max_seqlen_q is None"),
                (lambda: cached(Q[:, :1], K, K, K[:, :1], K[:, :1], cache_seqlens=8),
                 "1 rows behind 8", "room for 8"),
                (lambda: cached(Q[:, :1], K, K, *[K[:, :1].bfloat16()] * 2, cache_seqlens=1),
                 "k has elements of torch.bfloat16, and the cache"),
                (lambda: scaled_dot_product_attention(1, 2, 3), "query is of type int"),
                (lambda: scaled_dot_product_attention(X, X, X), "query has 2 axes"),
                (lambda: scaled_dot_product_attention(*swapped), "enable_gqa"),
                (lambda: scaled_dot_product_attention(Q, Q, Q, X), "attn_mask is a tensor {4, 8}"),
                (lambda: varlen_attn(1, 2, 3, None, None, 8, 8), "query is of type int")):
            self.refused(call, *parts)

    def test_ranks(self):
        for call, *parts in (
                (lambda: distributed.join(), "no process group", "init_process_group"),
                (lambda: distributed.gemm_reduce_scatter(X, X.t(), group=None), "group is None",
                 "join()"),
                (lambda: distributed.join("world"), "process_group is 'world'", "new_group"),
                (lambda: distributed.explain(None), "group is None", "join()"),
                (lambda: distributed.empty(None, (3,), torch.float32, "x"), "group is None"),
                (lambda: distributed.shard(X, "a", 2), "dim is 'a'"),
                (lambda: distributed.unshard([X, X], 7), "dim is 7, and a shard is {4, 8}"),
                (lambda: distributed.unshard([], 0), "shards are none"),
                (lambda: distributed.shard([1], 0, 2), "whole is of type list"),
                (lambda: distributed.shard(X, 5, 2), "dim is 5", "{4, 8}"),
                (lambda: distributed.unshard(X, 0), "shards is a tensor {4, 8}", "list")):
            self.refused(call, *parts)

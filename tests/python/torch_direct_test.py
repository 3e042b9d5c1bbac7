"""Calls of tilewright.torch.attention that go to the kernels without PyTorch's dispatcher: the same
results, and only where nobody else has a part in them. And which kernel a call takes."""

import contextlib
import sys
import threading
import unittest
import weakref
from unittest import mock

import torch
from tilewright import TilewrightError
from tilewright.torch import (
    _attention,
    _direct,
    _paged,
    _run,
    attention,
    attention_paged,
    attention_paged_mla,
    attention_paged_plan,
)
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


class Ways(unittest.TestCase):
    """Calls by ctypes; those of the library's own are in classes of their own."""

    in_c = False

    def setUp(self):
        _direct.forget()
        if self.in_c and not _direct._functions():
            self.skipTest("PyTorch describes no tensors in C")
        if not self.in_c:
            for name, value in (("_in_c", ()), ("call", _direct._in_python)):
                patch = mock.patch.object(_direct, name, value)
                patch.start()
                self.addCleanup(patch.stop)

    @contextlib.contextmanager
    def counted(self):
        """A list of what calls without the dispatcher give."""
        call, results = _direct.call, []

        def counted(*given):
            found = call(*given)
            if found is not None:
                results.append(found)
            return found

        with mock.patch.object(_direct, "call", counted):
            yield results

    def runs(self, *given, **how):
        """What attention gives, and how many runs it made without the dispatcher."""
        with self.counted() as found:
            return attention(*given, **how), len(found)


class Direct(Ways):

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
            if not self.in_c:
                self.assertEqual(allocated.call_count, 2 if how else 1)
        self.assertTrue(torch.equal(ours[0], wanted) and torch.equal(ours[1], lse))
        others = attention(*given, return_lse=True)[1]
        self.assertNotEqual(others.data_ptr(), ours[1].data_ptr())

    def test_a_large_log_sum_exp_that_nobody_asks_for(self):
        given = operands()
        with mock.patch.object(_direct, "_MOST_UNREAD", 1):
            wanted = attention(*given)
            out, direct = self.runs(*given)
        self.assertEqual(direct, 1)
        self.assertTrue(torch.equal(out, wanted))

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
            _direct.forget()
            wanted, direct = self.runs(*given, **how)
            self.assertEqual(direct, 0)
            self.assertTrue(torch.equal(ours, wanted) and torch.equal(again, wanted))

    def test_a_call_without_a_setting_is_none_with_it(self):
        given = operands()
        wanted = attention(*given)
        for how in ({"scale": 2.0}, {"softcap": 2.0}, {"causal": True},
                    {"causal": True, "window": 3}):
            _direct.forget()
            attention(*given, **how)
            ours, direct = self.runs(*given)
            self.assertEqual(direct, 0)
            self.assertTrue(torch.equal(ours, wanted), how)

    def test_a_setting_whose_hash_calls(self):
        q, k, v = operands()
        others = [tensor[:, :5] for tensor in (q, k, v)]
        wanted = attention(q, k, v, scale=0.5)

        class Scale(float):
            def __hash__(self):
                attention(*others, scale=0.5)
                return super().__hash__()

        for _ in range(2):
            self.assertTrue(torch.equal(attention(q, k, v, scale=Scale(0.5)), wanted))

    def test_threads_call_at_once(self):
        q, k, v = operands()
        kinds = [(q[:, :rows], k, v) for rows in range(1, 7)]
        wanted = [attention(*kind, causal=True) for kind in kinds]
        wrong = []

        def work(first):
            for turn in range(120):
                number = (first + turn) % len(kinds)
                if not torch.equal(attention(*kinds[number], causal=True), wanted[number]):
                    wrong.append(number)
                if turn % 7 == first:
                    _direct.forget()

        threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_calls_keep_nothing(self):
        given = operands()
        others = [*given, _direct.call, torch.empty_like, torch.is_grad_enabled]
        stopped = [tensor.clone() for tensor in given]
        for tensor in stopped:
            tensor.untyped_storage().resize_(0)

        def calls(count):
            for _ in range(count):
                attention(*given)
                attention(*given, return_lse=True)
                for wrong in (stopped, (given[0], 1, given[2]), (given[0].to("meta"), *given[1:])):
                    with self.assertRaises(RuntimeError):
                        attention(*wrong)

        calls(3)
        before = [sys.getrefcount(each) for each in others]
        calls(100)
        self.assertEqual([sys.getrefcount(each) for each in others], before)
        tensors = [weakref.ref(tensor) for tensor in given]
        given.clear()
        others.clear()
        self.assertEqual([tensor() for tensor in tensors], [None] * 3)

    def test_few_calls_are_remembered(self):
        q, k, v = operands()
        with mock.patch.object(_direct, "MOST_CALLS", 3):
            for keys, wanted in ((1, 0), (2, 0), (3, 0), (1, 1), (4, 0), (1, 0)):
                _, direct = self.runs(q, k[:, :keys], v[:, :keys])
                self.assertEqual(direct, wanted, keys)

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

    def test_gradients_of_one_tensor_alone(self):
        for number in range(3):
            found = []
            for _ in range(2):
                given = operands()
                given[number].requires_grad_()
                out, direct = self.runs(*given, causal=True)
                found.append(torch.autograd.grad(out.square().sum(), given[number])[0])
            self.assertEqual(direct, 1)
            self.assertTrue(torch.equal(*found), number)

    def test_gradients_go_past_the_dispatcher_where_nobody_watches(self):
        given = leaves(*operands())
        for _ in range(2):
            out = attention(*given)
        backward = torch.ops.tilewright.attention_backward.default
        with mock.patch.object(_attention, "_backward", side_effect=_attention._backward) as direct:
            wanted = torch.autograd.grad(out, given, out, retain_graph=True)
            self.assertEqual(direct.call_count, 1)
            with Seen() as seen:
                again = torch.autograd.grad(out, given, out, retain_graph=True)
            self.assertEqual(direct.call_count, 1)
            self.assertIn(backward.name(), seen.names)
            with self.assertRaisesRegex(TilewrightError, "gradients of attention are"):
                torch.autograd.grad(torch.autograd.grad(out, given, out, create_graph=True)[0],
                                    given, out)
            self.assertEqual(direct.call_count, 1)
        for mine, right in zip(again, wanted):
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
        wanted = attention(*given)
        batch = [tensor.expand(3, *tensor.shape) for tensor in given]
        for each in torch.vmap(attention)(*batch):
            self.assertTrue(torch.equal(each, wanted))

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
        with self.counted() as seen:
            for transform in (torch.func.vmap, torch.func.functionalize):
                try:
                    transform(lambda q: attention(q, k, v))(q)
                except RuntimeError:
                    pass  # what the operator has no rule for
        self.assertEqual(seen, [])

    def test_on_a_gpu_rows_begin_at_multiples_of_16_bytes(self):
        given = operands()
        make = _direct.Direct.__init__

        def as_on_a_gpu(made, *arguments):
            make(made, *arguments)
            made._misaligned = 15

        wanted = attention(*given)
        _direct.forget()
        with mock.patch.object(_direct.Direct, "__init__", as_on_a_gpu):
            attention(*given)
            self.assertEqual(self.runs(*given)[1], 1)
            for number, tensor in enumerate(given):
                moved = list(given)
                moved[number] = tensor.new_empty(tensor.numel() + 1)[1:].view(tensor.shape)
                moved[number].copy_(tensor)
                out, direct = self.runs(*moved)
                self.assertEqual(direct, 0)
                self.assertTrue(torch.equal(out, wanted))

    def test_tensors_of_a_gpu_that_is_not_the_current_one(self):
        tensor = mock.Mock(get_device=lambda: 1)
        with mock.patch.object(torch._C, "_cuda_getDevice", create=True, return_value=0):
            self.assertRaises(_direct.Elsewhere, _direct.stream_of, tensor)

    def test_in_a_capture_nothing_is_remembered(self):
        given = operands()
        with mock.patch.object(_direct, "stream_of", lambda tensor: 7), \
                mock.patch.object(torch.cuda, "is_current_stream_capturing", lambda: True):
            attention(*given)
        self.assertEqual(self.runs(*given)[1], 0)
        self.assertEqual(self.runs(*given)[1], 1)

    def test_an_error_of_the_kernel_is_raised(self):
        given = operands()
        kernels = []
        make = _run.Kernel

        def remembered(*how, **options):
            kernels.append(make(*how, **options))
            return kernels[-1]

        with mock.patch.object(_run, "Kernel", remembered), \
                mock.patch.dict(_run._kernels, clear=True):
            _run._calls.__dict__.clear()
            attention(*given)
        self.assertEqual(self.runs(*given)[1], 1)
        kernels[0].close()
        with self.assertRaisesRegex(TilewrightError, "kernel") as raised:
            attention(*given)
        self.assertEqual(raised.exception.status, 2)
        _run._calls.__dict__.clear()

    def test_what_a_kernel_takes_in_place(self):
        rows = normal(4, 24)
        for tensor, host, gpu in ((rows, True, True), (rows[:, :8], True, True),
                                  (rows.view(-1)[1:17], True, False),
                                  (normal(4, 25)[:, :8], True, False),
                                  (rows[:, ::2], False, False), (rows.t(), False, False),
                                  (rows[:1].expand(4, 24), False, False)):
            self.assertEqual(_run.is_usable(tensor), host)
            with mock.patch.object(torch.Tensor, "is_cuda", True):
                self.assertEqual(_run.is_usable(tensor), gpu)

    def test_what_is_no_tensor(self):
        q, k, v = operands()
        attention(q, k, v)
        for given in ((1, k, v), (q, None, v)):
            with self.assertRaises(RuntimeError):
                attention(*given)


def pages(*shape, dtype=torch.float32):
    """A query of each sequence, how long these are, the table, and a cache for keys and values."""
    lengths = torch.tensor([20, 0, 32], dtype=torch.int32)
    table = torch.arange(6, dtype=torch.int32).view(3, 2)
    return (normal(3, 1, 4, 16), lengths, table,
            *(normal(6, 16, *shape, seed=seed).to(dtype) for seed in (1, 2)))


class DirectPaged(Ways):
    def setUp(self):
        super().setUp()
        torch.use_deterministic_algorithms(True)  # what memory holds before is NaN then
        self.addCleanup(torch.use_deterministic_algorithms, False)

    def kinds(self):
        """Calls of given queries and lengths."""
        q, lengths, table, k, v = pages(2, 16)
        narrow = [tensor.to(torch.float8_e4m3fn) for tensor in (k, v)]
        scales = {"k_scale": torch.tensor([0.5, 2.0]), "v_scale": torch.tensor([3.0, 1.0])}
        plan = {"plan": attention_paged_plan(lengths, heads=4, kv_heads=2)}
        for options in ({}, {"causal": True, "window": 3}, {"fixed_split_size": 64}, plan):
            yield lambda q, n, how=options, **more: attention_paged(q, k, v, table, n, **how,
                                                                    **more)
        yield lambda q, n, **more: attention_paged(q, *narrow, table, n, **scales, **more)
        yield lambda q, n, **more: attention_paged_mla(q, k.flatten(2)[..., :16], table, n,
                                                       scale=0.3, dim_v=8, **more)

    def test_the_second_call_is_direct_and_the_same(self):
        q, lengths, *_ = pages(2, 16)
        other = torch.tensor([1, 32, 0], dtype=torch.int32)
        wanted = [call(-q, other, return_lse=True) for call in self.kinds()]
        _direct.forget()
        for number, (call, right) in enumerate(zip(self.kinds(), wanted)):
            with self.subTest(number), self.counted() as direct:
                call(q, lengths)
                self.assertEqual(len(direct), 0)
                out, lse = call(-q, other, return_lse=True)
                self.assertEqual(len(direct), 1)
                self.assertTrue(torch.equal(out, right[0]) and torch.equal(lse, right[1]))
                self.assertEqual(out.shape[:2], q.shape[:2])
                self.assertTrue(torch.equal(call(-q, other), out))

    def test_what_is_wrong_is_seen_again(self):
        q, lengths, *_ = pages(2, 16)
        for call in self.kinds():
            call(q, lengths)
            with self.assertRaisesRegex(TilewrightError, "lengths has 99"):
                call(q, lengths + 79)
            with self.assertRaisesRegex(TilewrightError, "no gradients"):
                call(q.clone().requires_grad_(), lengths).sum().backward()
            with torch.no_grad():
                call(q.clone().requires_grad_(), lengths)

    def test_queries_that_do_not_lie_behind_each_other(self):
        q, lengths, table, k, v = pages(2, 16)
        q = normal(3, 5, 4, 16)[:, :2]
        for _ in range(2):
            out = attention_paged(q, k, v, table, lengths)
            self.assertTrue(torch.equal(out, attention_paged(q.contiguous(), k, v, table, lengths)))

    def test_offsets_are_kept_for_each_stream(self):
        host = torch.device("cpu")
        with mock.patch.dict(_paged._offsets, clear=True):
            kept = _paged._kept_offsets(7, host, 3, 2)
            self.assertEqual(kept.tolist(), [0, 2, 4, 6])
            self.assertIs(_paged._kept_offsets(7, host, 3, 2), kept)
            for other in ((8, host, 3, 2), (7, host, 2, 2), (7, host, 3, 1)):
                self.assertIsNot(_paged._kept_offsets(*other), kept)
            with mock.patch.object(_paged, "_MOST_OFFSETS", 4):
                self.assertRaises(_direct.Elsewhere, _paged._kept_offsets, 9, host, 3, 2)


class DirectInC(Direct):
    in_c = True

    def test_threads(self):
        """The same calls in each, and who remembers others meanwhile forgets them."""
        q, k, v = operands()
        wanted = [attention(q, k[:, :keys], v[:, :keys]) for keys in range(1, 9)]
        wrong = []

        def work(number):
            for turn in range(120):
                keys = (number + turn) % 8
                if not torch.equal(attention(q, k[:, :keys + 1], v[:, :keys + 1]), wanted[keys]):
                    wrong.append(keys)

        with mock.patch.object(_direct, "MOST_CALLS", 3):
            threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])

    def test_no_reference_is_lost_or_kept(self):
        given = operands()
        attention(*given)
        objects = (*given, None, torch.Tensor)
        before = [sys.getrefcount(each) for each in objects]
        for _ in range(2000):
            attention(*given, return_lse=True)
        after = [sys.getrefcount(each) for each in objects]
        self.assertLess(max(abs(a - b) for a, b in zip(before, after)), 100)

    def test_what_is_given_wrongly_goes_the_whole_way(self):
        given = operands()
        attention(*given)
        settings = ("attention", False, None, None, 0.0, "bshd", None)
        self.assertIsNotNone(_direct.call(settings, False, *given))
        for wrong in ((), (settings,), (settings, False), (settings, False, *given[:2]),
                      (settings, False, *given, *given, *given), ([], False, *given),
                      (settings, False, 1, "k", {}), (settings, False, None, None, None),
                      (settings, False, normal(*[1] * 7), *given[1:])):
            self.assertIsNone(_direct.call(*wrong))


class DirectPagedInC(DirectPaged):
    in_c = True

"""Which kernel a call of tilewright.torch takes, when it is made, and how many are kept."""

import gc
import threading
import types
import unittest
import weakref
from unittest import mock

import torch
from tilewright import TilewrightError
from tilewright.torch import (
    _attention,
    _direct,
    _run,
    attention,
    attention_fp8,
    attention_paged,
    attention_paged_plan,
    cross_entropy,
    gemm,
    layer_norm,
    rms_norm,
    rotary,
    softmax,
)
from torch_reference import leaves, normal


class Kept(unittest.TestCase):
    """Kernels of the host are bounded, and those of a GPU stay."""

    def test_a_scale_for_each_call(self):
        _direct.forget()
        _run._calls.__dict__.clear()
        made, make = [], _run.Kernel

        def watched(*given, **options):
            kernel = make(*given, **options)
            made.append(weakref.ref(kernel))
            return kernel

        q, k, v = (normal(1, 3, 2, 16, seed=seed) for seed in range(3))
        a_gpus = ("attention_forward", "cuda", 0)
        with mock.patch.dict(_run._kernels, {a_gpus: None}, clear=True), \
                mock.patch.object(_run, "Kernel", watched), \
                mock.patch.object(_run, "MOST_HOST_KERNELS", 3):
            for turn in range(1, 8):
                # The second goes past the dispatcher.
                ours = [attention(q, k, v, scale=turn / 8) for _ in range(2)]
                wanted = torch.nn.functional.scaled_dot_product_attention(
                    *(t.transpose(1, 2) for t in (q, k, v)), scale=turn / 8).transpose(1, 2)
                for each in ours:
                    self.assertLess((each - wanted).abs().max().item(), 1e-5)
                gc.collect()
                alive = sum(kernel() is not None for kernel in made)
                self.assertEqual((len(made), alive), (turn, (turn - 1) % 3 + 1))
            self.assertIn(a_gpus, _run._kernels)

    def test_other_threads_drop_theirs_with_their_next_new_call(self):
        calls = {("anything",): None}
        _run.make_room(calls, 8)
        calls["one"] = 1
        _run.make_room(calls, 8)
        self.assertIn("one", calls)
        with mock.patch.object(_run, "_times_forgotten", _run._times_forgotten + 1):
            _run.make_room(calls, 8)
        self.assertNotIn("one", calls)


class Ahead(unittest.TestCase):
    """The gradients' kernel is built while the forward pass still is."""

    def setUp(self):
        self.made, self.begun, self.go_on = [], threading.Event(), threading.Event()
        for patch in (mock.patch.object(_run, "Kernel", self.make),
                      mock.patch.object(torch.cuda, "is_current_stream_capturing", lambda: False),
                      mock.patch.dict(_run._kernels, clear=True),
                      mock.patch.dict(_run._making, clear=True),
                      mock.patch.object(_run, "_ahead", set())):
            patch.start()
            self.addCleanup(patch.stop)

    def make(self, name, target, device, **options):
        self.made.append((name, target, device, options))
        if name == "attention_backward" and not self.begun.is_set():
            self.begun.set()
            self.go_on.wait(10)
            if self.fails:
                raise TilewrightError("error: there is no NVRTC")
        return self

    def expect(self):
        q, k = (types.SimpleNamespace(shape=(1, 8, heads, 64), dtype=torch.bfloat16, is_cuda=True,
                                      get_device=lambda: 1) for heads in (4, 2))
        masked = (True, 0, 0.0, 0.0)
        _attention._expect_gradients(q, k, k, None, None, None, *masked, 0, 0, "")
        return _attention.kernel_options(q, k, k, None, masked, lse_gradient=False)

    def test_a_call_waits_for_it_and_builds_what_it_could_not(self):
        for self.fails in (False, True):
            self.made.clear(), self.begun.clear(), self.go_on.clear()
            _run._kernels.clear(), _run._making.clear(), _run._ahead.clear()
            options = self.expect()
            self.assertTrue(self.begun.wait(10))
            self.expect()
            call = threading.Thread(target=_run._kernel,
                                    args=("attention_backward", options, "cuda", 1))
            call.start()
            # Which nothing holds up.
            _run._kernel("attention_forward", options, "cuda", 1)
            backward, forward = [(f"attention_{which}", "cuda", 1, options)
                                 for which in ("backward", "forward")]
            self.assertEqual(self.made, [backward, forward])
            self.go_on.set()
            call.join(10)
            self.assertEqual(self.made, [backward, forward] + [backward] * self.fails)


class Settings(unittest.TestCase):
    """A kernel is made once for what a call sets, and for tensors that lie so."""

    def setUp(self):
        made, call_of = {}, _run.call_of

        def told_apart(name, settings, options, target, device, tensors):
            call = call_of(name, settings, options, target, device, tensors)
            asked = (name, options(), target, [tensor.stride() for tensor in tensors])
            self.assertEqual(made.setdefault(call, asked), asked)
            return call

        watched = mock.patch.object(_run, "call_of", told_apart)
        watched.start()
        self.addCleanup(watched.stop)

    def results(self, function, given, settings):
        inputs = [t.detach().clone().requires_grad_(t.requires_grad) for t in given]
        outs = function(*inputs, **settings)
        outs = list(outs) if isinstance(outs, tuple) else [outs]
        wants = [t for t in inputs if t.requires_grad]
        if not wants:
            return outs
        return outs + list(torch.autograd.grad(outs[0].double().square().sum(), wants))

    def test_each_is_told_apart(self):
        x, w, b = leaves(normal(3, 8), normal(8, seed=1), normal(8, seed=2))
        logits, labels = leaves(normal(4, 5))[0], torch.tensor([0, 1, 4, 2])
        q, k, v = leaves(normal(2, 5, 4, 16), normal(2, 6, 2, 16, seed=1),
                         normal(2, 6, 2, 16, seed=2))
        halves = normal(2, 5, 2, 16), normal(2, 6, 2, 16), normal(2, 6, 2, 16, seed=2)
        fp8 = [t.to(torch.float8_e4m3fn) for t in halves] + [torch.tensor(s) for s in (1.0, 2., 3.)]
        turned = leaves(normal(1, 4, 2, 8))[0], normal(4, 3, seed=1), normal(4, 3, seed=2)
        pages = normal(3, 2, 4, 16), normal(12, 64, 2, 16, seed=1), normal(12, 64, 2, 16, seed=2)
        table = torch.arange(12, dtype=torch.int32).view(3, 4)
        lengths = torch.tensor([200, 7, 0], dtype=torch.int32)
        paged = (*pages, table, lengths)
        plan = {"heads": 4, "kv_heads": 2}
        masks = [{}, {"causal": True}, {"causal": True, "window": 3}, {"scale": 0.7},
                 {"softcap": 0.9}]
        for function, given, settings in (
                (rms_norm, (x, w), [{}, {"eps": 0.5}]),
                (layer_norm, (x, w, b), [{}, {"eps": 0.5}]),
                (cross_entropy, (logits, labels),
                 [{}, {"label_smoothing": 0.4}, {"ignore_index": 1}]),
                (gemm, (x.detach(), normal(8, 8, seed=3)),
                 [{"activation": name} for name in ("relu", "silu", "gelu", "gelu_tanh")] +
                 [{"activation": "silu", "bias": b.detach()}]),
                (gemm, (x, normal(8, 8, seed=3)), [{"activation": n} for n in ("relu", "silu")]),
                (rotary, turned, [{}, {"interleaved": True}, {"target": "interpreter"}]),
                (softmax, (normal(3, 8),), [{}, {"dim": 0}]),
                (attention, (q, k, v), [{**mask, "sinks": normal(4, seed=5)} for mask in masks]),
                (attention, (q, k, v), masks),
                (attention_fp8, fp8, [{}, {"causal": True}, {"scale": 0.7},
                                      {"out_dtype": torch.float16}]),
                (attention_paged, paged, masks + [{"fixed_split_size": 64}]),
                (attention_paged_plan, (lengths,),
                 [plan, {**plan, "window": 3}, {**plan, "fixed_split_size": 64},
                  {**plan, "kv_heads": 1}, {**plan, "kv_heads": 1, "latent": True},
                  {**plan, "queries": 9}])):
            found = [self.results(function, given, each) for each in settings]
            for each, ours in zip(settings, found):
                with self.subTest(function=function.__name__, **each):
                    _run._calls.__dict__.clear()
                    _direct.forget()
                    with mock.patch.dict(_run._kernels, clear=True):
                        wanted = self.results(function, given, each)
                    for mine, right in zip(ours, wanted):
                        self.assertEqual(mine.dtype, right.dtype)
                        self.assertTrue(torch.equal(mine, right))

    def test_rows_that_lie_apart(self):
        x = normal(3, 16)
        for rows in (x[:, :8], x[:, 4:12].contiguous(), x[:, 8:]):
            ours, wanted = softmax(rows), rows.softmax(-1)
            self.assertLess((ours - wanted).abs().max().item(), 1e-6)

    def test_gradients_of_one_alone(self):
        for function, given in (
                (gemm, (normal(3, 8), normal(8, 5))), (layer_norm, (normal(3, 8), *normal(2, 8))),
                (attention, (normal(1, 5, 4, 16), *normal(2, 1, 6, 2, 16)))):
            _, *wanted = self.results(function, leaves(*given), {})
            for number, right in enumerate(wanted):
                alone = list(given)
                alone[number], = leaves(given[number])
                _, mine = self.results(function, alone, {})
                self.assertTrue(torch.equal(mine, right))

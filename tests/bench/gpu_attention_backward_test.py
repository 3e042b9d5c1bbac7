"""What bench/gpu_attention_backward.py makes of words and times, without a GPU or PyTorch."""

import contextlib
import io
import pathlib
import sys
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

# What the modules of bench/ name when they are read.
torch = types.ModuleType("torch")
for dtype in ("bfloat16", "float16", "float32", "float64", "float8_e4m3fn", "int64",
              "int32", "int8", "uint8"):
    setattr(torch, dtype, dtype)
torch.manual_seed = lambda seed: None
torch.isfinite = lambda tensor: types.SimpleNamespace(all=lambda: tensor.finite)
attention = types.ModuleType("torch.nn.attention")
attention.SDPBackend = attention.sdpa_kernel = None
sys.modules.update({"torch": torch, "torch.nn": types.ModuleType("torch.nn"),
                    "torch.nn.attention": attention})

import gpu_attention_backward as bench  # noqa: E402


class Tensor:
    """A gradient that lies so far from the reference; and, of a peer's, from ours."""

    def __init__(self, error=2e-3, finite=True):
        self.error, self.finite = error, finite

    def double(self):
        return self


class Problem:
    """Times in microseconds by name; errors that tests change."""

    times = {"ours": 100, "ours on equal work": 110, bench.FA3: 125, bench.CUDNN: 80}
    errors = {}  # of (name, gradient)
    finite = True
    alike = True
    made = []

    def __init__(self, library, row, variants, with_forward=False):
        Problem.made.append((row, variants))
        self.with_forward = with_forward
        self.row, self.ours = row, {name: name for name in variants}

    def run(self, name):
        return [Tensor(Problem.errors.get((name, g), 2e-3), Problem.finite)
                for g in bench.GRADIENTS]

    def runs_alike(self, name):
        return Problem.alike

    def peer(self, name):
        if self.row.window:
            raise NotImplementedError("no window")
        return lambda: self.run(name)

    def reference(self):
        return [None] * 3


def time_rounds(launches, rounds):
    """Some are slower than `times` and some faster, by the same part of it for all."""
    parts = [1 + 0.1 * (i - rounds // 2) for i in range(rounds)]
    return {name: [Problem.times[name] * 1e-6 * part for part in parts] for name in launches}


class Bench(unittest.TestCase):
    def setUp(self):
        Problem.made = []
        for name, value in (("Problem", Problem),
                            ("importlib", mock.MagicMock())):
            self.enterContext(mock.patch.object(bench, name, value))
        for name, value in (("print_versions", lambda library: None),
                            ("device_state", lambda: "none"),
                            ("time_rounds", time_rounds),
                            ("relative_rms", lambda tensor, reference: tensor.error)):
            self.enterContext(mock.patch.object(bench.measure, name, value))
        self.enterContext(mock.patch.object(bench.tilewright_c, "Library", lambda path: None))

    def enterContext(self, manager):  # of unittest from Python 3.11 on
        value = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return value

    def run_bench(self, *words):
        """Exit status, lines of the output, and what an error says."""
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            try:
                status = bench.main(list(words))
            except SystemExit as end:
                status = end.code
        return status, output.getvalue().splitlines(), errors.getvalue()

    def test_work_is_two_and_a_half_times_that_of_the_forward_pass(self):
        row = bench.make_row(128, "full", 4096)
        self.assertEqual(bench.operations(row), 2.5 * row.operations())
        self.assertEqual(bench.operations(row), 10 * 4 * 4096**2 * 16 * 128)
        causal = bench.make_row(128, "causal", 4096)
        self.assertEqual(2 * bench.operations(causal), bench.operations(row))

    def test_work_of_values_of_another_dim_and_of_windows_is_what_is_needed(self):
        row = bench.make_row(192, "full", 4096, 128)
        self.assertEqual(bench.operations(row), 2 * 4 * 4096**2 * 16 * (3 * 192 + 2 * 128))
        window = bench.make_row(128, "causal", 4096, window=1)
        self.assertEqual(bench.operations(window), 10 * 4 * 4096 * 16 * 128)

    def test_all_rows_by_default(self):
        status, lines, _ = self.run_bench("--fa3", "--rounds", "3")
        self.assertEqual(status, 0)
        rows = [row for row, _ in Problem.made]
        self.assertEqual(len(rows), 3 * 2 * 6)
        self.assertEqual({row.heads * row.dim for row in rows}, {2048})
        self.assertEqual({row.batch() * row.length for row in rows}, {16384})
        self.assertEqual(lines[-1], "geomean ratio 1.250")

    def test_a_rate_is_the_work_over_the_median(self):
        _, lines, _ = self.run_bench("--fa3", "--dims", "128", "--masks", "full", "--lengths",
                                     "4096", "--rounds", "3")
        work = 10 * 4 * 4096**2 * 16 * 128
        line = next(line for line in lines if line.split()[:1] == ["4096"])
        self.assertEqual(line.split()[1:3], [f"{work / 100e-6 * 1e-12:.1f}",
                                             f"{work / 125e-6 * 1e-12:.1f}"])
        self.assertEqual(line.split()[3], "1.250")

    def test_with_the_forward_pass_the_work_is_that_of_both(self):
        with mock.patch.object(bench, "Problem", wraps=Problem) as made:
            _, lines, _ = self.run_bench("--fa3", "--with-forward", "--dims", "128", "--masks",
                                         "causal", "--lengths", "4096", "--rounds", "3")
        self.assertIs(made.call_args[0][3], True)
        work = 7 * 4 * 4096**2 * 16 * 128
        line = next(line for line in lines if line.split()[:1] == ["4096"])
        self.assertEqual(line.split()[1], f"{work / 100e-6 * 1e-12:.1f}")

    def test_several_launches_are_one_that_returns_what_the_last_does(self):
        ran = []
        launch = bench.one_after_the_other(lambda: ran.append(1), lambda: ran.append(2) or "last")
        self.assertEqual(launch(), "last")
        self.assertEqual(ran, [1, 2])

    def test_the_ratio_is_to_flash_attention_before_cudnn(self):
        _, lines, _ = self.run_bench("--fa3", "--cudnn", "--rounds", "2")
        self.assertEqual(lines[-1], "geomean ratio 1.250")
        _, lines, _ = self.run_bench("--cudnn", "--rounds", "2")
        self.assertEqual(lines[-1], "geomean ratio 0.800")

    def test_variants_share_rounds_and_options(self):
        times = {"schedule=a": 100, "schedule=b,x=1": 90}
        with mock.patch.object(Problem, "times", times):
            status, lines, _ = self.run_bench(
                "--variants", "schedule=a", "schedule=b,x=1", "--set", "y=2", "--dims", "64",
                "--rounds", "2")
        self.assertEqual(status, 0)
        self.assertEqual(Problem.made[0][1], {"schedule=a": {"y": "2", "schedule": "a"},
                                              "schedule=b,x=1": {"y": "2", "schedule": "b",
                                                                 "x": "1"}})
        self.assertEqual(lines[-1], "geomean ratio 0.900")

    def test_ours_alone_has_no_ratio(self):
        status, lines, _ = self.run_bench("--dims", "64", "--rounds", "2")
        self.assertEqual(status, 0)
        self.assertFalse([line for line in lines if "geomean" in line])

    def test_a_row_that_the_peer_does_not_take_has_no_ratio(self):
        status, lines, _ = self.run_bench("--fa3", "--window", "256", "--dims", "128", "--lengths",
                                          "8192", "--rounds", "2")
        self.assertEqual(status, 0)
        self.assertIn(f"  {bench.FA3}: no window", lines)
        line = next(line for line in lines if line.split()[:1] == ["8192"])
        self.assertEqual(line.split()[2:5], ["-", "-", "-"])

    def test_a_window_is_held_against_equal_work(self):
        _, lines, _ = self.run_bench("--window", "256", "--dims", "128", "--lengths", "8192",
                                     "--rounds", "3")
        line = next(line for line in lines if line.split()[:1] == ["8192"])
        # Two sequences of 1 + 2 + 62 * 3 blocks, beside 43 of 3 * 3: 1.1 * 378 / 387.
        self.assertIn("to equal 1.074", line)
        self.assertEqual([row.length for row, _ in Problem.made], [8192, 384])

    def test_gradients_that_are_not_the_peers_are_wrong(self):
        with mock.patch.object(Problem, "errors", {("ours", "dK"): 2e-2}):
            status, lines, _ = self.run_bench("--fa3", "--dims", "64", "--rounds", "2")
        self.assertEqual(status, 1)
        self.assertTrue(any("d64 full 512: ours: dK is not FlashAttention-3's" in line
                            for line in lines))
        self.assertFalse(any("dQ is not" in line for line in lines))

    def test_gradients_that_are_not_numbers_are_wrong_without_a_peer(self):
        with mock.patch.object(Problem, "finite", False):
            status, lines, _ = self.run_bench("--dims", "64", "--rounds", "2")
        self.assertEqual(status, 1)
        self.assertTrue(any("dV is not finite" in line for line in lines))

    def test_says_where_runs_differ(self):
        with mock.patch.object(Problem, "alike", False):
            status, lines, _ = self.run_bench("--fa3", "--dims", "64", "--rounds", "2")
        self.assertEqual(status, 0)
        self.assertTrue(any("ours: differs from run to run" in line for line in lines))

    def test_checks_against_float64_and_ends(self):
        words = ("--check", "--rounds", "0", "--fa3", "--dims", "64", "--masks", "full")
        status, lines, _ = self.run_bench(*words)
        self.assertEqual(status, 0)
        self.assertEqual(lines[-1], "all errors are within their bounds")
        self.assertEqual([(row.length, row.heads, row.kv_heads) for row, _ in Problem.made],
                         [(1000, 4, 4), (1000, 4, 2)])
        # No more than 1.1 times the peer's.
        with mock.patch.object(Problem, "errors", {("ours", "dV"): 2.3e-3}):
            status, lines, _ = self.run_bench(*words)
        self.assertEqual(status, 1)
        self.assertIn("dV errs by 2.30e-03, more than 2.20e-03", lines[-1])

    def test_without_a_peer_errors_have_bounds_of_their_own(self):
        words = ("--check", "--rounds", "0", "--dims", "64", "--masks", "full")
        with mock.patch.object(Problem, "errors", {("ours", "dV"): 3.9e-3, ("ours", "dQ"): 5.9e-3}):
            self.assertEqual(self.run_bench(*words)[0], 0)
        with mock.patch.object(Problem, "errors", {("ours", "dV"): 5.9e-3}):
            self.assertEqual(self.run_bench(*words)[0], 1)

    def test_words_that_mean_nothing_are_named(self):
        for words, message in ((("--dims", "12x"), "12x is neither a dim nor dim/dim_v"),
                               (("--dims", "1/2/3"), "1/2/3 is neither"),
                               (("--dims", "0"), "0 is neither"),
                               (("--variants", "schedule"), "schedule is not NAME=VALUE"),
                               (("--variants", "a=1,a=2"), "a stands twice in a=1,a=2"),
                               (("--variants", "a=1", "a=1"), "one stands twice"),
                               (("--set", "=3"), "=3 is not NAME=VALUE"),
                               (("--rounds", "0"), "there is nothing to do but --check")):
            status, _, errors = self.run_bench(*words)
            self.assertEqual(status, 2, words)
            self.assertIn(message, errors)

    def test_flash_attention_that_is_not_there_is_an_error(self):
        bench.importlib.util.find_spec.return_value = None
        status, _, errors = self.run_bench("--fa3")
        self.assertEqual(status, 2)
        self.assertIn("no flash_attn_interface", errors)


if __name__ == "__main__":
    unittest.main()

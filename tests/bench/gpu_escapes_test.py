"""Which kernels and schedules bench/gpu_escapes.py draws, and what it counts, without a GPU."""

import contextlib
import io
import json
import pathlib
import sys
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import gpu_escapes as bench  # noqa: E402


def kernel(name, options, schedules, over_ranks=False):
    return {"name": name, "over_ranks": over_ranks,
            "options": [{"name": option} for option in options],
            "schedules": [{"name": name, "target": target} for name, target in schedules]}


KERNELS = {"kernels": [
    kernel("gemm", ["m", "n"], [("128x128", "sm_90a"), ("cpu", "cpu"), ("pairs", "sm_100a")]),
    kernel("attention_paged_mla", ["dim", "dim_v"], [("sm90", "sm_90a")]),
    kernel("all_gather", [], [("sm90", "sm_90a")], over_ranks=True)]}
CLEAN = {"simulator": "", "gpu": {"plain_runs": 2, "delayed_runs": 20}}


class Escapes(unittest.TestCase):
    def session(self, target, gpus=("sm_90a",)):
        def run(words, timeout):
            answers = {"list": KERNELS, "doctor": {"gpus": [{"arch": arch} for arch in gpus]}}
            return 0, json.dumps(answers[words[1]]), ""
        patch = mock.patch.object(bench, "run_process", run)
        patch.start()
        self.addCleanup(patch.stop)
        return bench.Session(types.SimpleNamespace(
            target=target, tilewright="tilewright", kernels=None, seed=0, runs=20, seconds=60,
            jobs=1))

    def test_schedules_of_the_gpu(self):
        names = [(name, settings[0]) for name, settings in
                 bench.configurations(self.session("cuda")) if name == "gemm"]
        self.assertEqual(names, [("gemm", "schedule=tile"), ("gemm", "schedule=128x128")])
        of_other = [settings for name, settings in
                    bench.configurations(self.session("sm_100a")) if name == "gemm"]
        self.assertEqual(of_other, [["schedule=tile"], ["schedule=pairs"]])
        with self.assertRaises(SystemExit):
            bench.configurations(self.session("cuda", gpus=()))

    def test_settings_that_a_kernel_takes(self):
        settings = [words[1:] for name, words in bench.configurations(self.session("sm_90a"))
                    if words[0] == "schedule=sm90"]
        self.assertEqual(settings, [[], ["dim=192", "dim_v=128"]])

    def test_what_is_refused_is_no_schedule(self):
        session = self.session("sm_90a")

        def stressed(words, timeout):
            if words[1] != "stress":
                return 0, json.dumps(KERNELS), ""
            if "schedule=128x128" in words:
                return bench.USAGE, "", "error: no\n    gemm(m)\n"
            return 0, json.dumps(CLEAN), ""
        with mock.patch.object(bench, "run_process", stressed), \
                contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertTrue(bench.escapes(session))
        rows = {line.split()[0]: line.split()[1:] for line in out.getvalue().splitlines()}
        self.assertEqual(rows["gemm"], ["1", "1", "22", "0", "0", "0", "0", "1"])
        self.assertEqual(rows["all"][0], "5")
        self.assertIn("  refused: gemm schedule=128x128: error: no", out.getvalue().splitlines())


if __name__ == "__main__":
    unittest.main()

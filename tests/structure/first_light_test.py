"""What scripts/first_light does with and without a GPU: beside a made-up tool and tests."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# As the command: it knows of GPUs what the first line says, and computes gemm wrongly where asked.
# It refuses to run what is not checked, or on another target.
TOOL = """#!/bin/sh
case $1 in
  doctor) echo '{doctor}' ;;
  run) case "$*" in
         *m=1000*) echo "C: relative error 0.5"; exit {status} ;;
         *"--target {target} --check"*) ;;
         *) echo "unchecked, or elsewhere"; exit 1 ;;
       esac ;;
esac
"""
TESTS = """#!/bin/sh
echo "[  PASSED  ] {passed} tests."
{skipped}
"""


def load_script():
    """The script as a module."""
    loader = importlib.machinery.SourceFileLoader("first_light", str(ROOT / "scripts/first_light"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("first_light", loader))
    loader.exec_module(module)
    return module


class FirstLight(unittest.TestCase):
    def run_script(self, arch, status=0, skipped="", nvrtc=True, options=(), passed=3,
                   programs=("tests_simulator_gpu", "tests_kernels_gpu")):
        gpus = [{"name": "made up", "arch": arch}] if arch else []
        doctor = {"gpus": gpus, "nvrtc": {"version": "13.0"} if nvrtc else None,
                  "missing": [] if arch else [{"what": "there is no driver"}]}
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            target = "sim:sm_100a" if "--rehearse" in options else "cuda"
            files = {"bin/tilewright": TOOL.format(doctor=json.dumps(doctor), status=status,
                                                   target=target)}
            for name in programs:
                files[f"tests/{name}"] = TESTS.format(skipped=skipped, passed=passed)
            for name, text in files.items():
                (build / name).parent.mkdir(exist_ok=True)
                (build / name).write_text(text)
                (build / name).chmod(0o755)
            done = subprocess.run([sys.executable, ROOT / "scripts/first_light", "--target",
                                   "sm_100a", "--build", build, *options, "--only",
                                   "litmus,instructions,kernels"],
                                  capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    def test_says_what_is_missing(self):
        status, text = self.run_script("")
        self.assertEqual(status, 3)
        self.assertIn("missing    a GPU of sm_100a: there is no driver", text)
        status, text = self.run_script("sm_90a", nvrtc=False)
        self.assertEqual(status, 3)
        self.assertIn("the GPUs here are of other targets: made up (sm_90a)", text)
        self.assertIn("missing    NVRTC", text)
        status, text = self.run_script("sm_100a", programs=["tests_kernels_gpu"])
        self.assertEqual(status, 3)
        self.assertIn("missing    tests_simulator_gpu: build it", text)

    def test_all_agree(self):
        status, text = self.run_script("sm_100a")
        self.assertEqual(status, 0, text)
        self.assertIn("0 disagree", text)
        self.assertLess(text.index("== litmus"), text.index("== kernels"))

    def test_a_rehearsal_needs_no_gpu(self):
        status, text = self.run_script("", options=["--rehearse"])
        self.assertEqual(status, 0, text)
        self.assertIn("left out   tests_simulator_gpu *TensorMemoryOnTheGpu*: it needs", text)
        self.assertIn("ok         tests_simulator_gpu *TensorMemoryForTheGpu*", text)
        status, text = self.run_script("", status=1, options=["--rehearse"])
        self.assertEqual(status, 1)
        self.assertIn("gemm m=1000 n=704 k=520 schedule=sm100", text.split("disagree, ")[1])

    def test_a_wrong_kernel_is_named(self):
        status, text = self.run_script("sm_100a", status=1)
        self.assertEqual(status, 1)
        self.assertIn("C: relative error 0.5", text)
        self.assertIn("gemm m=1000 n=704 k=520 schedule=sm100", text.split("disagree, ")[1])

    def test_who_skips_has_compared_nothing(self):
        status, text = self.run_script("sm_100a", skipped='echo "[  SKIPPED ] 3 tests"')
        self.assertEqual(status, 1)
        self.assertIn("DISAGREES  tests_simulator_gpu", text)

    def test_who_runs_no_test_has_compared_nothing(self):
        status, text = self.run_script("sm_100a", passed=0)
        self.assertEqual(status, 1)
        self.assertIn("DISAGREES  tests_simulator_gpu", text)

    def test_what_does_not_end_or_begin_disagrees(self):
        script = load_script()
        script.SECONDS = 0.1
        self.assertEqual(script.run(["sleep", "5"])[0], 124)
        self.assertEqual(script.run([ROOT / "no_such_program"])[0], 127)

    def test_figures_disagree_where_their_script_fails(self):
        script = load_script()
        for status in (0, 1):
            with tempfile.TemporaryDirectory() as folder:
                script.ROOT = pathlib.Path(folder)
                script.FIGURES = {"sm_100a": (("figures.py", "1"),)}
                (script.ROOT / "bench").mkdir()
                (script.ROOT / "bench/figures.py").write_text(f"raise SystemExit({status})")
                report = script.Report()
                arguments = types.SimpleNamespace(target="sm_100a", build=script.ROOT)
                with contextlib.redirect_stdout(io.StringIO()):
                    script.figures(report, arguments)
            self.assertEqual(report.disagrees, ["figures.py 1"] * status)


if __name__ == "__main__":
    unittest.main()

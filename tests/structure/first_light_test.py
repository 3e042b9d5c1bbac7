"""What scripts/first_light does with and without a GPU: beside a made-up tool and tests."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# As the command: it knows of GPUs what the first line says, and computes gemm wrongly where asked.
TOOL = """#!/bin/sh
case $1 in
  doctor) echo '{doctor}' ;;
  run) case "$*" in *m=1000*) echo "C: relative error 0.5"; exit {status} ;; esac ;;
esac
"""
TESTS = """#!/bin/sh
echo "[  PASSED  ] 3 tests."
{skipped}
"""


class FirstLight(unittest.TestCase):
    def run_script(self, arch, status=0, skipped="", nvrtc=True, options=()):
        gpus = [{"name": "made up", "arch": arch}] if arch else []
        doctor = {"gpus": gpus, "nvrtc": {"version": "13.0"} if nvrtc else None,
                  "missing": [] if arch else [{"what": "there is no driver"}]}
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            files = {"bin/tilewright": TOOL.format(doctor=json.dumps(doctor), status=status)}
            for name in ("tests_simulator_gpu", "tests_kernels_gpu"):
                files[f"tests/{name}"] = TESTS.format(skipped=skipped)
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


if __name__ == "__main__":
    unittest.main()

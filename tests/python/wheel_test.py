#!/usr/bin/env python3
"""The wheel of what is built, installed in a fresh virtual environment, which has nothing else."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A product on the target cpu, by the standard library alone.
PROGRAM = """
import array, tilewright
def matrix(rows, columns, values):
    return memoryview(array.array("f", values)).cast("B").cast("f", (rows, columns))
m, n, k = 5, 7, 9
a, b = ([(i * s) % 11 - 5 for i in range(r * k)] for r, s in ((m, 3), (n, 5)))
c = matrix(m, n, [float("nan")] * (m * n))
tilewright.Kernel("gemm", target="cpu", dtype="f32")(matrix(m, k, a), matrix(n, k, b), c)
wanted = [[sum(a[i * k + x] * b[j * k + x] for x in range(k)) for j in range(n)] for i in range(m)]
assert c.tolist() == wanted, c.tolist()
assert tilewright.__version__.count(".") == 2, tilewright.__version__
try:
    import tilewright.torch
except ModuleNotFoundError as error:
    assert "pip install torch" in str(error), error
print(tilewright.__file__)
"""
IMPORT_TIME = """
import sys, time
started = time.process_time()
import tilewright
print(time.process_time() - started, "torch" in sys.modules)
"""


# On a driver without a GPU, which executes nothing.
FIRST_CALL = """
import tilewright
tilewright.Kernel("column_sums", target="cuda")
try:
    tilewright.Kernel("column_sums", target="cuda", dtype="f16")
except tilewright.TilewrightError as error:
    print(error)
"""


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keeper = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.keeper.cleanup)
        folder = pathlib.Path(cls.keeper.name)
        subprocess.run([sys.executable, str(ROOT / "scripts/wheel"), "--no-build", "--no-cubins",
                        "--build", os.environ["BUILD"], "--out", str(folder)], check=True)
        (cls.wheel,) = folder.glob("*.whl")
        cls.python = cls.installed(cls.wheel, folder / "environment")

    @staticmethod
    def installed(wheel, environment):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)],
                       check=True)
        python = environment / "bin/python"
        subprocess.run([sys.executable, "-m", "pip", "--python", str(python), "install",
                        "--quiet", "--no-index", "--disable-pip-version-check", str(wheel)],
                       check=True)
        return python

    def said(self, *command, **more):
        # Neither this repository's package nor its library.
        variables = {name: value for name, value in os.environ.items()
                     if name not in ("PYTHONPATH", "TILEWRIGHT_LIBRARY")}
        return subprocess.run([str(word) for word in command], env={**variables, **more},
                              check=True, cwd=self.keeper.name, capture_output=True,
                              text=True).stdout

    def test_a_kernel_runs(self):
        self.assertIn("environment", self.said(self.python, "-c", PROGRAM))

    def test_the_command_runs(self):
        command = self.python.parent / "tilewright"
        self.assertIn("gemm", self.said(command, "list", "gemm"))
        self.said(command, "run", "gemm", "--target", "cpu", "--set", "m=20", "--set", "n=30",
                  "--set", "k=40", "--check")

    def test_what_is_built_ahead_needs_no_compiler(self):
        """And the same files give the same wheel, a folder of what was built too."""
        folder = pathlib.Path(self.keeper.name, "ahead")
        folder.mkdir()
        (folder / "list.txt").write_text("column_sums  # two kernels\n")
        packed = []
        for name, source in (("one", "list.txt"), ("two", "list.txt"),
                             ("three", "tilewright/lib/cubins")):
            made = subprocess.run(
                [sys.executable, str(ROOT / "scripts/wheel"), "--no-build", "--build",
                 os.environ["BUILD"], "--out", str(folder / name), "--cubins",
                 str(folder / source)], capture_output=True, text=True)
            if "NVRTC" in made.stderr:
                self.skipTest("there is no NVRTC")
            self.assertEqual(made.returncode, 0, made.stderr)
            packed += (folder / name).glob("*.whl")
            self.assertEqual(packed[-1].read_bytes(), packed[0].read_bytes())
            with zipfile.ZipFile(packed[0]) as file:
                file.extractall(folder)
        said = self.said(self.installed(packed[0], folder / "environment"), "-c", FIRST_CALL,
                         TILEWRIGHT_CUDA_DRIVER=os.environ["FAKE_CUDA"], FAKE_CUDA_DEVICES="1",
                         TILEWRIGHT_NVRTC="/nowhere/libnvrtc.so", TILEWRIGHT_CACHE="off")
        self.assertIn("NVRTC", said)  # of f16, which is not on the list

    def test_it_is_small_and_imported_quickly(self):
        self.assertLess(self.wheel.stat().st_size, 10e6)
        runs = [self.said(self.python, "-c", IMPORT_TIME).split() for _ in range(3)]
        self.assertLess(min(float(seconds) for seconds, _ in runs), 0.1)
        self.assertEqual({torch for _, torch in runs}, {"False"})

    def test_its_tag_and_what_it_requires(self):
        self.assertRegex(self.wheel.name, r"^tilewright-[\d.]+-py3-none-manylinux_2_\d+_\w+\.whl$")
        if pathlib.Path(os.environ["BUILD"], "older_glibc/libc.so").exists():
            minor = re.search(r"manylinux_2_(\d+)", self.wheel.name)[1]
            self.assertLessEqual(int(minor), 28)
        with zipfile.ZipFile(self.wheel) as file:
            (metadata,) = (name for name in file.namelist() if name.endswith("/METADATA"))
            requirements = re.findall("Requires-Dist: (.*)", file.read(metadata).decode())
        self.assertTrue(requirements)
        for requirement in requirements:
            self.assertIn("extra ==", requirement)


if __name__ == "__main__":
    for module in ("pip", "venv"):
        if importlib.util.find_spec(module) is None:
            print(f"skipped: {sys.executable} has no {module}")
            sys.exit(77)
    unittest.main()

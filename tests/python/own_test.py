#!/usr/bin/env python3
"""Kernels of one's own from Python, of a plug-in and of a file, with the standard library alone."""

import array
import ctypes
import gc
import io
import os
import pathlib
import sys
import tempfile
import unittest
from contextlib import redirect_stderr

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLUGIN = os.environ["PLUGIN"]
sys.path.insert(0, str(ROOT / "python"))

import tilewright  # noqa: E402
from tilewright import _dlpack, reports, tensor  # noqa: E402


def floats(rows, columns):
    values = array.array("f", (((7 * i) % 31 - 15) / 8 for i in range(rows * columns)))
    return values, memoryview(values).cast("B").cast("f", (rows, columns))


# Y has as many columns as its caller wants, which no input says.
REPEATED = """kernel "repeated" tile
dim rows
dim count
in X: f32[rows] = %0
out Y: f32[rows, count] = %1
grid (rows)
body (%2: i32) {
  %3: i32 = constant {value = 1}
  %4: i32 = add %2, %3
  %5: tile<f32, 1> = load %0, %2, %4 {sizes = [1]}
  %6: tile<f32, 1x1> = reshape %5
  %7: i32 = constant {value = 0}
  %8: i32 = dim {dim = dim(count)}
  for_loop %7, %8, %3 (%9: i32) {
    %10: i32 = add %9, %3
    store %1, %6, %2, %9, %4, %10 {sizes = [1, 1]}
    yield
  }
}
"""


def read(tensor):
    return array.array("f", tensor.read()).tolist()


class Own(unittest.TestCase):
    def setUp(self):
        self.kernel = tilewright.load(PLUGIN, "squares", gradient="squares_backward")

    def require_refusal(self, call, *parts, line=None):
        with self.assertRaises(tilewright.TilewrightError) as raised:
            call()
        for part in parts:
            self.assertIn(part, str(raised.exception))
        if line:
            file, text = line
            self.assertEqual(os.path.basename(raised.exception.file), file)
            with open(ROOT / "tests/python" / file, encoding="utf-8") as source:
                self.assertIn(text, source.readlines()[raised.exception.line - 1])

    def test_a_truth_value_of_numpy_is_one(self):
        true = type("bool_", (), {"__str__": lambda _: "True"})()
        self.assertEqual([reports.setting(each) for each in (true, False, "True", 1)],
                         ["true", "false", "True", "1"])

    def test_a_function_over_tensors(self):
        self.assertEqual(repr(self.kernel), "squares(X, factor=) -> Y, SUM")
        for rows, columns in ((21, 40), (1, 1), (8, 64)):
            values, x = floats(rows, columns)
            y, sums = self.kernel(x, factor=3)
            self.assertEqual(sums.shape, (rows,))
            for ours, value in zip(read(y), values):
                self.assertAlmostEqual(ours, 3 * value * value, places=5)
            for i, ours in enumerate(read(sums)):
                row = values[i * columns:(i + 1) * columns]
                self.assertAlmostEqual(ours, sum(3 * value * value for value in row), places=3)

    def test_by_name_and_into_tensors_of_the_callers(self):
        values, x = floats(9, 5)
        y, sums = array.array("f", [float("nan")] * 45), array.array("f", [float("nan")] * 9)
        out = (memoryview(y).cast("B").cast("f", (9, 5)), sums)
        self.kernel(X=x, factor=1, out=out)
        for ours, value in zip(y, values):
            self.assertAlmostEqual(ours, value * value, places=5)
        self.assertFalse(any(s != s for s in sums))

    def test_on_other_targets(self):
        _, x = floats(9, 5)
        wanted = read(self.kernel(x, factor=2)[0])
        for target in ("interpreter", "sim:sm_90a"):
            with self.subTest(target):
                other = tilewright.load(PLUGIN, "squares", target=target)
                for ours, right in zip(read(other(x, factor=2)[0]), wanted):
                    self.assertAlmostEqual(ours, right, places=5)

    def test_of_a_file(self):
        _, x = floats(9, 5)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "squares.tw"
            file.write_text(pathlib.Path(self.kernel.__fspath__()).read_text())
            wanted = read(self.kernel(x, factor=2)[0])
            text = file.read_text()
            for mark in ("", "\ufeff"):  # as some editors begin a file
                file.write_text(mark + text, encoding="utf-8")
                self.assertEqual(read(tilewright.load(file)(x, factor=2)[0]), wanted)
            file.write_text("\ufeff" + text.replace("reduce", "reduse", 1), encoding="utf-8")
            with self.assertRaises(tilewright.TilewrightError) as raised:
                tilewright.load(file)
            self.assertEqual(raised.exception.file, str(file))
            self.assertIn("reduse", file.read_text().splitlines()[raised.exception.line - 1])

    def test_what_is_said_of_it(self):
        simulation = self.kernel.simulate(rows=20, columns=40, factor=2, schedules=3)
        self.assertTrue(simulation.ok)
        self.assertEqual(simulation.faults, [])
        self.assertIn("squares on simulated sm_90a: 3 schedules", str(simulation))
        self.assertIn("<pre>", simulation._repr_html_())
        explanation = self.kernel.explain(target="cpu")
        self.assertIn("squares for cpu", str(explanation))
        self.assertIn("<html", explanation.page)
        timing = self.kernel.time(target="cpu", rows=20, columns=40)
        self.assertLessEqual(timing.minimum, timing.median)
        self.assertIn("median", str(timing))
        gradients = self.kernel.check_gradients(rows=9, columns=7, factor=2)
        self.assertTrue(gradients.ok, gradients)
        self.assertIn("dX, the gradient of X: ok", str(gradients))
        tuned = self.kernel.tune(model_only=True)
        self.assertEqual(len(tuned.best), 1)
        self.assertIn(" us  ", str(tuned))

    def test_a_page_of_what_ran_when(self):
        simulation = self.kernel.simulate(rows=20, columns=40, trace=True)
        self.assertIn("<html", simulation.page)
        self.assertIn("<iframe", simulation._repr_html_())

    def test_the_librarys_kernels_too(self):
        self.assertTrue(tilewright.check_gradients("attention_forward", queries=4, keys=4,
                                                   heads=1, kv_heads=1, batch=1).ok)
        multiply = tilewright.Kernel("gemm", target="cpu")
        self.assertEqual(repr(multiply), "Kernel('gemm') of A, B, C")
        multiply.close()
        self.assertEqual(repr(multiply), "Kernel('gemm'), closed")

    def test_lists_of_lengths(self):
        simulation = tilewright.simulate("attention_varlen_forward", lengths_q=[3, 0, 5], heads=1,
                                         kv_heads=1)
        self.assertTrue(simulation.ok)
        for lengths in ([3, 0, 5], "3,0,5"):
            self.require_refusal(
                lambda lengths=lengths: tilewright.Kernel("attention_varlen_forward", "cpu",
                                                          lengths_q=lengths),
                "lengths_q is the list 3,0,5", "takes those of its tensors")

    def test_errors_name_arguments_and_no_options_of_the_command(self):
        for call, *parts in (
                (lambda: self.kernel.simulate(schedules=0), "schedules: '0' is no number",
                 "help(tilewright.simulate)"),
                (lambda: self.kernel.simulate(inputs={"X": "uniform:2"}),
                 "write inputs={'X': 'uniform:-1:1'}"),
                (lambda: self.kernel.simulate(inputs={"X": 3}), "the input X is 3"),
                (lambda: tilewright.check_gradients("x.tw"), "backward=FILE.tw")):
            with self.subTest(parts[0]):
                with self.assertRaises(tilewright.TilewrightError) as raised:
                    call()
                for part in parts:
                    self.assertIn(part, str(raised.exception))
                self.assertNotIn("--", str(raised.exception))

    def test_a_wrong_gradient_is_found(self):
        kernel = tilewright.load(PLUGIN, "squares")
        text = pathlib.Path(self.kernel.gradient.__fspath__()).read_text()
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "wrong.tw"
            file.write_text(text.replace("value = 2.0", "value = 2.5"))
            self.assertNotEqual(file.read_text(), text)
            checked = kernel.check_gradients(file, rows=9, columns=7)
            self.assertFalse(checked.ok)
            self.assertIn("WRONG", str(checked))

    def test_progress_is_shown_to_who_looks_on(self):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
            with redirect_stderr(stream):
                self.kernel.simulate(rows=20, columns=40, schedules=2)
            self.assertEqual("schedules [" in stream.getvalue(), shown)

    def test_sizes_that_only_outputs_have(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "repeated.tw"
            path.write_text(REPEATED, encoding="utf-8")
            repeated = tilewright.load(path, target="cpu")
        x, y = array.array("f", (1, 2, 3)), array.array("f", bytes(24))
        self.require_refusal(lambda: repeated(x), "the dim count has no value", "pass out=")
        repeated(x, out=memoryview(y).cast("B").cast("f", (3, 2)))
        self.assertEqual(y.tolist(), [1, 1, 2, 2, 3, 3])
        with self.assertRaises(tilewright.TilewrightError) as raised:
            repeated(memoryview(bytearray(24)).cast("f", (3, 2)))
        self.assertIn("rank", str(raised.exception))
        self.assertNotIn("out=", str(raised.exception))

    def test_what_cannot_be_done(self):
        _, x = floats(9, 5)
        _, wide = floats(2, 65)
        for call, *parts in (
                (lambda: self.kernel(x), "scalar factor is not given"),
                (lambda: self.kernel(x, factor="two"), "scalar factor is 'two'", "number"),
                (lambda: self.kernel(x, factor="2"), "scalar factor is '2'", "number"),
                (lambda: self.kernel(x, factor=10**400), "scalar factor is 1000", "number"),
                (lambda: self.kernel(x, factor=1e39), "factor is 1e+39", "f32 ends at"),
                (lambda: self.kernel(Masked(), factor=1), "X: Masked", "mask", "filled()"),
                (lambda: self.kernel(factor=1), "input X is not given", "squares(X, factor=)"),
                (lambda: self.kernel(x, x, factor=1), "takes 1 inputs, and 2 are given"),
                (lambda: self.kernel(x, factor=1, Z=x), "Z is none of its inputs"),
                (lambda: self.kernel(x, factor=1, out=x), "has 2 outputs, and out has 1"),
                (lambda: self.kernel.simulate(lines=3), "no option 'lines'"),
                (lambda: tilewright.load(PLUGIN, "square"), "error:"),
                (lambda: tilewright.load("/nowhere/k.tw"), "cannot be read"),
                (lambda: tilewright.load(os.__file__, "k"), "is no plug-in"),
                (lambda: tilewright.load(PLUGIN, "squares").check_gradients(), "gradient=")):
            with self.subTest(parts[0]):
                self.require_refusal(call, *parts)
        self.require_refusal(lambda: self.kernel(wide, factor=1), "columns",
                             line=("own_kernels.cpp", 'kernel("squares")'))
        self.require_refusal(lambda: tilewright.load(PLUGIN, "mistaken"), "fix:",
                             line=("own_kernels.cpp", "store(Y"))


class Masked:
    """As numpy.ma has arrays: with elements that do not count."""
    mask, __array_interface__ = True, {"data": (64, False), "shape": (9, 5), "typestr": "<f4"}

    def filled(self):
        return self


class Described:
    """What describes itself by DLPack alone: so many floats, `offset` bytes behind an address."""

    def __init__(self, address, shape, offset=0, lanes=1):
        self.axes = (ctypes.c_int64 * len(shape))(*shape)
        self.managed = _dlpack._DLTensor(data=address, device_type=1, ndim=len(shape), code=2,
                                         bits=32, lanes=lanes, shape=self.axes,
                                         byte_offset=offset)

    def __dlpack__(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p,
                                                       ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor", None)


class Tensors(unittest.TestCase):
    def test_of_dlpack(self):
        self.assertEqual(tensor.describe(Described(4096, (2, 3), offset=64)),
                         (4160, "f32", (2, 3), None))
        with self.assertRaises(tilewright.TilewrightError):
            tensor.describe(Described(4096, (2, 3), lanes=4))

    def test_what_no_kernel_can_read(self):
        class NoCapsule:
            def __dlpack__(self):
                return 7

        for what, said in ((memoryview(bytearray(8))[::2], "not in row-major order"),
                           (NoCapsule(), "invalid PyCapsule"), (b"1234", "read-only")):
            with self.assertRaisesRegex(tilewright.TilewrightError, said):
                tensor.describe(what)

    def test_strides_are_whole_elements_and_those_of_one_say_nothing(self):
        class Array:
            def __init__(self, strides):
                self.__array_interface__ = {"data": (4096, False), "typestr": "<f4",
                                            "shape": (2, 3), "strides": strides}

        self.assertEqual(tensor.describe(Array((16, 4))), (4096, "f32", (2, 3), (4, 1)))
        for strides in ((14, 4), (16, 2)):
            with self.assertRaises(tilewright.TilewrightError):
                tensor.describe(Array(strides))
        shape, strides = tensor._axes_of((5, 1, 3), (3, 77, 1))
        self.assertEqual((list(shape), list(strides)), ([5, 1, 3], [3, 3, 1]))

    def test_descriptions_keep_what_they_point_to(self):
        arguments = tensor.arguments_of([array.array("f", [0] * 6), bytearray(7)])
        tensor._argument_of.cache_clear()
        gc.collect()
        others = [(ctypes.c_int64 * 1)(99) for _ in range(10000)]  # where they lay
        self.assertEqual(len(others), 10000)
        self.assertEqual([(each.dtype, each.rank, each.shape[0]) for each in arguments],
                         [(b"f32", 1, 6), (b"u8", 1, 7)])
        self.assertNotEqual(arguments[0].data, arguments[1].data)


if __name__ == "__main__":
    unittest.main()

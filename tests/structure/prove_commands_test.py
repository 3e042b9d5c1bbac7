"""What scripts/prove calls, and with which words."""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

import prove_module  # noqa: F401  it says where the parts are

from proving import ROOT, processes
from proving.clean_tasks import LAUNCHES, clean_tasks, value_tasks
from proving.fault_tasks import fault_tasks
from proving.sanitized import fuzz_files
from proving.subjects import Subject, named


def write_program(folder, text):
    path = pathlib.Path(folder, "program")
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


class Words(unittest.TestCase):
    def words(self, kind, subject):
        ((_, words),) = clean_tasks(None, kind, [subject], {named(subject): 1})
        return words

    def test_control_alone_has_no_values(self):
        subject = Subject("gemm", ["a"], True, cases=("one",))
        self.assertIn("--control-only", self.words("control", subject))
        self.assertNotIn("--valued-operations", self.words("control", subject))
        self.assertNotIn("--control-only", self.words("values", subject))
        self.assertIn("--valued-operations", self.words("values", subject))

    def test_gpus_run_twice_and_strictly(self):
        for cases in ((), ("one",)):
            words = self.words("values", Subject("gemm", ["a"], True, cases=cases))
            self.assertEqual(words[words.index("--launches") + 1], str(LAUNCHES))
            self.assertIn("--strict", words)

    def test_those_of_several_ranks_come_first(self):
        one = Subject("gemm", ["a"], True, cases=("one",))
        several = Subject("all_reduce", ["ranks=2"], True, cases=("one",), over_ranks=True)
        tasks = value_tasks(types.SimpleNamespace(valued=1), [one, several], [])
        self.assertEqual([key[0] for key, _ in tasks], ["all_reduce", "gemm"])


class Calls(unittest.TestCase):
    def test_what_is_unknown_is_refused(self):
        words = [sys.executable, "-B", str(ROOT / "scripts/prove"), "--no-such-option"]
        run = subprocess.run(words, check=False, capture_output=True)
        self.assertEqual(run.returncode, 2)

    def test_faults_alone_write_what_is_judged(self):
        def tasks(kind):
            return lambda *_: [(["gemm", "a", kind, 0], [kind, "--target", "sm_90a"])]
        steps = {value_tasks: tasks("values"), fault_tasks: tasks("faults")}
        with tempfile.TemporaryDirectory() as folder, \
                unittest.mock.patch.object(processes, "ORDER", list(steps.values())):
            for step, tasks_of in steps.items():
                tasks_of.__name__ = step.__name__
            arguments = types.SimpleNamespace(
                tilewright=write_program(folder, """echo "{\\"words\\": \\"$*\\"}" """),
                shard="1/1", before=[], end=time.monotonic() + 60, jobs=1, again=None,
                verbose=False, out=str(pathlib.Path(folder, "out")),
                seconds_of={"value": 0, "fault": 0})
            done = []
            processes.run(arguments, list(steps.values()), [], done)
            written = pathlib.Path(arguments.out).read_text(encoding="utf-8").splitlines()
        self.assertEqual([json.loads(line) for line in written], done)
        words = {each["key"][2]: each["answer"]["words"] for each in done}
        self.assertEqual(words["values"], "values --target sm_90a")
        self.assertRegex(words["faults"], "^faults --target sm_90a --judged /")

    def test_readers_of_files_are_clean_where_all_of_them_are(self):
        with tempfile.TemporaryDirectory() as folder, \
                contextlib.redirect_stdout(io.StringIO()) as printed:
            none = str(pathlib.Path(folder, "none"))
            writes = 'for last; do true; done; touch "$last"'
            self.assertTrue(fuzz_files(write_program(folder, writes), 0))
            self.assertEqual(printed.getvalue(), "")
            writes = 'test "$1" != npy || exit 1\n' + writes
            self.assertFalse(fuzz_files(write_program(folder, writes), 0))
            self.assertRegex(printed.getvalue(), "^npy: status 1 with --seed")
            with self.assertRaisesRegex(SystemExit, "none is not there"):
                fuzz_files(none, 0)


if __name__ == "__main__":
    unittest.main()

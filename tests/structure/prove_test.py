"""What scripts/prove makes of results, and of counted lines."""

import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
LOADER = importlib.machinery.SourceFileLoader("prove", str(ROOT / "scripts/prove"))
SPEC = importlib.util.spec_from_loader("prove", LOADER)
prove = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(prove)


def result(settings, reached, verdict):
    return {"key": ["gemm", settings, "faults", 0],
            "answer": {"operations": [{"operation": "wgmma_wait", "where": "a/gemm.cpp:7",
                                       "reached": reached}],
                       "mutants": [{"kind": 4, "where": "gemm.cpp:7", "operation": "wgmma_wait r12",
                                    "change": "left out", "verdict": verdict}]}}


class NeverReached(unittest.TestCase):
    def test_one_settings_sizes_are_enough(self):
        there = result("schedule=b", True, "equivalent")
        # The number of a register is another one.
        there["answer"]["mutants"][0]["operation"] = "wgmma_wait r9"
        self.assertEqual(prove.never_reached([result("schedule=a", False, "unreached"), there]), [])

    def test_names_what_none_comes_to(self):
        lines = prove.never_reached([result("schedule=a", False, "unreached"),
                                     result("schedule=b", False, "unreached")])
        self.assertEqual(len(lines), 2)
        self.assertIn("wgmma_wait at gemm.cpp:7", lines[1] + lines[0])


class Undecided(unittest.TestCase):
    def test_is_caught_elsewhere_where_all_of_its_line_are(self):
        other = result("schedule=b", True, "caught")
        both = [result("schedule=a", True, "undecided"), other]
        self.assertEqual([m["elsewhere"] for m in prove.undecided(both)], [True])
        # One of two that read the same is not.
        mutants = other["answer"]["mutants"]
        mutants.append({**mutants[0], "verdict": "equivalent"})
        self.assertEqual([m["elsewhere"] for m in prove.undecided(both)], [False])


class Lines(unittest.TestCase):
    SOURCE = """int f(int x) {
  if (x < 0) {
    const char* why =
        "negative";
    caller.refuse(why);
  }
  when(x > 1,
       [] { g(); });
  if (x == 3) return 1;
  return 0;
}
"""

    def setUp(self):
        with tempfile.NamedTemporaryFile("w", suffix=".cpp", encoding="utf-8") as file:
            file.write(self.SOURCE)
            file.flush()
            self.lines = prove.statements(pathlib.Path(file.name))

    def test_a_statement_has_several_lines(self):
        self.assertEqual(len(self.lines), len(self.SOURCE.splitlines()))
        self.assertEqual(self.lines[2], self.lines[3])
        self.assertEqual(self.lines[7][0], 7)

    def test_what_leads_to_a_refusal_makes_nothing(self):
        refusing = [i + 1 for i in range(len(self.lines)) if prove.refuses(self.lines, i)]
        self.assertEqual(refusing, [3, 4, 5])


class Tasks(unittest.TestCase):
    def test_a_schedule_without_a_case_of_its_own_has_a_part(self):
        class Arguments:
            short = False
        subjects = [prove.Subject("gemm", ["schedule=a"], True, 1),
                    prove.Subject("gemm", ["schedule=b"], False, prove.PARTS),
                    prove.Subject("gemm", ["schedule=c"], False, prove.PARTS)]
        parts = [words[words.index("--part") + 1] if "--part" in words else ""
                 for _, words in prove.fault_tasks(Arguments, subjects)]
        self.assertEqual(parts, ["", f"2/{prove.PARTS}", f"3/{prove.PARTS}"])

    def test_who_comes_to_a_case_first_has_all_mutants(self):
        def parts(adds_cases, cases):
            return prove.parts_of({"adds_cases": adds_cases, "cases": cases}, {"slides"})
        self.assertEqual(parts(True, ["slides", "sinks"]), 1)
        self.assertEqual(parts(True, ["slides"]), prove.PAIR_PARTS)
        self.assertEqual(parts(False, ["sinks"]), prove.PARTS)


if __name__ == "__main__":
    unittest.main()

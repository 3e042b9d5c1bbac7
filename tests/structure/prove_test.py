"""What scripts/prove makes of results, and of counted lines."""

import contextlib
import io
import json
import os
import pathlib
import tempfile
import types
import unittest
import unittest.mock

from prove_module import result

from proving import ROOT
from proving.changes import text_of
from proving.lines import counted_lines, makes_operations, refuses, statements, traces
from proving.tables import print_failures, print_left, print_sites, summarise_faults
from proving.verdicts import (
    changes_of,
    new_texts,
    undecided,
    unreached_texts,
    write_undecided,
)


class NeverReached(unittest.TestCase):
    def test_one_settings_sizes_are_enough(self):
        there = result("schedule=b", True, "equivalent")
        # The number of a register is another one.
        there["answer"]["mutants"][0]["operation"] = "wgmma_wait r9"
        self.assertEqual(unreached_texts([result("schedule=a", False, "unreached"), there]),
                         {})

    def test_names_what_none_comes_to(self):
        texts = unreached_texts([result("schedule=a", False, "unreached"),
                                 result("schedule=b", False, "unreached")])
        self.assertEqual(len(texts), 2)
        self.assertEqual(texts["wgmma_wait at gemm.cpp:7"], "gemm schedule=a")


class Undecided(unittest.TestCase):
    def test_is_caught_elsewhere_where_all_of_its_line_are(self):
        other = result("schedule=b", True, "caught")
        both = [result("schedule=a", True, "undecided"), other]
        self.assertEqual([m["elsewhere"] for m in undecided(both)], [True])
        # Of one setting all are, though other processes have made them.
        beside = [*both, result("schedule=b", True, "undecided")]
        self.assertEqual({m["elsewhere"] for m in undecided(beside)}, {False})
        # One of two that read the same is not.
        mutants = other["answer"]["mutants"]
        mutants.append({**mutants[0], "verdict": "equivalent"})
        self.assertEqual([m["elsewhere"] for m in undecided(both)], [False])

    def test_is_new_where_the_list_lacks_it_and_no_settings_catch_it(self):
        known = result("schedule=a", True, "undecided")
        other = result("schedule=a", True, "undecided")
        other["answer"]["mutants"][0]["change"] = "done twice 3 times"
        with tempfile.NamedTemporaryFile("w+", suffix=".def", encoding="utf-8") as file:
            write_undecided([known], file.name)
            self.assertIn('{4, "gemm.cpp", "wgmma_wait rN", "left out"},\n', file.read())
            (text,) = new_texts([known, other], file.name)
            self.assertIn("done twice N times", text)
            caught = result("schedule=b", True, "caught")
            caught["answer"]["mutants"][0]["change"] = "done twice 1 times"
            self.assertEqual(new_texts([known, other, caught], file.name), [])

    def test_what_the_tool_ends_with_is_a_failure_only_of_other_commands(self):
        undecided_alone = {**result("schedule=a", True, "undecided"), "status": 1}
        refused = {"key": ["gemm", "", "faults", 0], "status": 2, "error": "no such option"}
        clean = {"key": ["gemm", "", "values", 0], "status": 1, "answer": {"faults": []}}
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual([print_failures([each]) for each in (undecided_alone, refused, clean)],
                             [True, False, False])


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
            self.lines = statements(pathlib.Path(file.name))

    def test_a_statement_has_several_lines(self):
        self.assertEqual(len(self.lines), len(self.SOURCE.splitlines()))
        self.assertEqual(self.lines[2], self.lines[3])
        self.assertEqual(self.lines[7][0], 7)

    def test_what_leads_to_a_refusal_makes_nothing(self):
        refusing = [i + 1 for i in range(len(self.lines)) if refuses(self.lines, i)]
        self.assertEqual(refusing, [3, 4, 5])

    def test_braces_alone_make_nothing(self):
        lines = [(1, text) for text in ("g();", "}", "void f() {}", "g();  // only callers")]
        self.assertEqual([makes_operations(lines, i) for i in range(4)],
                         [True, False, False, False])

    def test_what_a_lambda_begins_in_was_executed_where_the_lambda_was(self):
        functions = [{"start_line": line, "execution_count": count}
                     for line, count in ((7, 3), (9, 0))]
        answer = {"current_working_directory": "/there", "files": [
            {"file": "a.cpp", "lines": [{"line_number": 7, "count": 0}], "functions": functions}]}
        with tempfile.TemporaryDirectory() as folder:
            gcov = pathlib.Path(folder, "gcov")
            gcov.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n", encoding="utf-8")
            gcov.chmod(0o755)
            pathlib.Path(folder, "a.gcda").touch()
            path = os.pathsep.join([folder, os.environ["PATH"]])
            with unittest.mock.patch.dict(os.environ, {"PATH": path}):
                lines = list(counted_lines(pathlib.Path(folder)))
        self.assertEqual([line[1:] for line in lines], [(7, 0), (7, 3)])

    def test_a_name_for_a_refusal_makes_nothing(self):
        self.assertTrue(refuses([(1, "const auto refuse = [&](int x) {")], 0))

    def test_what_describes_entries_writes_no_kernels(self):
        # An entry, its inputs, what a result is held against, and what no entry has.
        for name in ("registry_rows.cpp", "paged_inputs.cpp", "reference_vectors.cpp", "link.cpp"):
            self.assertFalse(traces(ROOT / "kernels" / name), name)
        for name in ("gemm_sm90.cpp", "keys_of_ranks.h", "attention_paged_parameters.cpp"):
            self.assertTrue(traces(ROOT / "kernels" / name), name)


class Text(unittest.TestCase):
    def test_has_no_name_of_a_kernel(self):
        mutant = {"kind": 4, "where": "kernels/attention.cpp:7", "change": "left out",
                  "operation": "wgmma_wait r12 of attention_forward"}
        self.assertEqual(text_of(mutant),
                         "the mutant wgmma_wait rN left out of kind 4 at attention.cpp:7")
        # What is of no kernel keeps its words.
        mutant["operation"] = "zeros of turns in stream main"
        self.assertIn("zeros of turns in stream main", text_of(mutant))


class Left(unittest.TestCase):
    def test_what_has_no_verdict_is_counted_and_named(self):
        caught = result("a", True, "caught")
        text = text_of(caught["answer"]["mutants"][0])
        arguments = types.SimpleNamespace(of_files={text.replace("gemm.cpp:7", "gemm.cpp:9")},
                                          texts={text: []}, shard="1/1", short=False)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.assertFalse(print_left(arguments, [caught]))
        self.assertIn("2 changes of lines in all, of which 1 have no verdict", printed.getvalue())
        self.assertIn("no verdict yet: 1 at gemm.cpp:9", printed.getvalue())
        arguments.of_files = set()
        with contextlib.redirect_stdout(printed):
            self.assertTrue(print_left(arguments, [caught]))


class Tables(unittest.TestCase):
    def printed(self, function, results):
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            function(results)
        return text.getvalue().splitlines()

    def of_kinds(self, name, settings):
        caught = result(settings, True, "caught")
        caught["key"][0], caught["seconds"] = name, 60
        caught["answer"]["mutants"][0] |= {"right_class": True, "both_lines": True}
        caught["answer"]["kinds"] = [
            {"number": 4, "name": "a wait left out", "sites": 3, "mutants": 1},
            {"number": 5, "name": "a fence left out", "absent": "no fence"}]
        return caught

    def test_a_kind_without_mutants_says_why_and_the_others_are_counted(self):
        lines = self.printed(summarise_faults, [self.of_kinds("gemm", "a=1")])
        (of_waits,) = [line.split() for line in lines if "a wait left out" in line]
        (of_fences,) = [line.split() for line in lines if "a fence left out" in line]
        self.assertEqual(of_fences[-2:], ["no", "fence"])
        self.assertEqual(of_waits[5:7], ["3", "1"])

    def test_sites_are_of_kernels_by_level_and_of_examples(self):
        results = [self.of_kinds("gemm", "a=1"), self.of_kinds("gemm", "schedule=tile a=1"),
                   self.of_kinds("x/own.tw", "")]
        lines = self.printed(print_sites, results)
        self.assertEqual(lines[0], "sites: (1) examples; (2) gemm explicit; (3) gemm tile")
        self.assertEqual(lines[2].split(), ["4", "3", "3", "3"])


class Changes(unittest.TestCase):
    def verdict(self, *results):
        (mutant,) = changes_of(results).values()
        return mutant["verdict"]

    def test_one_that_is_caught_stands_for_all_that_read_the_same(self):
        caught, undecided = result("a", True, "caught"), result("b", True, "undecided")
        self.assertEqual(self.verdict(undecided, caught), "caught")
        self.assertEqual(self.verdict(caught, undecided), "caught")
        self.assertEqual(self.verdict(undecided, result("a", True, "equivalent")), "undecided")
        self.assertEqual(self.verdict(result("a", False, "unreached"),
                                      result("b", True, "equivalent")), "equivalent")

    def test_an_undecided_one_beside_one_that_is_caught_counts(self):
        both = result("a", True, "caught")
        mutants = both["answer"]["mutants"]
        mutants.append({**mutants[0], "verdict": "undecided"})
        self.assertEqual(self.verdict(both), "undecided")


if __name__ == "__main__":
    unittest.main()

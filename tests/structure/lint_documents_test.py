"""Tests scripts/lint_documents.py on a repository of a few files."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import lint_documents  # noqa: E402

LONG = " ".join(["word"] * 31) + "."
SHORT = " ".join(["word"] * 30) + "."


class LintDocuments(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("docs/performance.md", "# Performance\n\n## GEMM, by size\n\n| 1.016 |\n")
        self.write("src/ir/verifier_tile.cpp", "")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def finds(self, text, *expected, name="README.md"):
        self.write(name, text)
        found = list(lint_documents.findings(self.root))
        self.assertEqual(len(found), len(expected), found)
        for line, part in zip(found, expected):
            self.assertIn(part, line)

    def test_long_sentences(self):
        self.finds(SHORT + " " + SHORT + "\n\n```\n" + LONG + "\n```\n")
        self.finds("Short.\n\n" + LONG, "README.md:3: a sentence of 31 words")
        self.finds("- Short.\n- " + LONG, "README.md:2: a sentence of 31 words")
        self.finds(f"| a | {LONG} |", "README.md:1: a sentence of 31 words")
        self.finds(" ".join(["word"] * 29) + " `any piece of code`.")

    def test_the_log_may_have_them(self):
        self.finds(LONG, name="docs/log/2026-11-21-subject.md")

    def test_links(self):
        self.finds("[a](docs/performance.md#gemm-by-size) [b](#here)\n\n# Here\n")
        self.finds("[a](docs/none.md)", "docs/none.md, which does not exist")
        self.finds("[a](docs/performance.md#none)", "performance.md has no such heading")

    def test_files(self):
        self.finds("`src/ir` and `src/ir/verifier_*.cpp`, but tests/none\n\n```cpp\nsrc/no\n```\n")
        self.finds("`src/driver/none.cpp`", "src/driver/none.cpp, which does not exist")
        self.finds("```\nscripts/none --dump src/none\n```", "README.md:2: scripts/none, which")
        self.finds("```\nbuild/release/examples/example_none\n```", "example_none, which no source")

    def test_figures(self):
        self.finds("1.017 is no figure of the table, and 1.0 is none of two decimals")
        self.finds("At 1.016 of cuBLAS", "1.016, which docs/performance.md holds")


if __name__ == "__main__":
    unittest.main()

"""What documents show of the command's answers is what it says.

A block begins with its command, `$ tilewright ...`, or a comment before it names the command. A
line `...` stands for lines that are left out.
"""

import os
import pathlib
import re
import shlex
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")),
             *sorted((ROOT / "docs/tutorial").glob("*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- \$ (?P<said>tilewright [^\n]*) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.S | re.M)
MEASURED = re.compile(r"-?\d+\.\d+(e[+-]\d+)?")  # rounding differs by instruction set


def answers(text):
    """Pairs of a command that a document quotes and the lines that it shows of the answer."""
    for block in BLOCK.finditer(text):
        if block["language"]:
            continue
        found = [(block["said"], [])] if block["said"] else []
        for line in block["text"].splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found:
                found[-1][1].append(line)
        for command, lines in found:
            if lines and command.startswith("tilewright "):
                yield command, [line for line in lines if line.strip() != "..."]


def missing(shown, said):
    """The first line shown that does not come in the answer behind those before it."""
    rest = iter(MEASURED.sub("#", line) for line in said.splitlines())
    for line in shown:
        if MEASURED.sub("#", line) not in rest:
            return line
    return None


class QuotedAnswers(unittest.TestCase):
    def test_an_answer_that_reads_otherwise_is_found(self):
        document = ("```cpp\n$ tilewright code\nnone\n```\n"
                    "```\n$ tilewright list a\none\n  ...\ntwo 1.5\n```\n"
                    "<!-- $ tilewright b -->\n```\nthree\n```\n")
        self.assertEqual(list(answers(document)),
                         [("tilewright list a", ["one", "two 1.5"]), ("tilewright b", ["three"])])
        self.assertIsNone(missing(["one", "two 1.5"], "one\nand\ntwo 1.25\n"))
        self.assertEqual(missing(["one", "two:7"], "one\ntwo:8\n"), "two:7")
        self.assertEqual(missing(["two", "one"], "one\ntwo\n"), "one")

    def test_documents_show_what_the_command_says(self):
        tilewright, checked = os.environ["TILEWRIGHT"], 0
        for path in DOCUMENTS:
            for command, shown in answers(path.read_text()):
                words = shlex.split(command)[1:]
                if any(re.search(r"\.twp?$", word) for word in words):
                    continue  # of a file that the reader has written
                with self.subTest(document=path.name, command=command):
                    answer = subprocess.run([tilewright, *words], cwd=ROOT, stdout=subprocess.PIPE,
                                            stderr=subprocess.STDOUT, text=True).stdout
                    self.assertIsNone(missing(shown, answer), answer)
                    checked += 1
        self.assertGreaterEqual(checked, 6)


if __name__ == "__main__":
    unittest.main()

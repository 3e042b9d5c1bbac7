"""scripts/compile_alone tells a file that includes what it uses from one that does not."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = sys.argv.pop() if len(sys.argv) > 1 else str(ROOT / "build/release")


class CompileAlone(unittest.TestCase):
    def answer_of(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "made_up.h")
            path.write_text("#pragma once\n" + text)
            return subprocess.run([sys.executable, str(ROOT / "scripts/compile_alone"), "--build",
                                   BUILD, str(path)], capture_output=True, text=True, check=False)

    def test_a_header_that_includes_what_it_uses(self):
        answer = self.answer_of("#include <string>\ninline std::string word() { return {}; }\n")
        self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr)
        self.assertIn("1 files, 0 of them", answer.stdout)

    def test_one_that_leaves_it_to_the_precompiled_header(self):
        answer = self.answer_of("inline std::string word() { return {}; }\n")
        self.assertEqual(answer.returncode, 1, answer.stdout + answer.stderr)
        self.assertIn("made_up.h does not compile alone", answer.stdout)


if __name__ == "__main__":
    unittest.main()

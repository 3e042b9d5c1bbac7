"""What sanitizers watch: readers of changed files, and calls from several threads."""

import os
import pathlib
import random
import subprocess
import sys
import tempfile

from . import ROOT


def fuzz_files(program, seconds):
    """Whether no reader of files has a finding; each from a seed of its own, which it prints."""
    if not os.access(program, os.X_OK):
        sys.exit(f"{program} is not there: cmake --preset asan && "
                 "cmake --build --preset asan --target fuzz_files, or name it by --fuzz-files")
    ok = True
    for corpus in sorted((ROOT / "tests/fuzz_files/corpus").iterdir()):
        seed = str(random.randrange(1 << 32))
        last = pathlib.Path(tempfile.gettempdir()) / f"fuzz_files.{corpus.name}.{seed}"
        words = [program, corpus.name, str(corpus), "--seconds", str(seconds), "--seed", seed,
                 "--last", str(last)]
        status = subprocess.run(words, check=False).returncode
        if status == 0:
            last.unlink()
            continue
        print(f"{corpus.name}: status {status} with --seed {seed}; the input is in {last}")
        ok = False
    return ok


def threads():
    """Whether the thread sanitizer has nothing against calls from several threads."""
    steps = [["cmake", "--preset", "tsan"],
             ["cmake", "--build", "--preset", "tsan", "--target", "tests_api", "tests_runtime"],
             ["ctest", "--preset", "tsan", "-R", "ThreadsTest|ThreadsShare|ThreadsAndProcesses"]]
    return all(subprocess.run(step, check=False, cwd=ROOT).returncode == 0 for step in steps)

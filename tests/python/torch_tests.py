#!/usr/bin/env python3
"""The tests of tilewright.torch, where there is PyTorch.

    tests/python/torch_tests.py attention              those of torch_attention_test.py
    tests/python/torch_tests.py attention Refusals     one class of it

The exit status is 77, which ctest shows as skipped, where the interpreter has no PyTorch.
"""

import importlib.util
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print(f"skipped: {sys.executable} has no PyTorch")
        sys.exit(77)
    sys.path.insert(0, str(ROOT / "python"))
    unittest.main(module=f"torch_{sys.argv.pop(1)}_test")

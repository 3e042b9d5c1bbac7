#!/usr/bin/env python3
"""The tests of tilewright.torch, where there is PyTorch.

    tests/python/torch_tests.py attention              those of torch_attention_test.py
    tests/python/torch_tests.py attention Refusals     one class of it

The exit status is 77, which ctest shows as skipped, where the interpreter has no PyTorch, or not
what else these tests need.
"""

import importlib.util
import pathlib
import sys
import unittest

NEEDED = {"transformers": ("transformers",)}  # besides PyTorch
ROOT = pathlib.Path(__file__).resolve().parents[2]

if __name__ == "__main__":
    name = sys.argv.pop(1)
    for package in ("torch", *NEEDED.get(name, ())):
        if importlib.util.find_spec(package) is None:
            print(f"skipped: {sys.executable} has no package {package}")
            sys.exit(77)
    sys.path.insert(0, str(ROOT / "python"))
    unittest.main(module=f"torch_{name}_test")

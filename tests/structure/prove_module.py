"""scripts/prove as a module, for its tests."""

import importlib.machinery
import importlib.util
import pathlib
import sys

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

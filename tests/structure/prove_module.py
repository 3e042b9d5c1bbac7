"""The parts of scripts/prove for its tests, and a result of theirs."""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))


def result(settings, reached, verdict):
    return {"key": ["gemm", settings, "faults", 0],
            "answer": {"operations": [{"operation": "wgmma_wait", "where": "a/gemm.cpp:7",
                                       "reached": reached}],
                       "mutants": [{"kind": 4, "where": "gemm.cpp:7", "operation": "wgmma_wait r12",
                                    "change": "left out", "verdict": verdict}]}}

"""The parts of scripts/prove."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]

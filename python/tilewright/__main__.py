"""python -m tilewright: the command, where the library has it (scripts/wheel)."""

import sys

from ._command import main

sys.exit(main())

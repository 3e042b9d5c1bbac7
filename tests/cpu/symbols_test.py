"""Holds that nothing of one instruction set of the CPU's operations leaks into other code.

    symbols_test.py NM ARCHIVE

An inline function or a template with external linkage, compiled with AVX-512 in one file, may be
the copy that the linker keeps for all. So each of these files defines its table alone, and calls
nothing but functions of the C library.
"""

import re
import subprocess
import sys

# What each file defines for others.
EXPORTS = {
    "v2.cpp": {"tilewright::cpu::kKernelsV2"},
    "v3.cpp": {"tilewright::cpu::kKernelsV3"},
    "v4.cpp": {"tilewright::cpu::kKernelsV4"},
    "bf16.cpp": {
        "tilewright::cpu::product_with_bf16(tilewright::cpu::Product const&)",
        "tilewright::cpu::a_as_pairs(tilewright::cpu::Product const&, void*)",
        "tilewright::cpu::chain_with_bf16(tilewright::cpu::Shape, "
        "tilewright::cpu::Step const*, int, tilewright::cpu::FirstRow)",
        "tilewright::cpu::convert_to_bf16(tilewright::cpu::Shape, "
        "tilewright::cpu::Operand const&, tilewright::cpu::Result)",
    },
    "amx.cpp": {"tilewright::cpu::product_with_amx(tilewright::cpu::Product const&)"},
    "baseline.cpp": {"tilewright::cpu::kKernelsBaseline"},
}
# What they may use: functions of C, what bf16 takes of v4 and amx of bf16, and what compilers and
# sanitizers add.
IMPORTS = re.compile(
    r"mem(cpy|set|move)|(sin|cos|fma)f|tilewright::cpu::kKernels(V4|Baseline)"
    r"|tilewright::cpu::product_with_bf16\(tilewright::cpu::Product const&\)"
    r"|tilewright::cpu::a_as_pairs\(tilewright::cpu::Product const&, void\*\)"
    r"|_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|__(asan|ubsan|tsan|gcov)_.*"
)


def faults(archive_text):
    """The symbols of an archive, as `nm -C` prints them, that should not be."""
    found, seen, member = [], set(), None
    for line in archive_text.splitlines():
        header = re.fullmatch(r"(.*)\.o(bj)?:", line)
        if header:
            member = header[1] if header[1] in EXPORTS else None
            continue
        symbol = re.fullmatch(r"[0-9a-f]* *([A-Za-z]) (.*)", line.strip())
        if not member or not symbol:
            continue
        kind, name = symbol.groups()
        if kind == "U":
            if not IMPORTS.fullmatch(name):
                found.append(f"{member} uses {name}")
        elif kind.isupper() or kind in "uvw":
            if name in EXPORTS[member]:
                seen.add(name)
            elif not IMPORTS.fullmatch(name):
                found.append(f"{member} defines {name} ({kind}) for others too")
    return found, seen


def main(nm, archive):
    text = subprocess.run([nm, "-C", archive], check=True, capture_output=True, text=True).stdout
    found, seen = faults(text)
    assert not found, "\n".join(found)
    assert seen, f"{archive} has none of the tables"
    # The test sees what it looks for.
    leak = "\nv4.cpp.o:\n0000 W std::min(int, int)\n                 U std::max(int, int)\n"
    assert len(faults(text + leak)[0]) == 2


if __name__ == "__main__":
    main(*sys.argv[1:])

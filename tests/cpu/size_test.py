"""Holds that the target cpu takes less than 1.5 MB of a library.

    size_test.py READELF ARCHIVE

Counted is what the linker takes of the objects: the sections that are loaded, and a relocation for
each pointer in a table, since a shared library may lie anywhere.
"""

import re
import subprocess
import sys

LIMIT = 1_500_000


def loaded_bytes(text):
    """Of an archive, whose sections `readelf -SW` prints."""
    sizes = []
    for line in text.splitlines():
        section = re.match(
            r" *\[ *\d+\] (?P<name>\S+) +(?P<type>\S+) +[0-9a-f]+ [0-9a-f]+ (?P<size>[0-9a-f]+)"
            r" [0-9a-f]+ +(?P<flags>[A-Za-z]*) ", line)
        if not section:
            continue
        is_loaded = "A" in section["flags"] and section["type"] != "NOBITS"
        if is_loaded or section["name"].startswith((".rela.data.rel", ".rela.init_array")):
            sizes.append(int(section["size"], 16))
    return sum(sizes)


def main(readelf, archive):
    text = subprocess.run([readelf, "-SW", archive], check=True, capture_output=True,
                          text=True).stdout
    size = loaded_bytes(text)
    print(f"{size} bytes")
    assert 100_000 < size < LIMIT, f"{archive} has {size} bytes, of which {LIMIT} are allowed"
    # The test sees what it looks for.
    nowhere = "0000000000000000 000040"
    more = (f"  [ 1] .text             PROGBITS {nowhere} 400000 00  AX  0   0 16\n"
            f"  [ 2] .rela.data.rel.ro RELA     {nowhere} 000030 18   I  4   1  8\n"
            f"  [ 3] .bss              NOBITS   {nowhere} 000100 00  WA  0   0  8\n"
            f"  [ 4] .debug_info       PROGBITS {nowhere} 000100 00      0   0  1\n")
    assert loaded_bytes(text + more) == size + 0x400030


if __name__ == "__main__":
    main(*sys.argv[1:])

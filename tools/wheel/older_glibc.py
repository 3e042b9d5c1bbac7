#!/usr/bin/env python3
"""Stands in for an older C library at a link: what is linked then runs on systems that have it.

    older_glibc.py 2.28 FOLDER     FOLDER/libc.so, libm.so, libpthread.so, libdl.so, libloader.so
    older_glibc.py 2.28 FOLDER --compiler aarch64-linux-gnu-gcc --objdump aarch64-linux-gnu-objdump

The files hold no code. Each has the symbols that the compiler's own C library still offers under
versions up to that one, as the older one had them: threads and dlopen in libraries of their own.
What came later is missing, so that the linker names it.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import tempfile

ONE_LIBRARY = (2, 34)  # since then libc.so.6 is libpthread and libdl as well
LOADER = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
ENTRY = re.compile(r"^[0-9a-f]+ (.{7}) (\S+)\s+[0-9a-f]+\s+\(?GLIBC_([\d.]+)\)? +(\S+)$")


def printed_by(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def number(version):
    return tuple(int(part) for part in version.split("."))


def symbols_of(library, tools):
    """By name the versions under which it is there, and whether it is data."""
    found = collections.defaultdict(dict)
    path = printed_by(tools.compiler, f"-print-file-name={library}").strip()
    for line in printed_by(tools.objdump, "-T", path).splitlines():
        entry = ENTRY.match(line)
        if entry and entry[2] not in ("*UND*", "*ABS*"):
            found[entry[4]][entry[3]] = entry[1].endswith("O")
    return found


def home_of(name, versions, newest):
    """In which library it was."""
    moved = max(map(number, versions)) >= ONE_LIBRARY > newest
    if not moved:
        return "libc.so.6"
    return "libdl.so.2" if name.startswith("dl") else "libpthread.so.0"


def write(folder, library, symbols, compiler):
    """A shared library of these symbols: {version: [(name, is_data)]}."""
    code, script = [".text"], []
    for version in sorted(symbols, key=number):
        script.append(f"GLIBC_{version} {{}};")
        for name, is_data in symbols[version]:
            place = f"symbol_{len(code)}"
            code += [f".globl {place}", f".type {place}, %{'object' if is_data else 'function'}",
                     f"{place}: .quad 0", f".size {place}, 8",
                     f".symver {place}, {name}@@@GLIBC_{version}"]
    stem = "libloader" if library in LOADER.values() else library.partition(".so")[0]
    with tempfile.TemporaryDirectory() as work:
        source, versions = pathlib.Path(work, "stub.s"), pathlib.Path(work, "stub.map")
        source.write_text("\n".join(code) + "\n")
        versions.write_text("\n".join(script) + "\n")
        subprocess.run([compiler, "-shared", "-nostdlib", f"-Wl,-soname,{library}",
                        f"-Wl,--version-script={versions}", str(source), "-o",
                        str(folder / f"{stem}.so")], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("newest", type=number)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--objdump", default="objdump")
    tools = parser.parse_args()
    newest, folder = tools.newest, tools.folder
    folder.mkdir(parents=True, exist_ok=True)
    machine = printed_by(tools.compiler, "-dumpmachine").partition("-")[0]
    whole = ("libm.so.6", LOADER[machine])
    libraries = {name: collections.defaultdict(list)
                 for name in ("libc.so.6", "libpthread.so.0", "libdl.so.2", *whole)}
    for library in ("libc.so.6", *whole):
        for name, versions in symbols_of(library, tools).items():
            older = [version for version in versions if number(version) <= newest]
            if not older:
                continue
            home = library if library in whole else home_of(name, versions, newest)
            version = max(older, key=number)
            libraries[home][version].append((name, versions[version]))
    for library, symbols in libraries.items():
        write(folder, library, symbols, tools.compiler)


if __name__ == "__main__":
    main()

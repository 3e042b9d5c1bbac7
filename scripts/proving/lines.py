"""Whether settings execute every statement that writes a kernel."""

import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

from . import ROOT
from .subjects import CORES, library

REFUSES = re.compile(r"\b(refuse|raise_usage|fail)\(|\brefuse = \[")
HOST = {"tilewright/library.h", "tilewright/host_tensor.h"}
NO_LANGUAGE = {"tilewright/error.h"}
ONLY_CALLERS = "// only callers"  # no settings of the library come to the statement, or namespace


def statements(path):
    """Of each line of a C++ file, the first line of the statement that it is in, and its text."""
    lines = path.read_text(encoding="utf-8").splitlines()
    of_line, begin = [], 0
    for i, line in enumerate(lines):
        if re.search(r"[;{}]\s*(//.*)?$", line) or i + 1 == len(lines):
            text = " ".join(part.strip() for part in lines[begin:i + 1])
            of_line += [(begin + 1, text)] * (i + 1 - begin)
            begin = i + 1
    return of_line


def refuses(of_line, number):
    """Whether the line's statement, or one behind it in its block, refuses what a caller passes."""
    for _, text in of_line[number:]:
        if REFUSES.search(text):
            return True
        if text.endswith(("}", "{")) or text.startswith("}"):
            return False
    return False


def makes_operations(of_line, number):
    """Whether the line's statement may write a part of a kernel."""
    text = of_line[number][1]
    return not (text == "}" or text.endswith("{}") or ONLY_CALLERS in text
                or refuses(of_line, number))


def included(path, seen):
    """What the file includes, by name, and what headers of kernels/ among it do."""
    for name in re.findall(r'^#include "([^"]+)"', path.read_text(encoding="utf-8"), re.M):
        if name not in seen:
            seen.add(name)
            if name.startswith("kernels/"):
                included(ROOT / name, seen)
    return seen


def traces(path):
    """Whether kernels are written there. Entries of the library, what draws their inputs and what
    their results are held against know numbers of the host. What knows no header of the language
    writes none either."""
    if re.search(f"^namespace .*{ONLY_CALLERS}", path.read_text(encoding="utf-8"), re.M):
        return False
    names = included(path, set())
    return not HOST.intersection(names) and any(
        name.startswith("tilewright/") and name not in NO_LANGUAGE for name in names)


def counted_lines(folder):
    """(file, line, how often it was executed) of what GCC's counters there say."""
    for counters in sorted(folder.rglob("*.gcda")):
        answer = subprocess.run(["gcov", "--json-format", "--stdout", str(counters)], check=True,
                                capture_output=True, text=True).stdout
        for document in map(json.loads, answer.splitlines()):
            at = pathlib.Path(document["current_working_directory"])
            for file in document["files"]:
                path = (at / file["file"]).resolve()
                for line in file["lines"]:
                    yield path, line["line_number"], line["count"]
                # A statement that a lambda begins in is counted as the lambda's, and never.
                for function in file["functions"]:
                    if function["execution_count"] > 0:
                        yield path, function["start_line"], function["execution_count"]


def traced_lines(arguments, subjects):
    """Whether the subjects' builds, and those of the plans' cases for the CPU and for cores,
    execute every statement of kernels/ that makes operations.

    What refuses a caller's options makes none. Prints those that are left."""
    subjects = subjects + library(arguments.tilewright, ["cpu", *CORES])[0]
    folder = pathlib.Path(arguments.tilewright).resolve().parent.parent
    subprocess.run(["cmake", "--build", str(folder), "--target", "tilewright_covered"],
                   check=True, stdout=sys.stderr)
    counters = folder / "kernels/CMakeFiles/tilewright_kernels_covered.dir"
    for old in counters.rglob("*.gcda"):
        old.unlink()

    def trace(subject):
        subprocess.run([str(folder / "bin/tilewright_covered"), "list", subject.name, "--cases",
                        "--target", subject.target, *subject.set], check=True,
                       stdout=subprocess.DEVNULL)

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(trace, subjects))
    of_file, executed = {}, collections.Counter()
    for path, line, count in counted_lines(counters):
        if path.parent != ROOT / "kernels" or not traces(path):
            continue
        if path not in of_file:
            of_file[path] = statements(path)
        first, text = of_file[path][line - 1]
        if makes_operations(of_file[path], line - 1):
            executed[(path.name, first, text)] += count
    if not executed:
        sys.exit("gcov counted nothing: is it of the compiler that built kernels/?")
    left = sorted(statement for statement, count in executed.items() if count == 0)
    for name, line, text in left:
        print(f"no settings trace kernels/{name}:{line}: {text[:120]}")
    print(f"{len(executed)} statements of {len(of_file)} files of kernels/, {len(subjects)} "
          f"kernels and settings; {len(left)} that none of them traces")
    return not left

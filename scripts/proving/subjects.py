"""What is proved: kernels, programs and settings, and how a process of the tool names them."""

import collections
import concurrent.futures
import json
import os
import pathlib
import re
import struct
import subprocess
import sys

SHORT = ("gemm", ["schedule=64x64x128"])
# Kernels of the library have it where they are for another target than the usual one.
TARGET = "target="
TARGETS = ["sm_90a", "sm_100a"]
CORES = ["incore", "incore_unified", "incore_partitions"]
# What a program's file does not say: its sizes, and what the buffers hold that it reads. Lengths
# are about pages of 32, and about pairs of them.
LENGTHS = [0, 1, 31, 33, 64, 96, 97, 150]
OF_PAGED = [
    "--set", f"batch={len(LENGTHS)}", "--set", "heads=20", "--set", "most=5",
    "--set", f"pages={5 * len(LENGTHS)}", "--in", "table=permutation"]
OF_PROGRAMS = {"paged_attention": OF_PAGED}


def write_lengths(folder):
    """The file that programs read them of, in NumPy's format."""
    path = pathlib.Path(folder, "lengths.npy")
    header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({len(LENGTHS)},), }}"
    header = header.ljust(128 - 10 - 1).encode() + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
                     + struct.pack(f"<{len(LENGTHS)}i", *LENGTHS))
    OF_PROGRAMS["paged_attention"] = [*OF_PAGED, "--in", f"lengths={path}"]


class Subject(collections.namedtuple("Subject", "name settings adds_cases cases over_ranks",
                                     defaults=[(), False])):
    """An operation of the library with settings, of one kernel or several, or a file with none.

    One setting may be its target."""

    @property
    def is_file(self):
        return self.name.endswith((".tw", ".twp"))

    @property
    def own_cases(self):
        """Those of the tile level are others than those of explicit schedules."""
        level = (self.target, "schedule=tile" in self.settings)
        return [(self.name, level, case) for case in self.cases]

    @property
    def target(self):
        named = [s.removeprefix(TARGET) for s in self.settings if s.startswith(TARGET)]
        return named[0] if named else TARGETS[0]

    @property
    def is_of_core(self):
        return self.target in CORES

    @property
    def set(self):
        """The words that set its options."""
        if self.name.endswith(".twp"):
            return next((words for stem, words in OF_PROGRAMS.items()
                         if pathlib.Path(self.name).name.startswith(stem)), [])
        return [word for setting in self.settings if not setting.startswith(TARGET)
                for word in ("--set", setting)]


def library(command, targets):
    """The subjects that cover every case, and the cases that none comes to."""
    subjects, missing, reached = [], set(), set()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        lists = list(pool.map(lambda target: subprocess.run(
            [command, "list", "--cases", "--json", "--target", target],
            capture_output=True, text=True, check=False), targets))
    for target, process in zip(targets, lists):
        if process.returncode > 1:
            sys.exit(process.stderr)
        answer = json.loads(process.stdout)
        missing.update(answer["missing"])
        own = [] if target == TARGETS[0] else [TARGET + target]
        for kernel in answer["kernels"]:
            for each in kernel["settings"]:
                reached.update(each["cases"])
                subjects.append(Subject(kernel["name"], each["settings"] + own, each["adds_cases"],
                                        tuple(each["cases"]), kernel["over_ranks"]))
    return subjects, sorted(missing - reached)


def of_short(command):
    """The one subject of --short. To cover the library takes longer than all that is done with it;
    a test of its own does that."""
    name, settings = SHORT
    named = [word for setting in settings for word in ("--set", setting)]
    process = subprocess.run([command, "list", name, "--cases", "--json", *named],
                             capture_output=True, text=True, check=False)
    if process.returncode != 0:
        sys.exit(process.stderr)
    answer = json.loads(process.stdout)
    return [Subject(answer["name"], answer["settings"], True)]


def examples(folder, into, of_cores=False):
    """The kernels of the example programs, which write them as they compile them."""
    programs = [program for program in sorted(pathlib.Path(folder).glob("example_*"))
                if program.is_file() and os.access(program, os.X_OK)]

    def dump(program):  # several may have kernels of one name
        subprocess.run([program], check=True, capture_output=True,
                       env=dict(os.environ, TILEWRIGHT_DUMP=str(pathlib.Path(into, program.name))))

    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(dump, programs))
    return files_of(into, of_cores)


def files_of(folder, of_cores=False):
    """Those of GPUs in the folder or below, or those for cores. A program of any size has none to
    be run with, unless it is known here; it is compiled for each core where it names none."""
    folder = pathlib.Path(folder)
    subjects = []
    for path in sorted([*folder.rglob("*.tw"), *folder.rglob("*.twp")]):
        text = path.read_text(encoding="utf-8")
        named = re.search(r'^target "(\w+)"', text, re.M)
        target = named[1] if named else TARGETS[0]
        has_no_size = re.search(r"\Aprogram .*\ndim ", text) is not None
        if of_cores and has_no_size and any(path.name.startswith(stem) for stem in OF_PROGRAMS):
            subjects += [Subject(str(path), [TARGET + core], True)
                         for core in ([target] if target in CORES else CORES)]
        elif (target in CORES) == of_cores and (of_cores or not has_no_size):
            settings = [TARGET + target] if target != TARGETS[0] else []
            subjects.append(Subject(str(path), settings, True))
    return subjects


def is_program(subject):
    """Or a kernel of several ranks, which is run as one."""
    path = subject.name
    return path.endswith(".twp") or (path.endswith(".tw") and re.search(
        r"^(symmetric|signals) ", pathlib.Path(path).read_text(encoding="utf-8"), re.M) is not None)


def is_alone(subject):
    """A program of one rank that was recorded for more, too: no signal of its kernels matters."""
    path = pathlib.Path(subject.name)
    return any(path.parent.glob(f"{path.stem}-*ranks{path.suffix}"))


def key(subject, kind, first):
    return [pathlib.Path(subject.name).name, " ".join(subject.settings), kind, first]


def words(subject, *more):
    return ["simulate", subject.name, "--target", subject.target, "--json", *subject.set, *more]


def named(subject):
    return subject.name, tuple(subject.settings)


def name_of(key):
    return f"{key[0]} {key[1]}".strip()

"""The command `tilewright` in a process of its own: an interrupt ends it, and so does what a kernel
does to a GPU."""

import io
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import threading

from .binding import UNAVAILABLE, TilewrightError, load_library

_PACKAGES = pathlib.Path(__file__).resolve().parents[1]
_FALLS_SHORT = 1  # the status of an answer that is no good news


def _command(library):
    """The words that start it: it is in the library of a wheel, and beside that of a build."""
    if library.has_command:
        return [sys.executable, "-m", "tilewright"]
    beside = pathlib.Path(library.path).resolve().parent.parent / "bin/tilewright"
    found = str(beside) if beside.exists() else shutil.which("tilewright")
    if found is None:
        raise TilewrightError("error: the command tilewright is not found\n  fix: build it, or put "
                              "it on PATH", UNAVAILABLE)
    return [found]


def _environment(library):
    path = os.pathsep.join(filter(None, (str(_PACKAGES), os.environ.get("PYTHONPATH"))))
    terminal = os.environ.get("TERM", "")
    return {**os.environ, "PYTHONPATH": path, "TILEWRIGHT_LIBRARY": library.path,
            "TERM": "xterm" if terminal in ("", "dumb") else terminal}


def _shows_progress(stream):
    """Whether somebody looks on: at a terminal, or a notebook."""
    return stream.isatty() or type(stream).__module__.startswith("ipykernel")


def answer(*words):
    """What it says as JSON. Its errors are TilewrightError. Progress of long work is shown."""
    library = load_library()
    show = sys.stderr if _shows_progress(sys.stderr) else io.StringIO()
    reader, writer = pty.openpty()  # it shows progress to a terminal alone
    command = [*_command(library), *words, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writer, stdin=subprocess.DEVNULL,
                          env=_environment(library)) as child:
        os.close(writer)
        told = _Errors(reader, show)
        told.start()
        try:
            printed = child.stdout.read()
        except BaseException:  # an interrupt, above all
            child.kill()
            raise
        finally:
            child.wait()
            told.join()
            os.close(reader)
    if child.returncode not in (0, _FALLS_SHORT) or not printed:
        raise TilewrightError(_in_python(told.text().strip()) or f"error: {command[0]} ended with "
                              f"the status {child.returncode}", child.returncode)
    return json.loads(printed)


# The command's options that functions of this package take, by their names there.
_ARGUMENTS = {"backward": "backward=", "directions": "directions", "in": "inputs",
              "model-only": "model_only=True", "schedules": "schedules", "seed": "seed",
              "sizes": "sizes=", "target": "target="}
_OPTION = re.compile(r"--(" + "|".join(_ARGUMENTS) + r")(?![\w-])( ?)")
_INPUT = re.compile(r"--in (\w+)=([^\s,]*[^\s,:])")
_HELP = re.compile(r"tilewright ([a-z]+(?:-[a-z]+)*) --help lists what there is")


def _in_python(error):
    """What the command says of its options, of the arguments that they were here."""
    error = _HELP.sub(lambda found: f"help(tilewright.{found[1].replace('-', '_')}) says what "
                      "there is", error)
    error = _INPUT.sub(r"inputs={'\1': '\2'}", error)

    def argument(found):
        name = _ARGUMENTS[found[1]]
        return name if name.endswith("=") else name + found[2]  # a value follows at once

    return _OPTION.sub(argument, error)


# What src/support/progress.cpp writes.
_BAR = re.compile(r"\r\x1b\[K(?:[^\r\n]* \[#*\.*\] \d+/\d+)?")


class _Errors(threading.Thread):
    """Reads what the command writes to its terminal: bars of progress are passed on, and the rest
    is kept."""

    def __init__(self, reader, show):
        super().__init__(daemon=True)
        self._reader, self._show, self._kept = reader, show, []

    def run(self):
        while True:
            try:
                data = os.read(self._reader, 4096)
            except OSError:  # how a terminal says that its other end is closed
                return
            if not data:
                return
            text = data.decode(errors="replace").replace("\r\n", "\n")
            self._kept.append(_BAR.sub("", text))
            for bar in _BAR.findall(text):
                self._show.write(bar)
                self._show.flush()

    def text(self):
        return "".join(self._kept)

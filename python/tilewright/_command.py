"""The command `tilewright` of an installed wheel, which is in the library."""

import ctypes
import os
import signal
import sys

from .binding import library_path


def main():
    # As for a program of C: Python would hold an interrupt back until the command has ended.
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    words = [os.fsencode(word) for word in ("tilewright", *sys.argv[1:])]
    arguments = (ctypes.c_char_p * (len(words) + 1))(*words)
    return ctypes.CDLL(library_path()).tilewright_command(len(words), arguments)

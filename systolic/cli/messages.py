"""Notes, warnings and errors of a command on standard error.

The library logs to the logger ``systolic``. A command shows its notes, warnings and errors. ``-v`` adds each step, and
``-q`` shows errors only.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from boards.errors import SystolicError, cut
from systolic.cli import progress
from systolic.cli.parsing import MAX_SENTENCE_LENGTH
from systolic.cli.streams import shown_as_text

log = logging.getLogger("systolic")


class _Shown(logging.Handler):
    """A handler that writes each record as one line to standard error, above the line of progress.

    It looks up ``sys.stderr`` for each record, because tests and notebooks replace it.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; drop it if standard error cannot be written, for example to a full disk."""
        with suppress(OSError), progress.line_cleared():
            print(f"systolic: {shown_as_text(record.getMessage())}", file=sys.stderr, flush=True)


@contextmanager
def messages(options: argparse.Namespace) -> Iterator[None]:
    """Show the messages of a command, with the level that -q or -v selects."""
    handler, level, above = _Shown(), log.level, log.propagate
    quiet, verbose = getattr(options, "quiet", False), getattr(options, "verbose", False)
    log.setLevel(logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO)
    log.addHandler(handler)
    log.propagate = False
    try:
        for note in getattr(options, "notes", ()):
            log.warning(note)
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = above


def print_refusal(error: SystolicError) -> int:
    """Print a ``SystolicError`` as one sentence, and return 2, the exit status of unusable input."""
    return print_error(2, cut(error, MAX_SENTENCE_LENGTH))


def print_error(status: int, sentence: str) -> int:
    """Print a sentence to standard error, and return the given exit status."""
    with suppress(OSError):  # standard error may be a file on a full disk
        name = "\x1b[31msystolic:\x1b[0m" if takes_colour(sys.stderr) else "systolic:"
        print(f"{name} {shown_as_text(sentence)}", file=sys.stderr)
    return status


def takes_colour(stream: TextIO) -> bool:
    """Return whether a stream is a terminal on which the user wants colours (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

"""The ``systolic`` command, assembled of its commands."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from boards.errors import LONGEST_FAULT, SystolicError, cut
from systolic import __version__
from systolic.cli.commands import (
    boards,
    check,
    demo,
    evaluate,
    export,
    generate,
    package,
    run,
    simulate,
    train,
    vendor,
)
from systolic.cli.commands.searches import compare, fold, pareto, schedule
from systolic.cli.output import check_files
from systolic.cli.stopping import Stopped, stopped_by_signals

LONGEST_SENTENCE = 2900
"""Characters of what is refused: a path may have thousands."""

COMMANDS = (
    demo,
    boards,
    generate,
    check,
    simulate,
    run,
    evaluate,
    train,
    schedule,
    compare,
    pareto,
    fold,
    export,
    package,
    vendor,
)
"""In the order of ``--help``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0 done, 1 mismatches found or a design that does not fit, 2 unusable input (the sentence goes to stderr),
    128 and the signal's number where one stopped it.

    Without a command: the help, and 0.
    """
    top = parser()
    _complete(top)
    options, unknown = top.parse_known_args(_words(top, arguments))
    if unknown:
        getattr(options, "parser", top).error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.command is None:
        top.print_help()
        return 0
    try:
        with stopped_by_signals():
            check_files(options)
            result: int = options.command(options)
            sys.stdout.flush()
            return result
    except SystolicError as error:
        return _refused(2, cut(error, LONGEST_SENTENCE))
    except BrokenPipeError:  # the reader of a pipe has seen enough
        _drop_output()
        return 0
    except OSError as error:  # a full disk, a file that is gone meanwhile
        _drop_output()
        return _refused(2, f"{cut(error.filename or 'standard output')}: {cut(error.strerror or error)}")
    except Stopped as signal:
        return _refused(128 + signal.number, "stopped")
    except KeyboardInterrupt:
        return _refused(130, "stopped")


def _words(top: argparse.ArgumentParser, arguments: Sequence[str] | None) -> Sequence[str]:
    """The arguments, none of which argparse would make an empty list of."""
    words = sys.argv[1:] if arguments is None else arguments
    for word in words:
        if word.startswith("--") and word.endswith("=--"):
            top.error(f"argument {word[:-3]}: -- is no value")
    return words


def _refused(code: int, sentence: str) -> int:
    with suppress(OSError):  # stderr may be a file on a full disk
        print(f"systolic: {sentence}", file=sys.stderr)
    return code


def _drop_output() -> None:
    """What stdout still holds goes nowhere, where it cannot be written."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Parser(argparse.ArgumentParser):
    """Of the whole command and, since argparse makes them of the same class, of each command."""

    def error(self, message: str) -> NoReturn:
        """Usage and a sentence to standard error, and the end with 2. An argument is as long as somebody likes."""
        super().error(cut(message, LONGEST_FAULT))


def parser() -> argparse.ArgumentParser:
    """All commands with their arguments."""
    top = Parser(
        prog="systolic",
        description="From a trained CNN to an FPGA accelerator that is proven before a vendor tool is opened.",
        epilog="example: systolic demo",
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    top.set_defaults(command=None)
    parsers = top.add_subparsers(metavar="COMMAND")
    for module in COMMANDS:
        module.add(parsers)
    return top


def _complete(top: argparse.ArgumentParser) -> None:
    """Answers the shell where it asks for completions (docs/reference/commands.md), and does nothing else."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(top)


if __name__ == "__main__":
    sys.exit(main())

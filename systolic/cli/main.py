"""The ``systolic`` command, assembled of its commands."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from boards.errors import SystolicError
from systolic import __version__
from systolic.cli.commands import boards, compare, demo, fold, generate, package, run, schedule, simulate

COMMANDS = (demo, boards, generate, simulate, run, schedule, compare, fold, package)
"""In the order of ``--help``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0 done, 1 mismatches found or a design that does not fit, 2 unusable input (the sentence goes to stderr).

    Without a command: the help, and 0.
    """
    top = parser()
    _complete(top)
    options = top.parse_args(arguments)
    if options.command is None:
        top.print_help()
        return 0
    try:
        result: int = options.command(options)
        return result
    except SystolicError as error:
        print(f"systolic: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("systolic: stopped", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    """All commands with their arguments."""
    top = argparse.ArgumentParser(
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

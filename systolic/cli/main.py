"""The ``systolic`` command: parse the line, import the command's module, run it, and print errors as sentences."""

from __future__ import annotations

import os
import sys

from systolic.cli import renamed, streams
from systolic.cli.parsing import completion_command, named, parser, words_of
from systolic.cli.table import run_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

__all__ = ["main", "parser"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status.

    Without a command the help is printed.

    Returns:
        0 for success. 1 if mismatches were found or a design does not fit. 2 for unusable input, which a sentence on
        standard error explains. 128 plus the number of a signal if that signal stopped the command.
    """
    if "_ARGCOMPLETE" in os.environ:
        _complete()
    streams.prepare()
    words = list(sys.argv[1:] if arguments is None else arguments)
    top = parser(named(words))
    options, unknown = top.parse_known_args(words_of(top, words))
    if unknown:
        getattr(options, "parser", top).unknown(unknown)
    if options.command is None:
        top.print_help()
        return 0
    if " ".join(words[:2]) in renamed.COMMANDS:
        options.notes = [renamed.note(f"systolic {words[0]} {words[1]}", "systolic networks")]
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    """Import and run a command; turn an error into a sentence and an exit status."""
    from systolic.cli.stopping import Stopped, ended_by_interrupts, stopped_by_signals

    with ended_by_interrupts():
        from boards.errors import SystolicError, cut
        from systolic.cli.messages import messages, print_error, print_refusal
        from systolic.cli.output import check_files

        run = run_of(options.command)
    try:
        with stopped_by_signals(), messages(options):
            check_files(options)
            status = run(options)
            sys.stdout.flush()
            return status
    except SystolicError as error:
        return print_refusal(error)
    except BrokenPipeError:  # the reader of the pipe, such as head, has closed it
        _drop_output()
        return 0
    except OSError as error:  # for example a full disk, or a file that was deleted meanwhile
        _drop_output()
        return print_error(2, f"{cut(error.filename or 'standard output')}: {cut(error.strerror or error)}")
    except Stopped as signal:
        return print_error(128 + signal.number, "stopped")
    except KeyboardInterrupt:
        return print_error(130, "stopped")


def _drop_output() -> None:
    """Discard the buffered standard output if it cannot be written, for example because a pipe was closed."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complete() -> None:
    """Print completions for the shell (docs/reference/commands.md), and end the process."""
    import argcomplete

    commands = completion_command(os.environ.get("COMP_LINE", ""))
    argcomplete.autocomplete(parser(commands, completing=True))


if __name__ == "__main__":
    sys.exit(main())

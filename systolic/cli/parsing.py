"""The parser of the command line, built from the table of commands and the options of each command."""

from __future__ import annotations

import argparse
import os
import re
import sys

from systolic.cli import renamed
from systolic.cli.options.form import Form
from systolic.cli.streams import shown_as_text
from systolic.cli.table import COMMANDS, SECTIONS, form_of
from systolic.option import Option
from systolic.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, NoReturn

MAX_SENTENCE_LENGTH = 2900
"""The number of characters at which an error is cut, because a path in it can have thousands."""

HELP_COLUMN = 28
"""The column in which the sentences of a help begin."""

SHOW_HELP = "Show this help and exit"
"""The help text of ``--help``, in place of the one that argparse has."""

GENERAL = (
    Option("-q", "--quiet", action="store_true", help="Print results and errors only"),
    Option("-v", "--verbose", action="store_true", help="Print each step and its duration"),
)
JSON = Option("--json", metavar="FILE", help="Write the result as JSON to FILE, or to standard output if FILE is -")


def parser(commands: Iterable[str] = tuple(COMMANDS), completing: bool = False) -> Parser:
    """Return the parser of the whole command line.

    Args:
        commands: The commands that get a parser with their options. For the others only the names are known, because
            building a parser takes time.
        completing: Whether the shell asks for completions.
    """
    top = Parser(
        prog="systolic",
        usage="systolic COMMAND [options]",
        description="From a trained CNN to an FPGA accelerator that is proven before a vendor tool is opened.",
        epilog=_overview(),
        formatter_class=_Formatter,
    )
    top._option_string_actions["--help"].help = SHOW_HELP
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}", help="Show the version and exit")
    top.set_defaults(command=None)
    parsers = top.add_subparsers(prog="systolic", metavar="COMMAND", help=argparse.SUPPRESS)
    wanted = frozenset(commands)
    for name, summary in COMMANDS.items():
        if name not in wanted:  # only the name: one parser takes longer to build than all names together
            parsers._name_parser_map[name] = top
            continue
        command = parsers.add_parser(name, help=summary, description=f"{summary}.", formatter_class=_Formatter)
        command.set_defaults(command=name, parser=command)
        _fill(command, form_of(name), completing)
    return top


def words_of(top: Parser, words: Sequence[str]) -> Sequence[str]:
    """Return the command line unchanged. A word that ends in ``=--`` is an error: argparse reads it as no value."""
    for word in words:
        if word.startswith("--") and word.endswith("=--"):
            top.error(f"{word[:-3]} needs a value; got --")
    return words


def named(words: Sequence[str]) -> tuple[str, ...]:
    """Return (command,) if the first word without a dash is a command, else ()."""
    first = next((word for word in words if not word.startswith("-")), "")
    return (first,) if first in COMMANDS else ()


class Parser(argparse.ArgumentParser):
    """The argparse parser of the whole command line and of each command. It prints errors as one sentence."""

    def error(self, message: str) -> NoReturn:
        """Print one sentence to standard error and end with exit status 2."""
        if "_ARGCOMPLETE" in os.environ:  # an incomplete line is not an error while the user types it
            sys.exit(2)
        from boards.errors import cut

        sentence = shown_as_text(cut(_plain(message), MAX_SENTENCE_LENGTH))
        self.exit(2, f"systolic: {sentence}; see {self.prog} --help\n")

    def unknown(self, words: Sequence[str]) -> NoReturn:
        """End the program with a sentence about an unknown word, which also names the nearest option."""
        word = next((word for word in words if word.startswith("-")), words[0]).split("=")[0]
        what = "option" if word.startswith("-") else "argument"
        self.error(f"{self.prog} has no {what} {_shown(word)}{_meant(word, self._option_string_actions)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = action.choices
        if choices is None or value in choices:
            return
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"there is no command {_shown(str(value))}{_meant(str(value), choices)}")
        from boards.errors import ChoiceError

        flag = "/".join(action.option_strings) or str(action.metavar or action.dest)
        raise argparse.ArgumentError(None, str(ChoiceError(flag, value, tuple(choices))))


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """The format of a help in 100 columns: the option and its sentence in one line, ``-o, --output DIR  Write …``."""

    def __init__(self, prog: str, **settings: Any) -> None:
        super().__init__(prog, max_help_position=HELP_COLUMN, width=_columns() - 2, **settings)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        return f"{', '.join(action.option_strings)} {self._format_args(action, action.dest.upper())}"

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if action.nargs == argparse.ONE_OR_MORE:
            return f"{action.metavar} ..."
        return super()._format_args(action, default_metavar)


class _Renamed(argparse.Action):
    """The argparse action of an old option name: store the value under the new name, and add a note to ``notes``."""

    def __init__(self, new: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.new = new

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        setattr(namespace, self.dest, values)
        notes = [*getattr(namespace, "notes", ()), renamed.note(self.option_strings[0], self.new)]
        namespace.notes = list(dict.fromkeys(notes))


def _fill(command: argparse.ArgumentParser, form: Form, completing: bool) -> None:
    """Add a command's options to its parser, in the groups of its help."""
    positional, first = command._positionals, command._optionals
    positional.title, first.title = "arguments", "options"
    general = command.add_argument_group("general")
    for option in form.positionals:
        _add(command, positional, option, completing)
    _add_all(command, first, form.first, completing)
    _add_all(command, command.add_argument_group("advanced"), form.advanced, completing)
    for title, options in form.groups.items():
        _add_all(command, command.add_argument_group(title), options, completing)
    _add_all(command, general, (JSON, *GENERAL) if form.json else GENERAL, completing)
    _show_last(command, general)
    needed = [option for option in form.first if option.settings.get("required")]
    words = [*(f"{option.flags[0]} {option.settings['metavar']}" for option in needed)]
    places = [_place(option) for option in form.positionals]
    command.usage = " ".join([command.prog, *places, *words, "[options]"])
    label = "examples" if "\n" in form.example else "example"
    command.epilog = f"{label}:\n  {form.example}"


def _place(option: Option) -> str:
    word = str(option.settings.get("metavar", option.name))
    return f"[{word}]" if option.settings.get("nargs") == "?" else word


def _show_last(command: argparse.ArgumentParser, general: argparse._ArgumentGroup) -> None:
    """Move ``--help`` into the group "general", and move this group to the end of the command's help."""
    helps = [action for action in command._optionals._group_actions if action.dest == "help"]
    for action in helps:
        action.help = SHOW_HELP
        command._optionals._group_actions.remove(action)
        general._group_actions.append(action)
    command._action_groups.remove(general)
    command._action_groups.append(general)


def _add_all(
    command: argparse.ArgumentParser, group: argparse._ArgumentGroup, options: Iterable[Option], completing: bool
) -> None:
    for option in options:
        _add(command, group, option, completing)


def _add(command: argparse.ArgumentParser, group: argparse._ArgumentGroup, option: Option, completing: bool) -> None:
    action = option.add_to(group)
    old = next((old for old, new in renamed.OPTIONS.items() if new == option.flag), None)
    if old is not None:
        settings = {"type": action.type, "dest": action.dest, "default": action.default}
        group.add_argument(old, action=_Renamed, new=option.flag, help=argparse.SUPPRESS, **settings)
    if completing and option.complete:
        from systolic.cli.completion import completer

        action.completer = completer(option.complete)  # type: ignore[attr-defined]  # argcomplete reads it


def _columns() -> int:
    """Return the width of the terminal in characters.

    ``shutil`` has a function for this, but its import takes longer than the rest of a help.
    """
    try:
        return int(os.environ.get("COLUMNS", 0)) or os.get_terminal_size(1).columns or 80
    except (ValueError, OSError):  # COLUMNS is not a number, or standard output is not a terminal
        return 80


def _overview() -> str:
    """Return the end of ``systolic --help``: the commands by section, and an example."""
    width = max(map(len, COMMANDS)) + 2
    lines = []
    for title, commands in SECTIONS.items():
        lines += [f"{title}:", *(f"  {name:{width}}{summary}" for name, summary in commands.items()), ""]
    return "\n".join([*lines, "example: systolic demo", "help of a command: systolic COMMAND --help"])


def _plain(message: str) -> str:
    """Return an error sentence of argparse in the form of this project's errors, such as "NET is missing"."""
    missing = re.fullmatch(r"the following arguments are required: (.*)", message, re.DOTALL)
    if missing:
        several = "are" if "," in missing[1] else "is"
        return f"{missing[1]} {several} missing"
    named = re.fullmatch(r"argument ([^:]+): (.*)", message, re.DOTALL)
    if named is None:
        return message
    joint = " " if named[2].startswith("must ") else ": "
    return f"{named[1]}{joint}{named[2]}"


def _meant(word: str, known: Iterable[str]) -> str:
    """Return " (did you mean NAME?)" with the nearest known or the renamed option; "" if none is near."""
    import difflib

    near = difflib.get_close_matches(word[:100], list(known), 1)
    return f" (did you mean {renamed.OPTIONS.get(near[0], near[0])}?)" if near else ""


def _shown(word: str) -> str:
    from boards.errors import cut, shown

    return cut(word) if word.startswith("-") and word.isprintable() else shown(word)


def completion_command(line: str) -> tuple[str, ...]:
    """Return (command,) of the line that the user completes in a shell, or () if it names no command."""
    return named(line.split()[1:])

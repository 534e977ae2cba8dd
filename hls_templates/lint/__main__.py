"""The linter's command: ``python -m hls_templates.lint FILE… --top NAME``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from boards.errors import DamagedFileError, SystolicError
from hls_templates.lint.linter import lint
from hls_templates.lint.rules import RULES, table

_EPILOG = "The exit status is 0 if there are no findings, 1 if there are some, and 2 if the files cannot be linted."


MAX_SOURCE_BYTES = 8 << 20  # bytes


def main(argv: Sequence[str] | None = None) -> int:
    """Run the linter's command line: print findings, the table of rules, or one rule with its example. Return the exit
    status."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.rules:
        print(table())
        return 0
    if options.explain is not None:
        print(RULES[options.explain].explanation)
        return 0
    if not options.files:
        parser.error("name the files to lint")
    return _lint(options.files, options.top)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hls_templates.lint",
        description="Find faults in HLS C++ that otherwise only Vitis HLS would report.",
        epilog=_EPILOG,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="help", help="Show this help and exit")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="C++ sources and headers of one design")
    parser.add_argument("--top", default="", metavar="NAME", help="the top function; omit it if all files are headers")
    parser.add_argument("--rules", action="store_true", help="print the table of all rules and exit")
    parser.add_argument("--explain", choices=RULES, metavar="RULE", help="print one rule with an example and exit")
    return parser


def _lint(files: Sequence[Path], top: str) -> int:
    try:
        findings = lint(_read(files), top)
    except (OSError, SystolicError) as error:
        print(error, file=sys.stderr)
        return 2
    print(*findings, sep="\n", end="\n" if findings else "")
    return 1 if findings else 0


def _read(files: Sequence[Path]) -> dict[str, str]:
    """Return the text of each file to lint, by the name that findings show.

    A file's name is its path as given. If a path is absolute or contains "..", all names are relative to the folder
    that the files share.
    """
    plain = all(not file.is_absolute() and ".." not in file.parts for file in files)
    resolved = [file.resolve() for file in files]
    shared = Path(*_common_start([file.parent.parts for file in resolved]))
    return {
        (file if plain else path.relative_to(shared)).as_posix(): _text(path)
        for file, path in zip(files, resolved, strict=True)
    }


def _text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MAX_SOURCE_BYTES + 1)
    if len(data) > MAX_SOURCE_BYTES:
        raise DamagedFileError(str(path), f"has more than {MAX_SOURCE_BYTES >> 20} MB, the limit for a source")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DamagedFileError(str(path), f"is not UTF-8 text ({error.reason})", f"byte {error.start}") from error


def _common_start(folders: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    length = 0
    while all(len(parts) > length and parts[length] == folders[0][length] for parts in folders):
        length += 1
    return folders[0][:length]


if __name__ == "__main__":
    sys.exit(main())

"""The linter's command: ``python -m hls_templates.lint FILE… --top NAME``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from boards.errors import DamagedFileError, SystolicError
from hls_templates.lint.linter import lint
from hls_templates.lint.rules import RULES, table

_EPILOG = "The exit status is 0 where nothing is found, 1 where something is, and 2 where the files cannot be linted."


LARGEST_SOURCE = 8 << 20  # bytes


def main(argv: Sequence[str] | None = None) -> int:
    """Prints findings, the table of rules, or one rule with its example: 0 clean, 1 findings, 2 not usable."""
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
        description="Find in HLS C++ what otherwise only the vendor's tool would tell.",
        epilog=_EPILOG,
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="C++ sources and headers of one design")
    parser.add_argument("--top", default="", metavar="NAME", help="the top function; leave it out for headers alone")
    parser.add_argument("--rules", action="store_true", help="print the table of all rules and end")
    parser.add_argument("--explain", choices=RULES, metavar="RULE", help="print one rule with an example and end")
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
    """Name → text. Files keep the names they came with; if a path is absolute or has «..», all are named from the
    folder that they share."""
    plain = all(not file.is_absolute() and ".." not in file.parts for file in files)
    resolved = [file.resolve() for file in files]
    shared = Path(*_common_start([file.parent.parts for file in resolved]))
    return {
        (file if plain else path.relative_to(shared)).as_posix(): _text(path)
        for file, path in zip(files, resolved, strict=True)
    }


def _text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(LARGEST_SOURCE + 1)
    if len(data) > LARGEST_SOURCE:
        raise DamagedFileError(str(path), f"has more than {LARGEST_SOURCE >> 20} MB, the most that a source may have")
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

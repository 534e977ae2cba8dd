"""The command line: places and counts of the findings."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.parser import Parser
from tools.prose.rooms import CLEAN, is_allowed
from tools.prose.rules import Finding, findings
from tools.prose.texts import texts_of

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = {".git", ".venv", "__pycache__", "build", "site", "node_modules"}
EXAMPLE = """example:
  python -m tools.prose                    the folders that are clean
  python -m tools.prose scheduler docs     other folders or files
  python -m tools.prose --counts .         counts of each room and rule alone
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command; return 1 if there are findings."""
    parser = Parser(
        prog="python -m tools.prose",
        description="Find words and sentences that a reader of the field stumbles over.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="PATH",
        help="folders or files to check (default: the folders in rooms.py)",
    )
    parser.add_argument(
        "--counts", action="store_true", help="print the number of findings per rule, without their places"
    )
    options = parser.parse_args(arguments)
    counts: Counter[tuple[str, str]] = Counter()
    for path, finding in findings_of(options.paths or [ROOT / room for room in CLEAN]):
        counts[path.parts[0], finding.rule] += 1
        if not options.counts:
            print(f"{path}:{finding.line}: {finding.rule}: {finding.words} (write: {finding.instead})")
    for (room, rule), count in sorted(counts.items()):
        print(f"{count:6} {room}: {rule}")
    return 1 if counts else 0


def findings_of(paths: Sequence[Path]) -> Iterator[tuple[Path, Finding]]:
    """Yield the findings of files and folders, each with its path below the project's folder."""
    for path in sorted(file for place in paths for file in _files(place.resolve())):
        relative = path.relative_to(ROOT)
        for text in texts_of(path):
            for finding in findings(text):
                if not is_allowed(relative.as_posix(), finding.words):
                    yield relative, finding


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name not in SKIPPED]
        yield from (Path(folder) / name for name in names if not name.endswith((".json", ".npz", ".png")))

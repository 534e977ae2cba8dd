"""The commands check, update and list."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.figures import rooms
from tools.figures.examples import EXAMPLES
from tools.figures.folder import Folder, prepare
from tools.figures.sentences import SENTENCES, Difference, differences, renewed
from tools.parser import Parser

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).parent / "figures.json"
PICTURES = ROOT / "docs" / "pictures"
ROOMS = PICTURES / "rooms.svg"

EPILOG = """example:
  python -m tools.figures check              compare the pages with the record; one second
  python -m tools.figures update             run every example and write record, pictures and pages; half an hour
  python -m tools.figures update ultranet    run one example
  python -m tools.figures update --pages     write the recorded figures into the pages, and draw rooms.svg; one second
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command. Return 1 if a page or a picture differs from the record."""
    parser = Parser(
        prog="python -m tools.figures",
        description="Make the figures and pictures of README and docs by running the commands that they show.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("check", help="compare README and docs with the recorded figures")
    commands.add_parser("list", help="print the recorded figures")
    update = commands.add_parser("update", help="run the examples, and write the recorded figures, pictures and pages")
    update.add_argument("names", nargs="*", metavar="EXAMPLE", choices=[[], *EXAMPLES], help=", ".join(EXAMPLES))
    update.add_argument(
        "--pages", action="store_true", help="write the pages from the recorded figures, and run no example"
    )
    options = parser.parse_args(arguments)
    if options.command == "list":
        print(json.dumps(read()["figures"], indent=1))
        return 0
    if options.command == "update":
        if not options.pages:
            run(options.names or list(EXAMPLES))
        if not missing_examples():
            write_pages()
    wrong = missing_examples() or [str(difference) for difference in page_differences()] + picture_differences()
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return int(bool(wrong))


def read() -> dict[str, Any]:
    """Return the record: ``figures`` by example, and ``pictures`` with the digest of each picture."""
    record: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    return record


def missing_examples() -> list[str]:
    """Return a sentence for each example that is missing in the record."""
    recorded = read()["figures"]
    return [f"no figures of {name}: python -m tools.figures update {name}" for name in EXAMPLES if name not in recorded]


def run(names: Sequence[str]) -> None:
    """Run examples, each in a folder of its own, and record their figures and pictures."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as pictures:
            prepare(Path(folder))
            values = EXAMPLES[name](Folder(Path(folder), Path(pictures)))
            record = read() if RECORD.exists() else {"figures": {}, "pictures": {}}
            kept = {one: record["figures"][one] for one in EXAMPLES if one in record["figures"]}
            record["figures"] = {**kept, name: values}
            for picture in sorted(Path(pictures).iterdir()):
                shutil.copy(picture, PICTURES / picture.name)
                record["pictures"][picture.name] = digest(PICTURES / picture.name)
        RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", "utf-8")


def write_pages() -> None:
    """Write the recorded figures into the pages, and draw rooms.svg."""
    figures = read()["figures"]
    for page in SENTENCES:
        path = ROOT / page
        path.write_text(renewed(page, path.read_text("utf-8"), figures), "utf-8")
    ROOMS.write_text(rooms.drawn(ROOT), "utf-8")


def page_differences(texts: Mapping[str, str] | None = None) -> list[Difference]:
    """Return the figures of pages that differ from the record. ``texts`` replaces the text of pages."""
    figures = read()["figures"]
    pages = {page: (ROOT / page).read_text("utf-8") for page in SENTENCES} | dict(texts or {})
    return [difference for page, text in pages.items() for difference in differences(page, text, figures)]


def picture_differences() -> list[str]:
    """Return a sentence for each picture that differs from the recorded one."""
    recorded = read()["pictures"]
    there = {path.name for path in PICTURES.iterdir()} - {ROOMS.name}
    wrong = [f"docs/pictures/{name}: no example draws it" for name in sorted(there - set(recorded))]
    wrong += [f"docs/pictures/{name}: is missing" for name in sorted(set(recorded) - there)]
    wrong += [
        f"docs/pictures/{name}: differs from the picture that the example drew"
        for name in sorted(there & set(recorded))
        if digest(PICTURES / name) != recorded[name]
    ]
    if ROOMS.read_text("utf-8") != rooms.drawn(ROOT):
        wrong.append("docs/pictures/rooms.svg: the imports have changed; run python -m tools.figures update --pages")
    return wrong


def digest(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()

"""The commands: check, update, list."""

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

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).parent / "figures.json"
PICTURES = ROOT / "docs" / "pictures"
ROOMS = PICTURES / "rooms.svg"

EPILOG = """example:
  python -m tools.figures check              compare the pages with the record; a second
  python -m tools.figures update             run every example, half an hour, and write the record, pictures and pages
  python -m tools.figures update ultranet    run one of them
  python -m tools.figures update --pages     write the recorded figures into the pages, and draw the rooms; a second
"""


def main(arguments: Sequence[str]) -> int:
    """Return 1 where a page or a picture is not as recorded."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.figures",
        description="Make the figures and pictures of README and docs by running the commands that they show.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("check", help="compare the pages with the record")
    commands.add_parser("list", help="print the figures of the record")
    update = commands.add_parser("update", help="run the examples and write record, pictures and pages")
    update.add_argument("names", nargs="*", metavar="EXAMPLE", choices=[[], *EXAMPLES], help=", ".join(EXAMPLES))
    update.add_argument("--pages", action="store_true", help="run no example")
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
    """Return the record: ``figures`` by example, and ``pictures``, the digest of each."""
    record: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    return record


def missing_examples() -> list[str]:
    """Return a sentence for each example that the record does not have."""
    recorded = read()["figures"]
    return [f"no figures of {name}: python -m tools.figures update {name}" for name in EXAMPLES if name not in recorded]


def run(names: Sequence[str]) -> None:
    """Run examples, each in a folder of its own, and record what they give."""
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
    """Write the recorded figures into the pages, and draw the rooms."""
    figures = read()["figures"]
    for page in SENTENCES:
        path = ROOT / page
        path.write_text(renewed(page, path.read_text("utf-8"), figures), "utf-8")
    ROOMS.write_text(rooms.drawn(ROOT), "utf-8")


def page_differences(texts: Mapping[str, str] | None = None) -> list[Difference]:
    """Return what pages say otherwise than the record; ``texts`` replaces the text of pages."""
    figures = read()["figures"]
    pages = {page: (ROOT / page).read_text("utf-8") for page in SENTENCES} | dict(texts or {})
    return [difference for page, text in pages.items() for difference in differences(page, text, figures)]


def picture_differences() -> list[str]:
    """Return which pictures are not those that the examples of the record drew."""
    recorded = read()["pictures"]
    there = {path.name for path in PICTURES.iterdir()} - {ROOMS.name}
    wrong = [f"docs/pictures/{name}: no example draws it" for name in sorted(there - set(recorded))]
    wrong += [f"docs/pictures/{name}: is not there" for name in sorted(set(recorded) - there)]
    wrong += [
        f"docs/pictures/{name}: another picture than the example drew"
        for name in sorted(there & set(recorded))
        if digest(PICTURES / name) != recorded[name]
    ]
    if ROOMS.read_text("utf-8") != rooms.drawn(ROOT):
        wrong.append("docs/pictures/rooms.svg: the imports are others; python -m tools.figures update --pages")
    return wrong


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()

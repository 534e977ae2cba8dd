"""The file of digests: writing, reading, and comparing it with new digests.

::

    {"executed": {DESIGN: {"cycles": …, "integers": DIGEST, …}, …},
     "sources": {PATH: ["RAW PLAIN DESIGN…", …], …}}

RAW is the digest of a file's bytes, and PLAIN the digest of its text without comments. Designs with the same file share
a line. ``hls-*``, ``rtl-*`` and ``streaming-*`` stand for all designs whose names begin like that.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.comments import language_of, without_comments
from tools.digests.execution import Facts, digest
from tools.digests.table import DESIGNS

RECORD = Path(__file__).parent / "digests.json"

GROUPS = ("hls", "rtl", "streaming")
"""Beginnings of designs' names that form groups."""

Digests = tuple[str, str]
"""Digests of a file: with comments, and without."""


@dataclass(frozen=True)
class Record:
    """Digests of designs, by the designs' names.

    Attributes:
        sources: The digests of each generated file, by its path.
        executed: The results of each execution. Designs that were not executed are left out.
    """

    sources: Mapping[str, Mapping[str, Digests]] = field(default_factory=dict)
    executed: Mapping[str, Facts] = field(default_factory=dict)

    def with_new(self, other: Record) -> Record:
        """Return the record with the designs of ``other`` replaced.

        Designs that are no longer in the table are dropped.
        """
        names = {row.name for row in DESIGNS}
        sources = {name: files for name, files in {**self.sources, **other.sources}.items() if name in names}
        executed = {name: facts for name, facts in {**self.executed, **other.executed}.items() if name in names}
        return Record(sources, executed)


def source_digests(files: Mapping[str, bytes]) -> dict[str, Digests]:
    """Return the digests of a design's files."""
    return {path: (digest(data), _plain_digest(path, data)) for path, data in files.items()}


_PLAIN: dict[tuple[str, bytes], str] = {}


def _plain_digest(path: str, data: bytes) -> str:
    language = language_of(path)
    if language is None:
        return digest(data)
    key = language, data
    if key not in _PLAIN:
        _PLAIN[key] = digest(without_comments(data.decode("utf-8"), path).encode())
    return _PLAIN[key]


# --- the file ------------------------------------------------------------------------------------------------------


def read(path: Path = RECORD) -> Record:
    """Read a record from a file."""
    values = json.loads(path.read_text("utf-8"))
    sources: dict[str, dict[str, Digests]] = defaultdict(dict)
    for source, lines in values["sources"].items():
        for line in lines:
            raw, plain, *designs = line.split()
            for name in _ungrouped(designs):
                sources[name][source] = raw, plain
    return Record(dict(sources), values["executed"])


def write(record: Record, path: Path = RECORD) -> None:
    """Write a record, sorted, with one line per version of a file and one per executed design."""
    designs: dict[str, dict[Digests, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, files in record.sources.items():
        for source, digests in files.items():
            designs[source][digests].append(name)
    lines = ["{", ' "executed": {']
    lines += _joined(f"  {json.dumps(name)}: {_line(record.executed[name])}" for name in sorted(record.executed))
    lines += [" },", ' "sources": {']
    lines += _joined(f"  {json.dumps(source)}: {_versions(designs[source])}" for source in sorted(designs))
    lines += [" }", "}"]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def _line(facts: Facts) -> str:
    return json.dumps(facts, sort_keys=True)


def _versions(versions: Mapping[Digests, list[str]]) -> str:
    lines = [json.dumps(f"{raw} {plain} {' '.join(grouped(names))}") for (raw, plain), names in versions.items()]
    if len(lines) == 1:
        return f"[{lines[0]}]"
    return "[\n" + ",\n".join(f"   {line}" for line in sorted(lines, key=lambda line: line.split()[2:])) + "\n  ]"


def _joined(lines: Iterator[str]) -> list[str]:
    ends = list(lines)
    return [f"{line}," for line in ends[:-1]] + ends[-1:]


def grouped(names: Collection[str]) -> list[str]:
    """Return designs' names, with one word for each group that is complete."""
    words = []
    left = set(names)
    for group in GROUPS:
        members = _members(group)
        if members and members <= left:
            left -= members
            words.append(f"{group}-*")
    return [*words, *sorted(left)]


def _ungrouped(words: Collection[str]) -> Iterator[str]:
    for word in words:
        if word.endswith("-*"):
            yield from sorted(_members(word.removesuffix("-*")))
        else:
            yield word


def _members(group: str) -> set[str]:
    return {row.name for row in DESIGNS if row.name.startswith(f"{group}-")}


# --- differences ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Difference:
    """A difference of a file, in some designs, or of one execution.

    Attributes:
        subject: The path of the file, or the name of the design.
        change: How it differs.
        designs: The designs, for a file.
        comments_only: Whether only comments and white space differ.
    """

    subject: str
    change: str
    designs: tuple[str, ...] = ()
    comments_only: bool = False

    def __str__(self) -> str:
        names = f" in {', '.join(grouped(self.designs))}" if self.designs else ""
        return f"{self.subject}: {self.change}{names}"


def differences(before: Record, after: Record) -> list[Difference]:
    """Return the differences in the designs of ``after``, files first."""
    by_change: dict[tuple[str, str, bool], list[str]] = defaultdict(list)
    for name, files in after.sources.items():
        for path, change, comments_only in _changes(before.sources.get(name, {}), files):
            by_change[path, change, comments_only].append(name)
    found = [Difference(path, change, tuple(names), only) for (path, change, only), names in by_change.items()]
    executed = [
        Difference(name, f"{key} was {was!r}, is {now!r}")
        for name, facts in after.executed.items()
        for key, was, now in _facts(before.executed.get(name, {}), facts)
    ]
    return [*sorted(found), *executed]


def _changes(before: Mapping[str, Digests], after: Mapping[str, Digests]) -> Iterator[tuple[str, str, bool]]:
    for path in sorted({*before, *after}):
        if path not in before:
            yield path, "is new", False
        elif path not in after:
            yield path, "is no longer generated", False
        elif before[path][1] != after[path][1]:
            yield path, "differs", False
        elif before[path][0] != after[path][0]:
            yield path, "differs in comments only", True


def _facts(before: Facts, after: Facts) -> Iterator[tuple[str, object, object]]:
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            yield key, before.get(key), after.get(key)

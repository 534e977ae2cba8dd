"""Fuzzing of the traced cycles in a design's folder, and of the C++ sources that the linter reads."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from hls_templates.lint.__main__ import main
from hls_templates.lint.rules import RULES
from host.contract.manifest import read_manifest
from host.simulated.pace import CYCLES as CYCLES_FILE
from host.simulated.pace import pace
from tests.fuzz.files import corpus, designs
from tests.fuzz.files.hunt import hunt
from tests.fuzz.files.mutators import TEXT
from tests.fuzz.files.structured import JSON
from tests.fuzz.files.target import Target

CODES = (0, 1, 2)


class StatusError(Exception):
    """The linter ended with an undocumented exit status."""


def cycles_seeds() -> tuple[bytes, ...]:
    """Return files with cycles for all passes and for no pass, and the files that once showed a defect."""
    passes = read_manifest(designs.base("systolic")).passes
    return (
        f'{{"pass_cycles": {list(range(100, 100 + passes))}}}\n'.encode(),
        b'{"pass_cycles": []}\n',
        *corpus.files("cycles"),
    )


def read_cycles(path: Path) -> None:
    """Read the cycles as the simulated board does, which takes the same time as the design."""
    manifest = path.with_name("manifest.json")
    if not manifest.exists():
        shutil.copy(designs.base("systolic") / manifest.name, manifest)
    told = pace(path.parent, read_manifest(path.parent), 2.0)
    assert told is not None
    assert 0 < told.seconds(0, 1) < float("inf")


def lint_seeds() -> tuple[bytes, ...]:
    """Return the example of each rule, generated top functions, and the files that once showed a defect."""
    examples = (rule.example.encode() for rule in RULES.values())
    tops = (path.read_bytes() for path in sorted((designs.base("systolic") / "src").glob("*.cpp")))
    return (*examples, *tops, *corpus.files("lint"))


def read_source(path: Path) -> None:
    """Check a file as ``python -m hls_templates.lint FILE --top top`` does, which reports errors as an exit status."""
    if main([str(path), "--top", "top"]) not in CODES:
        raise StatusError


CYCLES = Target("cycles", cycles_seeds, JSON, read_cycles, CYCLES_FILE)
LINT = Target("lint", lint_seeds, TEXT, read_source, "top.cpp", runs=("sh", "g++"))

cycles, lint = partial(hunt, CYCLES), partial(hunt, LINT)

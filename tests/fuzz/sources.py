"""What a design's folder holds beside its images: the cycles that were traced, and the C++ that the linter reads."""

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
    """The linter's command ended with a status that it does not have."""


def cycles_seeds() -> tuple[bytes, ...]:
    """Cycles for each pass of the small design, for none, and what was a defect once."""
    passes = read_manifest(designs.base("systolic")).passes
    return (
        f'{{"pass_cycles": {list(range(100, 100 + passes))}}}\n'.encode(),
        b'{"pass_cycles": []}\n',
        *corpus.files("cycles"),
    )


def read_cycles(path: Path) -> None:
    """As the simulated board does that keeps the design's time."""
    manifest = path.with_name("manifest.json")
    if not manifest.exists():
        shutil.copy(designs.base("systolic") / manifest.name, manifest)
    told = pace(path.parent, read_manifest(path.parent), 2.0)
    assert told is not None
    assert 0 < told.seconds(0, 1) < float("inf")


def lint_seeds() -> tuple[bytes, ...]:
    """The example of each rule, a generated top function, and what was a defect once."""
    examples = (rule.example.encode() for rule in RULES.values())
    tops = (path.read_bytes() for path in sorted((designs.base("systolic") / "src").glob("*.cpp")))
    return (*examples, *tops, *corpus.files("lint"))


def read_source(path: Path) -> None:
    """As ``python -m hls_templates.lint FILE --top top`` does, which refuses with a sentence by itself."""
    if main([str(path), "--top", "top"]) not in CODES:
        raise StatusError


CYCLES = Target("cycles", cycles_seeds, JSON, read_cycles, CYCLES_FILE)
LINT = Target("lint", lint_seeds, TEXT, read_source, "top.cpp", runs=("sh", "g++"))

cycles, lint = partial(hunt, CYCLES), partial(hunt, LINT)

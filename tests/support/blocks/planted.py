"""An error planted into a header of the blocks, and the case that must fail because of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hls_templates.headers import fixed_files, include_folders
from tests.support.blocks.compute import Case, Library, compile_cases


@dataclass(frozen=True)
class Plant:
    header: str
    right: str
    wrong: str
    case: Case

    def __str__(self) -> str:
        return f"{self.header} {self.right}"


def compile_planted(plants: Sequence[Plant], folder: Path) -> Library:
    """Return a library of all cases, compiled with copies of the headers that have all planted errors."""
    for name, text in fixed_files(*include_folders("streaming")).items():
        (folder / name).write_text(text)
    for plant in plants:
        _plant_into(folder / plant.header, plant)
    return compile_cases([plant.case for plant in plants], folder, "sanitized", f"-I{folder}")


def _plant_into(header: Path, plant: Plant) -> None:
    text = header.read_text()
    assert plant.right in text, f"{plant.header} has no {plant.right!r}"
    header.write_text(text.replace(plant.right, plant.wrong))

"""The accelerator styles by name: "systolic" and "streaming"."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from boards.errors import ChoiceError
from boards.progress import Progress, silent
from host.contract.manifest import read_manifest
from host.vision.picture import Pixels
from systolic.execution.build import Variant
from systolic.execution.simulation import Simulation
from systolic.styles.streaming.style import StreamingStyle
from systolic.styles.style import OpenedDesign, Style
from systolic.styles.systolic.style import SystolicStyle

AnyStyle: TypeAlias = Style[Any, Any, Any]

STYLES: dict[str, AnyStyle] = {style.name: style for style in (SystolicStyle(), StreamingStyle())}
"""Each style by its name in manifests and in ``--style``. The first style is the default."""


def default_style() -> str:
    """Return the name of the style that is used if the user names none."""
    return next(iter(STYLES))


def style_named(name: str) -> AnyStyle:
    """Return the style of that name; ChoiceError if there is none."""
    if name not in STYLES:
        raise ChoiceError("the style", name, tuple(STYLES))
    return STYLES[name]


def style_of(design: OpenedDesign) -> AnyStyle:
    """Return the style whose name the manifest of ``design`` has."""
    return STYLES[design.manifest.style]


def open_design(path: Path) -> OpenedDesign:
    """Read the folder of a generated design in either style, and check it.

    Raises:
        ChoiceError: The manifest names an unknown style.
        SystolicError: ``read_manifest`` or the style's ``open`` refuses the folder.
    """
    manifest = read_manifest(path)
    if manifest.style not in STYLES:
        raise ChoiceError("the style of the design", manifest.style, tuple(STYLES), where=str(path))
    design: OpenedDesign = STYLES[manifest.style].open(path, manifest)
    return design


def execute(
    design: OpenedDesign,
    pictures: Sequence[Pixels],
    variant: Variant = Variant(),  # noqa: B008 (frozen)
    progress: Progress = silent,
) -> tuple[Simulation, ...]:
    """Execute one start of the design's generated code on pictures, and return the integers of each frame."""
    return style_of(design).execute(design, pictures, variant, progress)

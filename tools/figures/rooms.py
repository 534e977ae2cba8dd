"""Draws the picture of the architecture: a box per package, and an arrow per import."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOMS = (
    "systolic",
    "scheduler",
    "hls_schedule",
    "hls_templates",
    "rtl_templates",
    "rtl_timing",
    "host",
    "cnn",
    "contract",
    "boards",
)
"""The packages from top to bottom, and from left to right."""

BASICS = tuple(f"boards.{name}" for name in ("errors", "json_text", "progress", "ranges", "table", "templates"))
"""Modules at the bottom that every package may import. An arrow for these alone is dashed."""

BOX, GAP, LEVEL = (156, 52), 22, 100

Imports = Mapping[str, Mapping[str, bool]]
"""For each package the packages that it imports. The value is whether it imports more than ``BASICS``."""


def drawn(root: Path) -> str:
    """Return the picture of the packages in ``root``, as SVG."""
    imports = imported_rooms(root)
    rows = _rows(imports)
    width = max(len(row) for row in rows) * (BOX[0] + GAP) + GAP
    places = _places(imports, rows)
    wide = {*rows[0], *rows[-1]}
    parts = [part for room in ROOMS for below in imports[room] for part in _arrow(imports, places, room, below, wide)]
    for room, (x, y) in places.items():
        parts += _box(room, (width // 2, y), width - 2 * GAP) if room in wide else _box(room, (x, y), BOX[0])
    height = (len(rows) - 1) * LEVEL + BOX[1] + 2 * GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        ' font-family="system-ui, DejaVu Sans, sans-serif" role="img" aria-label="Rooms and what they import">'
    )
    tip = (
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L10 5L0 10z" fill="#455a64"/></marker></defs>'
    )
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="#ffffff"/>', tip, *parts, "</svg>"]) + "\n"


def _places(imports: Imports, rows: list[list[str]]) -> dict[str, tuple[int, int]]:
    """Return the middle of each box's upper edge.

    A package is placed below the packages that import it, or in a column of its own if only the top package does.
    """
    places: dict[str, tuple[int, int]] = {}
    for level, row in enumerate(rows):
        for position, room in enumerate(row):
            above = [places[other][0] for other in places if room in imports[other] and other not in rows[0]]
            x = sum(above) // len(above) if above else GAP + position * (BOX[0] + GAP) + BOX[0] // 2
            places[room] = (x, GAP + level * LEVEL)
    return places


@cache
def imported_rooms(root: Path) -> dict[str, dict[str, bool]]:
    """Return the packages that each package imports. The sources are parsed, not imported."""
    imports: dict[str, dict[str, bool]] = {}
    for room in ROOMS:
        names = {name for path in sorted((root / room).rglob("*.py")) for name in _imported_names(path)}
        below = {other: [name for name in names if name.split(".")[0] == other] for other in ROOMS if other != room}
        imports[room] = {
            other: any(name != other and not name.startswith(BASICS) for name in found)
            for other, found in below.items()
            if found
        }
    return imports


def _imported_names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _rows(imports: Imports) -> list[list[str]]:
    """Return the packages row by row: a package is below all packages that import it."""

    def depth(room: str) -> int:
        return max((depth(other) + 1 for other in ROOMS if room in imports[other]), default=0)

    depths = {room: depth(room) for room in ROOMS}
    return [[room for room in ROOMS if depths[room] == level] for level in range(max(depths.values()) + 1)]


def _arrow(
    imports: Imports, places: Mapping[str, tuple[int, int]], room: str, below: str, wide: Collection[str]
) -> Iterator[str]:
    """Yield the arrow of an import, unless a third package already connects the two."""
    if any(below in imports[third] for third in imports[room]):
        return
    x = places[below if room in wide else room][0]
    end = x if below in wide else places[below][0]
    dashes = "" if imports[room][below] else ' stroke-dasharray="6 4"'
    yield (
        f'<path d="M{x} {places[room][1] + BOX[1]}L{end} {places[below][1]}" stroke="#455a64" stroke-width="2"'
        f' fill="none"{dashes} marker-end="url(#tip)"/>'
    )


def _box(room: str, place: tuple[int, int], width: int) -> list[str]:
    x, y = place
    return [
        f'<rect x="{x - width // 2}" y="{y}" width="{width}" height="{BOX[1]}" rx="8" fill="#eceff1" stroke="#455a64"'
        ' stroke-width="1.5"/>',
        f'<text x="{x}" y="{y + BOX[1] // 2 + 6}" font-size="17" font-weight="bold" fill="#263238"'
        f' text-anchor="middle">{room}/</text>',
    ]

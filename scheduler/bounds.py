"""What no candidate of a geometry goes below, from its shape alone: the search prices none that cannot win."""

from __future__ import annotations

from scheduler.link import Link
from scheduler.pass_cycles import ROUNDED, least_drain, least_fill, least_first_weights, program_cycles
from scheduler.space import Geometry, Space, most_words
from scheduler.task import Layers, moved_bytes
from scheduler.tile import ceil_div
from scheduler.work import Way, staying

PACE = 990
"""1/1000 of a DDR's bytes that ports together are not modelled to need: ``milli_cycles`` counts some turns of whole
chunks, and is up to 0.7 % too fast (tested)."""


def least_cycles(geometry: Geometry, layers: Layers, link: Link, space: Space) -> int:
    """No candidate of the geometry takes fewer. A layer takes its positions × steps × tiles after its first rows have
    come, and all its weight tiles but the first arrive while it runs, through at most the space's ports and the DDR;
    and it starts and ends once. The frame's first weights come first."""
    rows, ports, map_ports = geometry.rows, most_words(geometry, space), max(space.map_ports)
    total = 0
    works = staying(layers.works, layers.stays)
    for index, (work, choices) in enumerate(zip(works, layers.cuts, strict=True)):
        tiles = ceil_div(work.filters, geometry.columns)
        places = ceil_div(work.out_width, work.positions)
        compute = ceil_div(work.out_height, rows) * tiles * places * work.steps
        words = work.steps * geometry.columns
        arrives = max(words // ports, words * geometry.lanes * layers.bits // 8 * PACE // link.milli_bytes)
        fill = least_fill(work, rows, map_ports, min(cut.total_words for cut in choices), link)
        first = max(fill, least_first_weights(words // ports, link)) if index == 0 else fill
        running = [max(start + compute, (tiles - 1) * arrives) for start in (first, fill)]
        beside = program_cycles(link) + least_drain(work, rows, link) - ROUNDED
        total += work.repeats * (beside + running[1]) + running[0] - running[1]
    return total


def least_bytes(geometry: Geometry, layers: Layers) -> int:
    """No candidate moves fewer: every weight, every requantiser and every map that cannot stay crosses once."""
    return sum(
        min(moved_bytes(geometry, layers.bits, work, Way(cut, "weights-resident", True)) for cut in choices)
        for work, choices in zip(staying(layers.works, layers.stays), layers.cuts, strict=True)
    )

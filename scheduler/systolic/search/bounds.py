"""What no candidate of a geometry goes below, from its shape alone: the search prices none that cannot win."""

from __future__ import annotations

from functools import partial

from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import BURST_WORDS, DdrTiming, milli_cycles
from scheduler.systolic.model.passes import ROUNDED, least_drain, least_fill, least_weights, program_cycles
from scheduler.systolic.search.space import Geometry, Space, weight_words
from scheduler.systolic.search.task import Layers, moved_bytes
from scheduler.systolic.work import Way, Work, following_steps, staying


def least_cycles(geometry: Geometry, layers: Layers, ddr: DdrTiming, space: Space) -> list[int]:
    """No candidate of the geometry takes fewer in any layer, frame after frame of a batch. The first weight tile of a
    layer arrives in the layer before, and the frame's first tile before its first step."""
    works, pace = staying(layers.works, layers.stays), _weight_pace(geometry, layers, ddr, space)
    least = []
    for index, (work, choices) in enumerate(zip(works, layers.cuts, strict=True)):
        fill = least_fill(work, geometry.rows, max(space.map_ports), min(cut.total_words for cut in choices), ddr)
        frame = partial(_pass, geometry, work, fill, pace, ddr)
        first, following = index == 0, following_steps(works, index)
        if work.repeats == 1:
            least.append(frame(first, following))
        else:
            middle = (work.repeats - 2) * frame(False, work.steps)
            least.append(frame(first, work.steps) + middle + frame(False, following))
    return least


def _weight_pace(geometry: Geometry, layers: Layers, ddr: DdrTiming, space: Space) -> int:
    """1/1000 cycles in which the weights of one step arrive, through the best of the space's ports alone."""
    word = geometry.lanes * layers.bits // 8

    def pace(ports: int) -> int:
        words = weight_words(geometry, space, ports)
        (milli,) = milli_cycles(((ports, words * word, BURST_WORDS),), ddr.milli_bytes)
        return geometry.columns // (ports * words) * milli

    return min(pace(ports) for ports in space.weight_ports)


def _pass(geometry: Geometry, work: Work, fill: int, pace: int, ddr: DdrTiming, first: bool, next_steps: int) -> int:
    """One pass over a whole layer. After its first rows have come the array takes its positions × steps × tiles; it
    takes the last tile's first position when that tile is there. All tiles but the first, and the next pass's first
    one, arrive meanwhile. A pass starts, drains and ends once."""
    tiles = ceil_div(work.filters, geometry.columns)
    places = ceil_div(work.out_width, work.positions)
    compute = ceil_div(work.out_height, geometry.rows) * tiles * places * work.steps
    loaded = (tiles - 1 + first) * work.steps

    def there(steps: int) -> int:
        return least_weights(steps * pace // 1000, ddr) if steps else 0

    start = max(fill, there(work.steps)) if first else fill
    array = max(start + compute, there(loaded) + work.steps) + least_drain(work, geometry.rows, ddr)
    return program_cycles(ddr) + max(array, there(loaded + next_steps) if next_steps else 0) - ROUNDED


def least_bytes(geometry: Geometry, layers: Layers) -> list[int]:
    """No candidate moves fewer in any layer: every weight, every requantiser and every map that cannot stay crosses
    once."""
    return [
        min(moved_bytes(geometry, layers.bits, work, Way(cut, "weights-resident", True)) for cut in choices)
        for work, choices in zip(staying(layers.works, layers.stays), layers.cuts, strict=True)
    ]

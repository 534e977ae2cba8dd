"""A job as numbers: all that cost and legality ask of a layer, and the ways in which one layer may be tiled.

The ways are the search's space: strips of columns × loop order × overlapped loading. Each is the tiling that
``scheduler.program`` emits and the engine executes; nothing here is a plan for another engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from cnn.quantized import QuantizedNetwork
from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.array import Array
from scheduler.systolic.layers import Job
from scheduler.systolic.tiling import (
    Strip,
    Tiling,
    blocks,
    positions_of,
    read_blocks,
    reads_pixels,
    row_words,
)

ORDERS = ("weights-resident", "inputs-resident", "streamed")
"""Loop orders of the engine. weights-resident: all weight tiles stay in the buffer, row tiles are the outer loop.
inputs-resident: all rows of a strip stay, channel tiles are the outer loop. streamed: neither stays, weights cross
once a row tile."""

MAX_STRIPS = 8
"""Strips that a layer is cut into at most: more only where the row buffer is smaller than any that is built."""


@dataclass(frozen=True)
class Work:
    """One job on arrays of one width. rows, columns: of the convolution; saved: after the pool.

    tile_values: filters of a channel tile (N). blocks, out_blocks: words of one input and of one output position.
    value_words: words of one output position's block (more where results are wider than a lane). pixels: input pixels
    in a word, 1 where the input is a map. positions: columns computed together. repeats: frames of a batch, one after
    the other. from_chip, to_chip: whether the map that is read, and the one that is written, stays in a map buffer.
    """

    name: str
    filters: int
    in_channels: int
    in_height: int
    in_width: int
    blocks: int
    out_blocks: int
    kernel_height: int
    kernel_width: int
    stride: int
    pad_top: int
    out_height: int
    out_width: int
    saved_height: int
    saved_width: int
    pool_size: int
    pool_stride: int
    diagonal: bool
    pixels: int
    value_words: int
    steps: int
    macs: int
    positions: int
    repeats: int = 1
    from_chip: bool = False
    to_chip: bool = False

    @property
    def phases(self) -> int:
        return min(self.stride, self.kernel_height)

    @property
    def ahead(self) -> int:
        return (self.kernel_height - 1) // self.stride


def work_of(network: QuantizedNetwork, job: Job, array: Array) -> Work:
    """The numbers of ``job`` on arrays with the columns and lanes of ``array``."""
    before = network.nodes[job.input].shape
    pixels = array.word_pixels if reads_pixels(job) else 1
    result = network.nodes[job.output].type.datatype
    return Work(
        name=job.name,
        filters=int(job.weights.shape[0]),
        in_channels=before.channels * job.joined,
        in_height=before.height // job.joined * job.stacked,
        in_width=before.width,
        blocks=1 if reads_pixels(job) else read_blocks(network, job, array),
        out_blocks=blocks(int(job.weights.shape[0]), array),
        kernel_height=job.kernel[0],
        kernel_width=job.kernel[1],
        stride=job.stride,
        pad_top=job.padding.top,
        out_height=job.out.height,
        out_width=job.out.width,
        saved_height=job.saved.height,
        saved_width=job.saved.width,
        pool_size=job.pool_size,
        pool_stride=job.pool_stride,
        diagonal=job.diagonal,
        pixels=pixels,
        value_words=1 if result.bits <= array.bits else array.result_words,
        steps=steps_of(network, job, array),
        macs=job.macs,
        positions=positions_of(job, array),
        repeats=job.repeats,
    )


def staying(works: Sequence[Work], stays: Sequence[bool]) -> tuple[Work, ...]:
    """The same work with these maps on chip."""
    before = (False, *stays[:-1])
    return tuple(
        replace(work, from_chip=read, to_chip=written) for work, read, written in zip(works, before, stays, strict=True)
    )


def following_steps(works: Sequence[Work], index: int) -> int:
    """Steps of the next layer, whose first weight tile arrives during this one; 0 after the last."""
    return works[index + 1].steps if index + 1 < len(works) else 0


def steps_of(network: QuantizedNetwork, job: Job, array: Array) -> int:
    """Cycles that one position takes: kernel rows × groups of kernel columns × channel blocks."""
    height, width = job.kernel
    if reads_pixels(job):
        return height * ceil_div(width, array.step_pixels)
    return height * width * (array.tile_blocks if job.diagonal else read_blocks(network, job, array))


@dataclass(frozen=True)
class Cut:
    """A job cut into strips of equal width but for the last. words: of one row in the row buffer, for the first
    strip, the widest between, and the last; total_words: over all strips."""

    strips: tuple[Strip, ...]
    words: tuple[int, int, int]
    total_words: int

    @property
    def count(self) -> int:
        return len(self.strips)

    @property
    def width(self) -> int:
        return self.strips[0].columns

    @property
    def last_width(self) -> int:
        return self.strips[-1].columns

    @property
    def widest_words(self) -> int:
        return max(self.words)


def cuts(network: QuantizedNetwork, job: Job, array: Array, most: int = MAX_STRIPS) -> tuple[Cut, ...]:
    """Every distinct cut into at most ``most`` strips, the fewest strips first."""
    found: dict[int, Cut] = {}
    for strips in strip_choices(job, most):
        if strips[0].columns not in found:
            words = [row_words(network, job, array, strip) for strip in strips]
            middle = max(words[1:-1], default=words[0])
            found[strips[0].columns] = Cut(strips, (words[0], middle, words[-1]), sum(words))
    return tuple(found.values())


def strip_choices(job: Job, most: int) -> Iterator[tuple[Strip, ...]]:
    """Strips end where a pool window ends; a pool of stride 1 needs every column's right neighbour: one strip."""
    width, unit = job.out.width, job.pool_stride
    units = ceil_div(width, unit)
    straddling = job.pool_size == 2 and unit == 1
    for count in range(1, 1 if straddling else min(most, units) + 1):
        size = ceil_div(units, count) * unit
        yield tuple(Strip(x, min(size, width - x)) for x in range(0, width, size))
    if straddling:
        yield (Strip(0, width),)


@dataclass(frozen=True)
class Way:
    """One way to tile a job: what the search chooses from. on_chip: its result stays in a map buffer."""

    cut: Cut
    order: str
    overlap: bool
    on_chip: bool = False

    @property
    def weights_resident(self) -> bool:
        return self.order == "weights-resident"

    @property
    def inputs_resident(self) -> bool:
        return self.order == "inputs-resident"


@dataclass(frozen=True)
class Needs:
    """The least buffer depths that a tiling runs in."""

    row_depth: int
    weight_depth: int
    kept_depth: int
    channel_tiles: int
    map_depth: int


def ways(work: Work, rows: int, choices: tuple[Cut, ...]) -> tuple[Way, ...]:
    """Every way that differs on ``rows`` rows: with one row tile nothing is ever loaded twice."""
    if work.out_height <= rows:
        return tuple(Way(cut, "streamed", False) for cut in choices)
    flags = (
        ("weights-resident", True),
        ("weights-resident", False),
        ("inputs-resident", True),
        ("streamed", True),
        ("streamed", False),
    )
    return tuple(Way(cut, order, overlap) for cut in choices for order, overlap in flags)


def needs(work: Work, rows: int, columns: int, way: Way, following: int) -> Needs:
    """``following``: steps of the next job, whose first weight tile arrives during this one; 0 after the last."""
    row_tiles, channel_tiles = ceil_div(work.out_height, rows), ceil_div(work.filters, columns)
    after = max(following, work.steps) if way.cut.count * work.repeats > 1 else following
    again = channel_tiles > 1 or (row_tiles > 1 and way.order == "streamed")
    streamed = work.steps + max(work.steps if again else 0, after)
    return Needs(
        row_depth=slots(work, rows, way) * work.phases * way.cut.widest_words,
        weight_depth=channel_tiles * work.steps + after if way.weights_resident else streamed,
        kept_depth=_kept(work, rows, way) * (1 if way.inputs_resident else channel_tiles),
        channel_tiles=channel_tiles,
        map_depth=map_words(work, rows) if way.on_chip else 0,
    )


def map_words(work: Work, rows: int) -> int:
    """Words of one bank that the result takes in a map buffer, [row][block][column]; include/map_buffer.h."""
    return ceil_div(work.saved_height, rows) * work.out_blocks * work.saved_width


def span(work: Work, rows: int) -> int:
    """Row strides of one bank that a tile reads, kernel included."""
    return (rows - 1 + work.ahead) // rows + 1


def slots(work: Work, rows: int, way: Way) -> int:
    """Row strides that a bank holds: those of a tile, of the next one too where it loads meanwhile, or all."""
    if way.inputs_resident:
        return ceil_div(work.out_height, rows) - 1 + span(work, rows)
    return span(work, rows) + (1 if way.overlap else 0)


def _kept(work: Work, rows: int, way: Way) -> int:
    """Sums of a channel tile that wait for the tile below: none where pool windows never straddle row tiles."""
    straddles = work.pool_size > 1 and work.out_height > rows and (work.pool_stride == 1 or rows % 2 == 1)
    return ceil_div(way.cut.width, work.pool_stride) if straddles else 0


def tiling_of(network: QuantizedNetwork, job: Job, array: Array, way: Way) -> Tiling:
    """The tiling that ``scheduler.program`` emits for one way."""
    work = work_of(network, job, array)
    return Tiling(
        job=job,
        strips=way.cut.strips,
        row_tiles=ceil_div(work.out_height, array.rows),
        channel_tiles=ceil_div(work.filters, array.columns),
        steps=work.steps,
        resident=way.weights_resident,
        inputs_resident=way.inputs_resident,
        overlap=way.overlap,
        slots=slots(work, array.rows, way),
        pixels=reads_pixels(job),
        positions=work.positions,
        on_chip=way.on_chip,
    )


def way_of(network: QuantizedNetwork, tiling: Tiling, array: Array) -> Way:
    """The way that a tiling goes."""
    words = [row_words(network, tiling.job, array, strip) for strip in tiling.strips]
    middle = max(words[1:-1], default=words[0])
    cut = Cut(tiling.strips, (words[0], middle, words[-1]), sum(words))
    return Way(cut, tiling.order, tiling.overlap, tiling.on_chip)


@lru_cache(maxsize=4096)
def distinct_rows(work: Work, rows: int) -> tuple[tuple[int, int], ...]:
    """(row tiles, rows that leave each), the last tile by itself at the end.

    Where rows is odd or the pool's stride is 1, a tile leaves one row more when one waits from the tile above.
    """
    tiles = ceil_div(work.out_height, rows)
    left = work.out_height - (tiles - 1) * rows
    before, odd = tiles - 1, (tiles - 1) * rows % 2
    if work.pool_size == 1:
        return ((before, rows), (0, rows), (1, left))
    if work.pool_stride == 1:
        return ((max(0, before - 1), rows), (min(1, before), rows - 1), (1, left + (1 if tiles > 1 else 0)))
    last = (1, (odd + left + 1) // 2)
    return ((before - before // 2, rows // 2), (before // 2, (rows + rows % 2) // 2), last)

"""The tiled systolic schedule: which order, tiles and buffers each job gets on an array.

This is the seam between choosing and emitting: ``tile`` takes the array as given and decides by simple
rules; a search proposes arrays and tilings and calls the same functions. ``scheduler.program`` turns the
schedule into numbers for the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from boards.errors import ScheduleError
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.array import Array, check
from scheduler.systolic.formats import check_format
from scheduler.systolic.layers import Job, lower


@dataclass(frozen=True)
class Strip:
    """Columns ``first`` … ``first + columns − 1`` of a job's convolution output."""

    first: int
    columns: int


@dataclass(frozen=True, eq=False)
class Tiling:
    """How one job is tiled.

    resident: every weight tile stays in the weight buffer over all row tiles. inputs_resident: every row of a
    strip stays in the row buffer, and weights are streamed once a strip. Neither: weights are streamed once a
    row tile. overlap: the next row tile's rows arrive while this one is computed.
    on_chip: its result stays in a map buffer, for the next job.
    slots: row strides that one row-buffer bank holds. steps: cycles a position takes, or so many ``positions`` at once.
    """

    job: Job
    strips: tuple[Strip, ...]
    row_tiles: int
    channel_tiles: int
    steps: int
    resident: bool
    inputs_resident: bool
    overlap: bool
    slots: int
    pixels: bool
    positions: int = 1
    on_chip: bool = False

    @property
    def order(self) -> str:
        """One of ``scheduler.work.ORDERS``: what stays on chip while the other streams past."""
        if self.resident:
            return "weights-resident"
        return "inputs-resident" if self.inputs_resident else "streamed"

    @property
    def cycles(self) -> int:
        """Cycles of the array alone, with no stall, fill or drain: positions × steps × tiles."""
        places = sum(ceil_div(s.columns, self.positions) for s in self.strips)
        return self.row_tiles * self.channel_tiles * places * self.steps * self.job.repeats

    def reasons(self, array: Array) -> tuple[str, ...]:
        """Why it is tiled so, one line each, for the generated comments."""
        job = self.job
        weights = self.channel_tiles * self.steps
        order = (
            f"weights resident: {weights} steps in the buffer, read once a pass"
            if self.resident
            else f"inputs resident: all rows in the buffer, {weights} steps of weights streamed once a strip"
            if self.inputs_resident
            else f"weights streamed: {weights} steps, read once a row tile ({self.row_tiles} of them) through a buffer "
            f"of {array.weight_depth}"
        )
        rows = "next rows load during compute" if self.overlap else "rows of a tile load before it is computed"
        lanes = "kernel columns × channels unrolled over the lanes" if self.pixels else "input channels over the lanes"
        return (
            f"{job.name}: {job.weights.shape[0]}×{job.out.height}×{job.out.width} in {self.row_tiles} row tile(s) × "
            f"{self.channel_tiles} channel tile(s) × {len(self.strips)} strip(s), {self.steps} cycles a position",
            f"{lanes}; {order}; {rows}"
            + (f"; max pool {job.pool_size}/{job.pool_stride} fused" if job.pool_size > 1 else "")
            + ("; its result stays on chip" if self.on_chip else "")
            + (f"; {job.stacked} frames as one map" if job.stacked > 1 else "")
            + (f" of {job.stacked} rows, {job.joined} rows of a frame being one" if job.joined > 1 else "")
            + (f"; {job.repeats} frames one after the other" if job.repeats > 1 else ""),
        )


@dataclass(frozen=True, eq=False)
class SystolicSchedule:
    network: QuantizedNetwork
    array: Array
    tilings: tuple[Tiling, ...]

    @property
    def batch(self) -> int:
        """Frames that go through each layer before the next one starts."""
        return max((t.job.stacked * t.job.repeats for t in self.tilings), default=1)

    @property
    def cycles(self) -> int:
        return sum(t.cycles for t in self.tilings)


def tile(network: QuantizedNetwork, array: Array, batch: int = 1) -> SystolicSchedule:
    """A legal schedule of every layer on ``array``; ScheduleError says what does not fit and what would."""
    check(array)
    check_format(network, array)
    jobs = lower(network, batch)
    steps = [_steps(network, job, array) for job in jobs]
    tilings, problems = [], []
    for index, job in enumerate(jobs):
        following = steps[index + 1] if index + 1 < len(jobs) else 0
        try:
            tilings.append(_tile_job(network, job, array, following))
        except ScheduleError as error:
            problems.append(str(error))
    if problems:
        raise ScheduleError(
            f"{len(problems)} layer(s) of {network.name} do not fit the array {array}:\n  " + "\n  ".join(problems)
        )
    return SystolicSchedule(network, array, tuple(tilings))


def positions_of(job: Job, array: Array) -> int:
    """Columns of the output that are computed together. Two share DSPs at 4 bits, where their inputs are neighbours:
    a bank of the row buffer gives two neighbouring words a cycle."""
    return array.packing.positions if job.stride == 1 else 1


def reads_pixels(job: Job) -> bool:
    return job.input == 0


def blocks(channels: int, array: Array) -> int:
    """Words that hold the channels of one position."""
    return ceil_div(channels, array.lanes)


def read_blocks(network: QuantizedNetwork, job: Job, array: Array) -> int:
    """Words of one position of the rows that a job reads."""
    return job.joined * blocks(network.nodes[job.input].shape.channels, array)


def _steps(network: QuantizedNetwork, job: Job, array: Array) -> int:
    kernel_height, kernel_width = job.kernel
    if reads_pixels(job):
        return kernel_height * ceil_div(kernel_width, array.step_pixels)
    read = array.tile_blocks if job.diagonal else read_blocks(network, job, array)
    return kernel_height * kernel_width * read


def _tile_job(network: QuantizedNetwork, job: Job, array: Array, following: int) -> Tiling:
    steps = _steps(network, job, array)
    row_tiles = ceil_div(job.out.height, array.rows)
    channel_tiles = ceil_div(int(job.weights.shape[0]), array.columns)
    strips, overlap = _fit_rows(network, job, array, row_tiles)
    # The strip or the frame after the first begins with this layer's own weights.
    after = max(following, steps) if len(strips) * job.repeats > 1 else following
    _fit_weights(job, array, steps, after, channel_tiles)
    resident = row_tiles > 1 and channel_tiles * steps + after <= array.weight_depth
    streamed = Tiling(
        job,
        strips,
        row_tiles,
        channel_tiles,
        steps,
        resident,
        False,
        overlap,
        _slots(job, array, overlap),
        reads_pixels(job),
        positions_of(job, array),
    )
    if row_tiles == 1 or resident:
        return streamed
    return _keep_inputs(network, streamed, array, following) or streamed


def _keep_inputs(network: QuantizedNetwork, streamed: Tiling, array: Array, following: int) -> Tiling | None:
    """The same with all rows of a strip on chip, where that streams the weights fewer times."""
    job = streamed.job
    slots = streamed.row_tiles - 1 + _span(job, array)
    for strips in _strip_choices(job):
        if len(strips) >= len(streamed.strips) * streamed.row_tiles:
            return None
        widest = max(row_words(network, job, array, strip) for strip in strips)
        fits_rows = slots * min(job.stride, job.kernel[0]) * widest <= array.row_depth
        after = max(following, streamed.steps) if len(strips) * job.repeats > 1 else following
        fits_weights = streamed.steps + max(streamed.steps, after) <= array.weight_depth
        kept = _kept(job, array, strips) // streamed.channel_tiles  # one channel tile at a time
        if fits_rows and fits_weights and kept <= array.kept_depth:
            return replace(streamed, strips=strips, inputs_resident=True, overlap=True, slots=slots)
    return None


def _fit_weights(job: Job, array: Array, steps: int, following: int, channel_tiles: int) -> None:
    needed = steps + max(steps if channel_tiles > 1 else 0, following)
    if needed > array.weight_depth:
        raise ScheduleError(
            f"{job.name}: the weight buffer holds {array.weight_depth} steps of {array.columns}×{array.lanes} "
            f"weights, but this layer's tile of {steps} and the one that follows need {needed} "
            f"({needed - array.weight_depth} too many); weight_depth={needed} would fit, or more lanes"
        )
    if channel_tiles > array.channel_tiles:
        raise ScheduleError(
            f"{job.name}: {job.weights.shape[0]} filters are {channel_tiles} channel tiles of {array.columns}, "
            f"but the Saver keeps requantisers for {array.channel_tiles}; channel_tiles={channel_tiles} would fit"
        )


def _span(job: Job, array: Array) -> int:
    """Row strides of one bank that a tile reads, kernel included."""
    ahead = (job.kernel[0] - 1) // job.stride
    return (array.rows - 1 + ahead) // array.rows + 1


def _slots(job: Job, array: Array, overlap: bool) -> int:
    return _span(job, array) + (1 if overlap else 0)


def input_columns(job: Job, strip: Strip, width: int, align: int) -> tuple[int, int]:
    """First and past-last input column that a strip reads, the first aligned down to ``align``; one that it does not
    read where it lies in the padding alone."""
    first = min(max(0, strip.first * job.stride - job.padding.left), width - 1)
    last = (strip.first + strip.columns - 1) * job.stride - job.padding.left + job.kernel[1]
    return first // align * align, max(first + 1, min(width, last))


def row_words(network: QuantizedNetwork, job: Job, array: Array, strip: Strip) -> int:
    """Words of one row of a strip in the row buffer."""
    shape = network.nodes[job.input].shape
    pixels = array.word_pixels if reads_pixels(job) else 1
    first, last = input_columns(job, strip, shape.width, pixels)
    if reads_pixels(job):
        return ceil_div(last - first, pixels)
    return read_blocks(network, job, array) * (last - first)


def _fit_rows(network: QuantizedNetwork, job: Job, array: Array, row_tiles: int) -> tuple[tuple[Strip, ...], bool]:
    """The fewest strips with overlapped loading; without it only where no strip is narrow enough."""
    for overlap in ([True] if row_tiles > 1 else []) + [False]:
        for strips in _strip_choices(job):
            if _row_depth(network, job, array, strips, overlap) <= array.row_depth and _sums_fit(job, array, strips):
                return strips, overlap
    narrowest = list(_strip_choices(job))[-1]
    raise ScheduleError(_row_sentence(network, job, array, narrowest))


def _row_depth(network: QuantizedNetwork, job: Job, array: Array, strips: Sequence[Strip], overlap: bool) -> int:
    phases = min(job.stride, job.kernel[0])
    widest = max(row_words(network, job, array, strip) for strip in strips)
    return _slots(job, array, overlap) * phases * widest


def _sums_fit(job: Job, array: Array, strips: Sequence[Strip]) -> bool:
    return _kept(job, array, strips) <= array.kept_depth


def _kept(job: Job, array: Array, strips: Sequence[Strip]) -> int:
    """Sums that wait for the tile below: none where the pool's rows never straddle a tile."""
    straddles = job.pool_size > 1 and job.out.height > array.rows and (job.pool_stride == 1 or array.rows % 2 == 1)
    widest = max(strip.columns for strip in strips)
    return ceil_div(int(job.weights.shape[0]), array.columns) * ceil_div(widest, job.pool_stride) if straddles else 0


def _row_sentence(network: QuantizedNetwork, job: Job, array: Array, strips: Sequence[Strip]) -> str:
    depth = _row_depth(network, job, array, strips, False)
    kept = _kept(job, array, strips)
    if depth > array.row_depth:
        return (
            f"{job.name}: the row buffer holds {array.row_depth} words a bank, but the narrowest strip "
            f"({strips[0].columns} column(s)) needs {depth} ({depth - array.row_depth} too many); "
            f"row_depth={depth + depth % 2} would fit, or more rows"
        )
    return (
        f"{job.name}: {kept} sums wait for the tile below, but the Saver keeps {array.kept_depth} "
        f"({kept - array.kept_depth} too many); kept_depth={kept} would fit, or an even number of rows"
    )


def _strip_choices(job: Job) -> Iterator[tuple[Strip, ...]]:
    """One strip, then ever narrower ones; strips end where a pool window ends. Stride-1 pools need every
    column's right neighbour, so they are not split."""
    width = job.out.width
    yield (Strip(0, width),)
    if job.pool_size == 2 and job.pool_stride == 1:
        return
    unit = job.pool_stride
    units = ceil_div(width, unit)
    for count in range(2, units + 1):
        size = ceil_div(units, count) * unit
        yield tuple(Strip(x, min(size, width - x)) for x in range(0, width, size))

"""Schedule → what lies in DDR: map regions, the layer program, weight and requantiser images.

Numbers are decided here, never in a template. Addresses count words of ``lanes`` values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt

from boards.errors import ScheduleError
from cnn.accumulator import magnitude
from cnn.datatype import DataType
from cnn.network import Shape
from cnn.quantized import QuantizedNetwork, on_host
from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.array import PIXEL_BYTES, Array
from scheduler.systolic.formats import check_format, pack_values
from scheduler.systolic.layers import Job, resolve
from scheduler.systolic.on_chip import buffers, turn_of
from scheduler.systolic.tiling import (
    Strip,
    SystolicSchedule,
    Tiling,
    blocks,
    input_columns,
    read_blocks,
    row_words,
)

Bytes = npt.NDArray[np.int8]
Weights = npt.NDArray[np.signedinteger]

PASS_WORDS = 64
"""32-bit words of one pass in the program; include/pass.h has the same."""

PASS_FIELDS = (
    "in_base",
    "in_row_pitch",
    "in_block_pitch",
    "burst_words",
    "bursts",
    "row_words",
    "block_words",
    "in_blocks",
    "in_width",
    "in_height",
    "in_buffer",
    "in_lap",
    "in_turn",
    "pixel_input",
    "kernel_height",
    "kernel_groups",
    "group_pixels",
    "stride",
    "pad_top",
    "pad_left",
    "diagonal",
    "tile_blocks",
    "steps",
    "out_height",
    "out_width",
    "row_tiles",
    "channel_tiles",
    "phases",
    "row_strides",
    "ahead",
    "positions",
    "slot_words",
    "last_slot",
    "first_loads",
    "first_moves",
    "overlap",
    "inputs_resident",
    "row_feeds",
    "weight_feeds",
    "array_steps",
    "weights_base",
    "resident",
    "tile_beats",
    "tile_uses",
    "tile_loads",
    "load_beats",
    "requantiser_base",
    "channels",
    "pool_size",
    "pool_stride",
    "save_width",
    "out_base",
    "out_row_pitch",
    "out_block_pitch",
    "out_blocks",
    "value_words",
    "out_buffer",
    "out_turn",
    "chunks",
    "low",
    "high",
)
"""Order of the fields; a test compares it with include/pass.h."""


@dataclass(frozen=True)
class Map:
    """A feature map in DDR: [row][block][column] words; ``value_words`` is above 1 where results leave as int16.

    ``pixels``: the input picture, [row][column] of PIXEL_BYTES bytes, rows padded to whole words. value_bits: of a
    value in DDR. frames: maps of ``shape`` that lie one after the other. buffer: the map buffer, 1 or 2, in which it
    stays on chip, 0 where it lies in DDR; turn: as in ``scheduler.on_chip``. A map on chip has its place in DDR all the
    same: there the host sees it when it runs layer by layer.
    """

    node: int
    base: int
    shape: Shape
    blocks: int
    value_words: int
    pixels: bool
    row_words: int
    value_bits: int
    frames: int = 1
    buffer: int = 0
    turn: int = 0

    @property
    def frame_words(self) -> int:
        return self.shape.height * self.row_words

    @property
    def words(self) -> int:
        """Of all frames."""
        return self.frames * self.frame_words

    @property
    def start(self) -> int:
        """Word that the passes count from: of DDR, or of the map buffer."""
        return 0 if self.buffer else self.base

    @property
    def block_pitch(self) -> int:
        return self.row_words // self.blocks


@dataclass(frozen=True, eq=False)
class Program:
    """Everything that DDR holds before a frame starts.

    words: uint32 [passes, PASS_WORDS]. weights: one image a port, bytes [port words, bytes of a port
    word].
    requantisers: uint32 [channels, 4] (bias, multiplier | negative << 16, shift, 0).
    maps_words: size of the map arena. maps: node index → its region. pass_job: pass → job index.
    """

    words: npt.NDArray[np.uint32]
    weights: tuple[Bytes, ...]
    requantisers: npt.NDArray[np.uint32]
    maps_words: int
    maps: dict[int, Map]
    pass_job: tuple[int, ...]

    def last_pass(self, job: int) -> int:
        """The pass after which the job's map is whole."""
        return max(i for i, j in enumerate(self.pass_job) if j == job)


def emit(schedule: SystolicSchedule) -> Program:
    """ScheduleError where a sum would not fit the array's 32-bit accumulators, or a value its lanes."""
    check_format(schedule.network, schedule.array)
    maps, maps_words = place_maps(schedule)
    rows, pass_job = [], []
    weights, requantisers = [], []
    weight_base = requantiser_base = 0
    for index, tiling in enumerate(schedule.tilings):
        image = weight_image(tiling, schedule.array)
        channels = requantiser_image(tiling, schedule.network, schedule.array)
        for frame, strip in product(range(tiling.job.repeats), tiling.strips):
            fields = _pass_fields(schedule, tiling, strip, maps, frame, weight_base, requantiser_base)
            rows.append([fields[name] for name in PASS_FIELDS])
            pass_job.append(index)
        weights.append(image)
        requantisers.append(channels)
        weight_base += image.shape[0] // (schedule.array.weight_ports * schedule.array.weight_words)
        requantiser_base += channels.shape[0]
    words = np.zeros((len(rows), PASS_WORDS), np.uint32)
    words[:, : len(PASS_FIELDS)] = np.array(rows, np.int64).astype(np.uint32)
    return Program(
        words,
        _deal(np.concatenate(weights), schedule.array),
        np.concatenate(requantisers),
        maps_words,
        maps,
        tuple(pass_job),
    )


def _deal(image: Bytes, array: Array) -> tuple[Bytes, ...]:
    """``weight_words`` words to each port in turn, so that the ports together give one step after the other."""
    width = array.weight_words * array.word_bytes
    dealt = image.reshape(-1, array.weight_ports, width)
    return tuple(np.ascontiguousarray(dealt[:, port]) for port in range(array.weight_ports))


# --- maps -------------------------------------------------------------------------------------------------


def place_maps(schedule: SystolicSchedule) -> tuple[dict[int, Map], int]:
    """First-fit by lifetime: a chain of layers gets two alternating regions, a skip pins its region."""
    network, array = schedule.network, schedule.array
    final = len(schedule.tilings)
    last_read = {t.job.input: i for i, t in enumerate(schedule.tilings)}
    # What the host reads has to stand until the frame is done, also where a later layer reads it too.
    last_read |= {resolve(network, i): final for node in network.nodes if on_host(node.op) for i in node.inputs}
    placed: dict[int, Map] = {}
    live: list[tuple[int, Map]] = []  # (index of the last job that reads it, map)
    order = [(0, -1)] + [(t.job.output, i) for i, t in enumerate(schedule.tilings)]
    stay = _stay(schedule)
    size = 0
    for node, written in order:
        live = [(end, m) for end, m in live if end >= written]
        where = _map(network, node, array, schedule.batch)
        base = _first_gap([m for _, m in live], where.words)
        buffer, turn = stay.get(node, (0, 0))
        placed[node] = replace(where, base=base, buffer=buffer, turn=turn)
        live.append((last_read.get(node, final), placed[node]))
        size = max(size, base + where.words)
    return placed, size


def _stay(schedule: SystolicSchedule) -> dict[int, tuple[int, int]]:
    """node → (map buffer, turn) of the maps that stay on chip."""
    tilings = schedule.tilings
    readers = (*(tiling.job for tiling in tilings[1:]), None)
    chosen = buffers([tiling.on_chip for tiling in tilings])
    return {
        tiling.job.output: (buffer, turn_of(reader, schedule.array))
        for tiling, buffer, reader in zip(tilings, chosen, readers, strict=True)
        if buffer
    }


def _first_gap(live: list[Map], words: int) -> int:
    base = 0
    for other in sorted(live, key=lambda m: m.base):
        if base + words <= other.base:
            break
        base = max(base, other.base + other.words)
    return base


def _map(network: QuantizedNetwork, node: int, array: Array, frames: int) -> Map:
    """At word 0."""
    shape, datatype = network.nodes[node].shape, network.nodes[node].type.datatype
    if node == 0:
        words = ceil_div(shape.width, array.word_pixels)
        return Map(0, 0, shape, 1, 1, True, words, 8, frames)
    value_words = 1 if datatype.bits <= array.bits else array.result_words
    count, bits = blocks(shape.channels, array), array.bits * value_words
    return Map(node, 0, shape, count, value_words, False, count * shape.width * value_words, bits, frames)


# --- passes -----------------------------------------------------------------------------------------------


def _pass_fields(
    schedule: SystolicSchedule,
    tiling: Tiling,
    strip: Strip,
    maps: dict[int, Map],
    frame: int,
    weight_base: int,
    requantiser_base: int,
) -> dict[str, int]:
    job, array = tiling.job, schedule.array
    datatype = schedule.network.nodes[job.output].type.datatype
    return {
        **_input_fields(schedule, tiling, strip, _of_frame(maps[job.input], frame)),
        **_output_fields(tiling, strip, _of_frame(maps[job.output], frame), datatype, array),
        **_feed_fields(tiling, strip),
        **_weight_fields(tiling, array),
        "kernel_height": job.kernel[0],
        "kernel_groups": tiling.steps // (job.kernel[0] * _tile_blocks(tiling, schedule)),
        "group_pixels": array.step_pixels if tiling.pixels else 1,
        "stride": job.stride,
        "pad_top": job.padding.top,
        "diagonal": int(job.diagonal),
        "tile_blocks": _tile_blocks(tiling, schedule),
        "steps": tiling.steps,
        "out_height": job.out.height,
        "out_width": strip.columns,
        "row_tiles": tiling.row_tiles,
        "channel_tiles": tiling.channel_tiles,
        "phases": _phases(job),
        "row_strides": tiling.row_tiles * array.rows + _ahead(job),
        "ahead": _ahead(job),
        "positions": tiling.positions,
        "overlap": int(tiling.overlap),
        "inputs_resident": int(tiling.inputs_resident),
        "weights_base": weight_base,
        "requantiser_base": requantiser_base,
        "pool_size": job.pool_size,
        "pool_stride": job.pool_stride,
    }


def _phases(job: Job) -> int:
    """Rows of a stride that are read."""
    return min(job.stride, job.kernel[0])


def _ahead(job: Job) -> int:
    """Row strides that a kernel reaches below its first."""
    return (job.kernel[0] - 1) // job.stride


def _feed_fields(tiling: Tiling, strip: Strip) -> dict[str, int]:
    """Steps that the array takes from one tile of rows, with one tile of weights, in the whole pass."""
    tile_steps = ceil_div(strip.columns, tiling.positions) * tiling.steps
    return {
        "row_feeds": tile_steps * (1 if tiling.inputs_resident else tiling.channel_tiles),
        "weight_feeds": tile_steps * (tiling.row_tiles if tiling.inputs_resident else 1),
        "array_steps": tile_steps * tiling.row_tiles * tiling.channel_tiles,
    }


def _weight_fields(tiling: Tiling, array: Array) -> dict[str, int]:
    """Tiles that are fed and loaded, and how much of them a port gives."""
    uses = tiling.channel_tiles * (1 if tiling.inputs_resident else tiling.row_tiles)
    loads = tiling.channel_tiles if tiling.resident else uses
    beats = tiling.steps * array.columns // (array.weight_ports * array.weight_words)
    return {
        "resident": int(tiling.resident),
        "tile_beats": beats,
        "tile_uses": uses,
        "tile_loads": loads,
        "load_beats": loads * beats,
        "channels": tiling.channel_tiles * array.columns,
    }


def _of_frame(region: Map, frame: int) -> Map:
    """From one frame's map on."""
    return replace(region, base=region.base + frame * region.frame_words)


def _tile_blocks(tiling: Tiling, schedule: SystolicSchedule) -> int:
    if tiling.pixels:
        return 1
    array = schedule.array
    return array.tile_blocks if tiling.job.diagonal else read_blocks(schedule.network, tiling.job, array)


def _input_fields(schedule: SystolicSchedule, tiling: Tiling, strip: Strip, region: Map) -> dict[str, int]:
    job, array = tiling.job, schedule.array
    pixels = array.word_pixels if tiling.pixels else 1
    first, last = input_columns(job, strip, region.shape.width, pixels)
    words = row_words(schedule.network, job, array, strip)
    whole = tiling.pixels or last - first == region.shape.width
    slot, first_strides = _phases(job) * words, array.rows + _ahead(job)
    return {
        "in_base": region.start + first // pixels,
        "in_row_pitch": region.row_words * job.joined,
        "in_block_pitch": region.block_pitch,
        "burst_words": words if whole else last - first,
        "bursts": 1 if whole else region.blocks,
        "row_words": words,
        "block_words": words // (region.blocks * job.joined),
        "in_blocks": region.blocks * job.joined,
        "in_width": last - first,
        "in_height": region.shape.height // job.joined * job.stacked,
        "in_buffer": region.buffer,
        "in_lap": job.padding.top // array.rows,
        "in_turn": job.padding.top % array.rows,
        "slot_words": slot,
        "last_slot": (tiling.slots - 1) * slot,
        "first_loads": ceil_div(first_strides, array.map_ports) * slot,
        "first_moves": ceil_div(first_strides, array.rows) * slot,
        "pixel_input": int(tiling.pixels),
        "pad_left": job.padding.left - (strip.first * job.stride - first),
    }


def _output_fields(tiling: Tiling, strip: Strip, region: Map, datatype: DataType, array: Array) -> dict[str, int]:
    job = tiling.job
    first = strip.first // job.pool_stride
    width = ceil_div(strip.columns, job.pool_stride)
    return {
        "save_width": width,
        "out_base": region.start + first * region.value_words,
        "out_row_pitch": region.row_words,
        "out_block_pitch": region.block_pitch,
        "out_blocks": region.blocks,
        "value_words": region.value_words,
        "out_buffer": region.buffer,
        "out_turn": region.turn,
        "chunks": tiling.row_tiles * tiling.channel_tiles * ceil_div(width, array.chunk),
        "low": datatype.low,
        "high": datatype.high,
    }


# --- weights ----------------------------------------------------------------------------------------------


def weight_image(tiling: Tiling, array: Array) -> Bytes:
    """[channel tiles · steps · columns, bytes of a word]: the flat values of a step are [lane][column]."""
    job = tiling.job
    if tiling.pixels:
        steps = _pixel_steps(job, array)
    elif job.diagonal:
        steps = _diagonal_steps(job, array)
    else:
        steps = _channel_steps(job, array)
    return pack_values(np.ascontiguousarray(steps).reshape(-1, array.lanes), array.bits)


def _pad_axis(array: Weights, axis: int, multiple: int) -> Weights:
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, -array.shape[axis] % multiple)
    return np.pad(array, widths)


def _channel_steps(job: Job, array: Array) -> Weights:
    """[tile, ky, kx, block, lane, column]; where rows are joined [tile, kx, ky, block, lane, column]."""
    weights = _pad_axis(_pad_axis(job.weights, 0, array.columns), 1, array.lanes)
    height, width = weights.shape[2:]
    split = weights.reshape(-1, array.columns, weights.shape[1] // array.lanes, array.lanes, height, width)
    return np.transpose(split, (0, 5, 4, 2, 3, 1) if job.joined > 1 else (0, 4, 5, 2, 3, 1))


def _pixel_steps(job: Job, array: Array) -> Weights:
    """[tile, ky, group of kernel columns, pixel, channel, column]: pixel and channel together are the lane.

    At 4 bits a channel is two lanes, its low and its high nibble, under the same weight: the array counts the odd
    lanes of a pixel 16 times (include/load.h, include/pe_array.h).
    """
    weights = _pad_axis(_pad_axis(job.weights, 0, array.columns), 1, PIXEL_BYTES)
    weights = np.repeat(weights, array.pixel_lanes // PIXEL_BYTES, axis=1)
    pixels = array.step_pixels
    weights = _pad_axis(weights, 3, pixels)
    split = weights.reshape(-1, array.columns, array.pixel_lanes, job.kernel[0], weights.shape[3] // pixels, pixels)
    return np.transpose(split, (0, 3, 4, 5, 2, 1))


def _diagonal_steps(job: Job, array: Array) -> Weights:
    """[tile, ky, kx, block, lane, column], non-zero only where block · lanes + lane = column."""
    weights = _pad_axis(job.weights, 0, array.columns)
    height, width = job.kernel
    tiles = weights.reshape(-1, array.columns, height, width).transpose(0, 2, 3, 1)
    out = np.zeros((*tiles.shape[:3], array.columns, array.columns), tiles.dtype)
    diagonal = np.arange(array.columns)
    out[..., diagonal, diagonal] = tiles
    return out


PIXEL_OFFSETS = {4: 136, 8: 128, 16: 0}
"""By bits: what is missing in a pixel as the array takes it (include/load.h), made good by the bias."""


def requantiser_image(tiling: Tiling, network: QuantizedNetwork, array: Array) -> npt.NDArray[np.uint32]:
    """uint32 [channel tiles · columns, 4]; filters that do not exist give 0."""
    job, by = tiling.job, tiling.job.requantiser
    bias = by.bias.astype(np.int64)
    most = magnitude(network.nodes[job.input].type.datatype)
    if tiling.pixels:
        offset = PIXEL_OFFSETS[array.bits]
        most = max(offset, 255 - offset)
        bias = bias + offset * job.weights.astype(np.int64).sum(axis=(1, 2, 3))
    _check_sums(job, bias, most)
    image = np.zeros((tiling.channel_tiles * array.columns, 4), np.uint32)
    image[:, 2] = 1
    count = len(bias)
    image[:count, 0] = bias.astype(np.int32).view(np.uint32)
    image[:count, 1] = (by.multiplier | (by.negative << 16)).astype(np.uint32)
    image[:count, 2] = by.shift.astype(np.uint32)
    return image


def _check_sums(job: Job, bias: npt.NDArray[np.int64], most: int) -> None:
    """Exact sums fit int32 whatever the map holds: Σ|w| · most + |bias| < 2^31."""
    largest = np.abs(job.weights.astype(np.int64)).sum(axis=(1, 2, 3)) * most + np.abs(bias)
    if int(largest.max()) >= 1 << 31:
        channel = int(largest.argmax())
        raise ScheduleError(
            f"{job.name}: the array's accumulators are 32 bits, but channel {channel} may reach "
            f"{int(largest.max())}; check the layer's bias, or quantise it to fewer bits"
        )

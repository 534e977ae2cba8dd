"""Where feature maps lie in DDR, and which of them stay in a map buffer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cnn.network import Shape
from cnn.quantized import QuantizedNetwork, on_host
from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.array import Array
from scheduler.systolic.layers import resolve
from scheduler.systolic.on_chip import buffers, turn_of
from scheduler.systolic.schedule import SystolicSchedule
from scheduler.systolic.shape import blocks


@dataclass(frozen=True)
class MapRegion:
    """Where a feature map lies in DDR: [row][block][column] words.

    value_words: words of a block, more than 1 where results leave as int16. pixels: the input picture,
    [row][column] of PIXEL_BYTES bytes, rows padded to whole words. value_bits: of a value in DDR. frames: maps of
    ``shape`` that lie one after the other. buffer: the map buffer, 1 or 2, in which the map stays on chip, 0 where it
    lies in DDR; turn: as in scheduler/systolic/on_chip.py. A map on chip has its place in DDR all the same: there the
    host sees it when it runs layer by layer.
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

    def from_frame(self, frame: int) -> MapRegion:
        """The same region from the map of ``frame`` on."""
        return replace(self, base=self.base + frame * self.frame_words)


def place_maps(schedule: SystolicSchedule) -> tuple[dict[int, MapRegion], int]:
    """Node index → its region, and the words of all together.

    First fit by lifetime: a chain of layers gets two alternating regions, a skip connection holds its region until its
    last reader is through.
    """
    network, last_read = schedule.network, _last_reads(schedule)
    placed: dict[int, MapRegion] = {}
    live: list[tuple[int, MapRegion]] = []  # (index of the last layer that reads it, map)
    written = [(0, -1)] + [(scheduled.layer.output, index) for index, scheduled in enumerate(schedule.layers)]
    on_chip = _on_chip(schedule)
    size = 0
    for node, index in written:
        live = [(end, region) for end, region in live if end >= index]
        region = _unplaced(network, node, schedule.array, schedule.batch)
        base = _first_gap([occupied for _, occupied in live], region.words)
        buffer, turn = on_chip.get(node, (0, 0))
        placed[node] = replace(region, base=base, buffer=buffer, turn=turn)
        live.append((last_read.get(node, len(schedule.layers)), placed[node]))
        size = max(size, base + region.words)
    return placed, size


def _last_reads(schedule: SystolicSchedule) -> dict[int, int]:
    """node → index of the last layer that reads its map."""
    network = schedule.network
    layers = {scheduled.layer.input: index for index, scheduled in enumerate(schedule.layers)}
    # What the host reads has to stand until the frame is done, also where a later layer reads it too.
    host = [resolve(network, i) for node in network.nodes if on_host(node.op) for i in node.inputs]
    return layers | dict.fromkeys(host, len(schedule.layers))


def _on_chip(schedule: SystolicSchedule) -> dict[int, tuple[int, int]]:
    """node → (map buffer, turn) of the maps that stay on chip."""
    readers = (*(scheduled.layer for scheduled in schedule.layers[1:]), None)
    numbers = buffers([scheduled.tiling.on_chip for scheduled in schedule.layers])
    return {
        scheduled.layer.output: (buffer, turn_of(reader, schedule.array))
        for scheduled, buffer, reader in zip(schedule.layers, numbers, readers, strict=True)
        if buffer
    }


def _first_gap(occupied: list[MapRegion], words: int) -> int:
    base = 0
    for region in sorted(occupied, key=lambda region: region.base):
        if base + words <= region.base:
            break
        base = max(base, region.base + region.words)
    return base


def _unplaced(network: QuantizedNetwork, node: int, array: Array, frames: int) -> MapRegion:
    """The region of a node's map, at word 0."""
    shape, datatype = network.nodes[node].shape, network.nodes[node].type.datatype
    if node == 0:
        words = ceil_div(shape.width, array.word_pixels)
        return MapRegion(0, 0, shape, 1, 1, True, words, 8, frames)
    value_words = 1 if datatype.bits <= array.bits else array.result_words
    count, bits = blocks(shape.channels, array), array.bits * value_words
    return MapRegion(node, 0, shape, count, value_words, False, count * shape.width * value_words, bits, frames)

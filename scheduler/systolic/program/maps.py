"""Where feature maps lie in DDR, and which of them stay in a map buffer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from boards.errors import DoesNotFitError
from cnn.maps import Shape
from contract.geometry import PIXEL_BYTES
from scheduler.hardware.arithmetic import ceil_div
from scheduler.nodes import resolve
from scheduler.systolic.map_buffers import IN_DDR, Place, places_of, stays_of
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.network.strips import Strips, strips_of
from scheduler.systolic.network.views import Span, spans_of
from scheduler.systolic.schedule import SystolicSchedule
from scheduler.systolic.shape import blocks


@dataclass(frozen=True)
class MapRegion:
    """Where a feature map lies in DDR: [row][block][column] words. pitch: words from a row to the next, more than the
    ``row_words`` of its own where other maps lie beside it.

    value_words: words of a block, more than 1 where results leave as int16. pixels: the input picture,
    [row][plane][column] of PIXEL_BYTES bytes, rows of a plane padded to whole words. value_bits: of a value in DDR.
    frames: maps of ``shape`` that lie one after the other. buffer: the map buffer, 1 or 2, in which the map stays on
    chip, 0 where it lies in DDR; place, turn: its first word there, as in scheduler/systolic/map_buffers.py. A map on
    chip has its place in DDR all the same: there the host sees it when it runs layer by layer.
    """

    node: int
    base: int
    shape: Shape
    blocks: int
    value_words: int
    pixels: bool
    row_words: int
    value_bits: int
    pitch: int
    frames: int = 1
    buffer: int = 0
    place: int = 0
    turn: int = 0

    @property
    def frame_words(self) -> int:
        return self.shape.height * self.pitch

    @property
    def words(self) -> int:
        """Of all frames."""
        return self.frames * self.frame_words

    @property
    def start(self) -> int:
        """Word that the passes count from: of DDR, or of the map buffer."""
        return self.place if self.buffer else self.base

    @property
    def block_pitch(self) -> int:
        return self.row_words // self.blocks

    def from_frame(self, frame: int) -> MapRegion:
        """The same region from the map of ``frame`` on."""
        return replace(self, base=self.base + frame * self.frame_words)


def place_maps(schedule: SystolicSchedule) -> tuple[dict[int, MapRegion], int]:
    """Node index → its region, and the words of all together: of every map that is written, and of every join of such
    maps that a layer reads.

    First fit by lifetime: a chain of layers gets two alternating regions, a skip connection holds its region until its
    last reader is through. Maps that lie side by side have one region, from the first that is written on.
    """
    places = _Places(schedule, strips_of(schedule.network, schedule.array.added_maps), _on_chip(schedule))
    last_read = places.last_reads()
    bases: dict[tuple[int, ...], int] = {}
    live: list[tuple[int, int, int]] = []  # (index of the last layer that reads it, first word, past-last word)
    written = [(0, -1)] + [(scheduled.layer.output, index) for index, scheduled in enumerate(schedule.layers)]
    for node, index in written:
        strip = places.strips.of(node)
        if strip in bases:
            continue
        live = [occupied for occupied in live if occupied[0] >= index]
        words = places.unplaced(node).words
        bases[strip] = _first_gap([(first, end) for _, first, end in live], words)
        live.append((last_read.get(strip, len(schedule.layers)), bases[strip], bases[strip] + words))
    placed = {node: places.placed(node, bases) for node in dict.fromkeys([node for node, _ in written] + places.read())}
    return placed, max(placed[node].base + placed[node].words for node, _ in written)


@dataclass(frozen=True, eq=False)
class _Places:
    """Where the maps of a schedule lie within the strips that they share."""

    schedule: SystolicSchedule
    strips: Strips
    on_chip: dict[int, tuple[Place, int]]

    def last_reads(self) -> dict[tuple[int, ...], int]:
        """Strip → index of the last layer that reads any of it."""
        network, last = self.schedule.network, len(self.schedule.layers)
        reads = {
            self.strips.of(span.node): index
            for index, scheduled in enumerate(self.schedule.layers)
            for span in (*scheduled.layer.spans, *self._added(scheduled.layer))
        }
        # What the host reads has to stand until the frame is done, also where a later layer reads it too.
        host = [resolve(network, i) for node in network.nodes if node.op.on_host for i in node.inputs]
        return reads | {self.strips.of(node): last for node in host}

    def read(self) -> list[int]:
        """The maps, and joins of such, that layers read and that their Savers add."""
        layers = [scheduled.layer for scheduled in self.schedule.layers]
        return [layer.input for layer in layers] + [layer.added.other_node for layer in layers if layer.added]

    def _added(self, layer: Layer) -> tuple[Span, ...]:
        return spans_of(self.schedule.network, layer.added.other_node) if layer.added else ()

    def placed(self, node: int, bases: dict[tuple[int, ...], int]) -> MapRegion:
        """The region of a written map, or of a join of such."""
        spans = self.strips.as_they_lie(spans_of(self.schedule.network, node))
        strip, lanes = self.strips.of(spans[0].node), self.schedule.array.lanes
        region = self.unplaced(node)
        neighbours = strip[: strip.index(spans[0].node)]
        first_block = sum(self._blocks(neighbour) for neighbour in neighbours) + spans[0].first // lanes
        first_word = first_block * region.block_pitch
        place, turn = self.on_chip.get(spans[0].node, (IN_DDR, 0))
        word = place.word + first_word if place.buffer else 0
        return replace(region, base=bases[strip] + first_word, buffer=place.buffer, place=word, turn=turn)

    def _blocks(self, node: int) -> int:
        return blocks(self.schedule.network.nodes[node].shape.channels, self.schedule.array)

    def unplaced(self, node: int) -> MapRegion:
        """The region of a node's map, at word 0."""
        network, array, frames = self.schedule.network, self.schedule.array, self.schedule.batch
        shape, datatype = network.nodes[node].shape, network.nodes[node].type.datatype
        if node == 0:
            planes = ceil_div(shape.channels, PIXEL_BYTES)
            words = planes * ceil_div(shape.width, array.word_pixels)
            return MapRegion(0, 0, shape, planes, 1, True, words, 8, words, frames)
        value_words = 1 if datatype.bits <= array.bits else array.result_words
        spans = spans_of(network, node)
        count, block_words = sum(span.blocks(array.lanes) for span in spans), shape.width * value_words
        pitch = block_words * sum(self._blocks(neighbour) for neighbour in self.strips.of(spans[0].node))
        bits = array.bits * value_words
        return MapRegion(node, 0, shape, count, value_words, False, count * block_words, bits, pitch, frames)


def _on_chip(schedule: SystolicSchedule) -> dict[int, tuple[Place, int]]:
    """node → where it and those beside it begin, and the turn, of the maps that stay on chip."""
    layers = [scheduled.layer for scheduled in schedule.layers]
    stays, on_chip = stays_of(schedule.network, layers), [tiling.on_chip for tiling in schedule.tilings]
    if not any(on_chip):
        return {}
    places = places_of(stays, on_chip, schedule.room)
    if places is None:
        raise DoesNotFitError(f"the maps of {schedule.network.name} that stay on chip", "map buffers", None, 2)
    rows = schedule.array.rows
    kept = zip(layers, places, stays, strict=True)
    return {layer.output: (place, stay.turn % rows) for layer, place, stay in kept if place.buffer}


def _first_gap(occupied: list[tuple[int, int]], words: int) -> int:
    base = 0
    for first, end in sorted(occupied):
        if base + words <= first:
            break
        base = max(base, end)
    return base

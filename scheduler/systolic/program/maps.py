"""The place of each feature map in DDR, or in a map buffer on the chip."""

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
    """The location and layout of a feature map in DDR (words in the order row, block, column), or in an on-chip map
    buffer.

    The input image has the order (row, plane, column) instead, with PIXEL_BYTES bytes per pixel of a plane. Each row of
    a plane is padded to whole words. A map on chip has a place in DDR too, which the host reads if it runs the network
    layer by layer.

    Attributes:
        node: The node that computes the map, or that joins or slices other maps.
        base: The first word in DDR.
        shape: Shape of the map of one frame.
        blocks: Channel blocks per position; planes of the input image.
        value_words: Words per block and position, 2 or more if values are wider than a lane.
        pixels: Whether the map is the input image.
        row_words: Words of the map per row of pixels.
        value_bits: Bits per value.
        pitch: Words from a row of pixels to the next one. Larger than ``row_words`` if other maps share the rows.
        frames: The number of maps, one per frame, that are stored one after the other.
        buffer: The map buffer in which the map stays, 1 or 2, or 0 if the map is in DDR.
        place: The first word of each bank of that buffer (scheduler/systolic/map_buffers.py).
        bank_rotation: Rows by which the banks of that buffer are rotated for the map.
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
    bank_rotation: int = 0

    @property
    def frame_words(self) -> int:
        """DDR words from the map of one frame to the map of the next one in a batch."""
        return self.shape.height * self.pitch

    @property
    def words(self) -> int:
        """DDR words of the maps of all frames of a batch."""
        return self.frames * self.frame_words

    @property
    def start(self) -> int:
        """The first word of the map that a pass reads or writes, in DDR or in the map buffer."""
        return self.place if self.buffer else self.base

    @property
    def block_pitch(self) -> int:
        """Words from one channel block of a map row to the next one."""
        return self.row_words // self.blocks

    def from_frame(self, frame: int) -> MapRegion:
        """Return the region that begins at the map of frame ``frame`` of the batch."""
        return replace(self, base=self.base + frame * self.frame_words)


def place_maps(schedule: SystolicSchedule) -> tuple[dict[int, MapRegion], int]:
    """Return where each node's feature map is stored, and the DDR words that all maps together take.

    There is a region for every map that a layer writes, and for every view of such maps that a layer reads. Regions are
    placed in the order in which they are written, each in the first gap that is large enough. A chain of layers
    therefore gets two alternating regions, and a skip connection keeps its region until its last reader is done. The
    maps of a strip have one region, which is occupied from the first of them that is written on.
    """
    places = _Places(schedule, strips_of(schedule.network, schedule.array.added_maps), _on_chip(schedule))
    last_read = places.last_reads()
    bases: dict[tuple[int, ...], int] = {}
    live: list[tuple[int, int, int]] = []  # (index of the last layer that reads the region, first word, past-last word)
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
    """The computation of where a schedule's feature maps are stored, with maps side by side in shared strips.

    Attributes:
        schedule: The schedule.
        strips: The strips of its network.
        on_chip: The map-buffer place and the bank rotation per node whose map stays on chip.
    """

    schedule: SystolicSchedule
    strips: Strips
    on_chip: dict[int, tuple[Place, int]]

    def last_reads(self) -> dict[tuple[int, ...], int]:
        """Return, per strip of maps that share DDR rows, the index of the last layer that reads from it."""
        network, last = self.schedule.network, len(self.schedule.layers)
        reads = {
            self.strips.of(span.node): index
            for index, scheduled in enumerate(self.schedule.layers)
            for span in (*scheduled.layer.spans, *self._added(scheduled.layer))
        }
        # The host reads its maps after the frame is done, so no later map may overwrite them.
        host = [resolve(network, i) for node in network.nodes if node.op.on_host for i in node.inputs]
        return reads | {self.strips.of(node): last for node in host}

    def read(self) -> list[int]:
        """Return the nodes whose maps or views the layers read, including the maps of residual adds."""
        layers = [scheduled.layer for scheduled in self.schedule.layers]
        return [layer.input for layer in layers] + [layer.added.other_node for layer in layers if layer.added]

    def _added(self, layer: Layer) -> tuple[Span, ...]:
        """Return the channel ranges of the map that the layer's residual add reads."""
        return spans_of(self.schedule.network, layer.added.other_node) if layer.added else ()

    def placed(self, node: int, bases: dict[tuple[int, ...], int]) -> MapRegion:
        """Return the region (location and layout) of a node's map or view, given where its strip begins in DDR.

        Args:
            node: The node.
            bases: The first word of each strip in DDR.
        """
        spans = self.strips.in_stored_order(spans_of(self.schedule.network, node))
        strip, lanes = self.strips.of(spans[0].node), self.schedule.array.lanes
        region = self.unplaced(node)
        neighbours = strip[: strip.index(spans[0].node)]
        first_block = sum(self._blocks(neighbour) for neighbour in neighbours) + spans[0].first // lanes
        first_word = first_block * region.block_pitch
        place, rotation = self.on_chip.get(spans[0].node, (IN_DDR, 0))
        word = place.word + first_word if place.buffer else 0
        return replace(region, base=bases[strip] + first_word, buffer=place.buffer, place=word, bank_rotation=rotation)

    def _blocks(self, node: int) -> int:
        """Return the number of channel blocks (words) per pixel of a node's map."""
        return blocks(self.schedule.network.nodes[node].shape.channels, self.schedule.array)

    def unplaced(self, node: int) -> MapRegion:
        """Return the region of a node's map or view as if it were stored at word 0 of DDR."""
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
    """Return the map-buffer place and the bank rotation of each node whose map stays on chip.

    The maps of a strip have the same place.
    """
    layers = [scheduled.layer for scheduled in schedule.layers]
    stays, on_chip = stays_of(schedule.network, layers), [tiling.on_chip for tiling in schedule.tilings]
    if not any(on_chip):
        return {}
    places = places_of(stays, on_chip, schedule.room)
    if places is None:
        raise DoesNotFitError(f"the maps of {schedule.network.name} that stay on chip", "map buffers", None, 2)
    rows = schedule.array.rows
    kept = zip(layers, places, stays, strict=True)
    return {layer.output: (place, stay.bank_rotation % rows) for layer, place, stay in kept if place.buffer}


def _first_gap(occupied: list[tuple[int, int]], words: int) -> int:
    """Return the first DDR word at which ``words`` words are free between the occupied (first, past-last) ranges."""
    base = 0
    for first, end in sorted(occupied):
        if base + words <= first:
            break
        base = max(base, end)
    return base

"""The manifest of a systolic design: maps in DDR, and a program of passes over them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated

from boards.errors import DoesNotFitError, cut
from contract.geometry import PIXEL_BYTES, Geometry
from contract.program import names_of, words_of
from host.contract.codec import OPTIONAL, Count, OneOf, Range
from host.contract.parts import (
    MAX_BUFFER_BYTES,
    MAX_LAYERS,
    DataFile,
    Manifest,
    ManifestLayer,
    TensorMap,
    check_equal,
    check_range,
    check_tensor,
    check_that,
)

_DATATYPE = re.compile(r"U?INT([1-9]|1[0-6])")
_Bytes = Annotated[int, Range(-MAX_BUFFER_BYTES, MAX_BUFFER_BYTES)]
_Word = Annotated[int, Range(0, 1023)]
BOUNDS = ("fill", "compute", "rows", "weights", "saver", "ddr", "drain", "program")
"""The causes that can limit a layer: the parts of its modelled cycles, and "ddr" for its traffic."""


@dataclass(frozen=True, kw_only=True)
class SystolicRegion(TensorMap):
    """The place and layout of a feature map in the DDR arena: ``[row][block][column][lane]`` of integers of
    ``value_bits`` bits.

    If the design has a batch, the region is the first frame's map; the maps of the other frames follow it.

    Attributes:
        value_bytes: Bytes per integer in the host's arrays.
        map_buffer: 1 or 2 if the map stays on chip between the passes that write and read it. Absent: it is in DDR.
        place: First word of the map in each bank of the map buffer, if not 0.
        turn: Bank that holds the map's first row.
        pitch: Bytes from one row to the next, if other maps are interleaved with its rows. ``bytes`` includes them.
        offset: First byte of the map in the arena.
        bytes: Size of the map in the arena, in bytes.
        blocks: Number of blocks of lanes that hold the map's channels.
        value_bits: Width of an integer in DDR.
    """

    value_bytes: int
    map_buffer: Annotated[int, OneOf((1, 2))] | None = field(default=None, metadata=OPTIONAL)
    place: Annotated[int, Range(0, 1 << 30)] | None = field(default=None, metadata=OPTIONAL)
    turn: Annotated[int, Range(0, 1024)] | None = field(default=None, metadata=OPTIONAL)
    pitch: _Bytes | None = field(default=None, metadata=OPTIONAL)
    offset: _Bytes
    bytes: _Bytes
    blocks: int
    value_bits: int


@dataclass(frozen=True, kw_only=True)
class SystolicInput(SystolicRegion):
    """The place and layout of the network's input in the DDR arena. Each row has ``blocks`` planes, one after the
    other.

    Attributes:
        pixel_bytes: Bytes per pixel of a plane, one per channel.
        row_bytes: Bytes per row, with padding.
    """

    pixel_bytes: int
    row_bytes: _Bytes


@dataclass(frozen=True, kw_only=True)
class SystolicLayer(ManifestLayer):
    """A layer of a systolic design: engine instructions ``first_pass`` … ``last_pass`` read one feature map and write
    another.

    Cycles cover all frames of a batch.

    Attributes:
        input_node: The network's node whose feature map is read.
        last_input_node: Node of the last map read, if the layer reads several adjacent maps from ``input_node`` on.
        added_node: Node whose map is the other operand of a fused residual add.
        compute_cycles: Clock cycles that the PE array alone takes.
        bound_by: The part of its modelled cycles, or its DDR traffic, that takes longest: one of BOUNDS.
        overhead: The largest part of its modelled cycles other than compute, one of BOUNDS. Designs of earlier versions
            omit it.
        overhead_cycles: Cycles of that part.
    """

    input_node: Annotated[int, Range(0, 1 << 20)]
    last_input_node: Annotated[int, Range(0, 1 << 20)] | None = field(default=None, metadata=OPTIONAL)
    added_node: Annotated[int, Range(0, 1 << 20)] | None = field(default=None, metadata=OPTIONAL)
    first_pass: int
    last_pass: int
    compute_cycles: Count
    bound_by: Annotated[str, OneOf(BOUNDS)]
    overhead: Annotated[str, OneOf(BOUNDS)] | None = field(default=None, metadata=OPTIONAL)
    overhead_cycles: Count | None = field(default=None, metadata=OPTIONAL)
    output: SystolicRegion


@dataclass(frozen=True, kw_only=True)
class SystolicImages:
    """The files that are uploaded to DDR once: weights (one file per weight port), requantisers and program."""

    weights: tuple[DataFile, ...]
    requantisers: DataFile
    program: DataFile


@dataclass(frozen=True, kw_only=True)
class PassFields:
    """Positions, within the words of a pass (engine instruction), of the words that hold addresses of feature maps.

    For each map there is the word of its base, and the word that says whether it is in DDR (0) or in which on-chip map
    buffer. ``added_base`` and ``added_buffer`` exist if the array fuses residual adds.
    """

    in_base: _Word
    in_buffer: _Word
    out_base: _Word
    out_buffer: _Word
    added_base: _Word | None = field(default=None, metadata=OPTIONAL)
    added_buffer: _Word | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, kw_only=True)
class SystolicCheck:
    """The files of the design's test frame: the arena's contents before it, and the golden model's integers of every
    layer."""

    maps: DataFile
    layers: DataFile


@dataclass(frozen=True, kw_only=True)
class SystolicManifest(Manifest):
    """The manifest of a systolic design: a PE array, and the program of passes (instructions) that it executes per
    batch.

    Attributes:
        array: The geometry of the PE array and its buffers.
        word_bytes: Bytes per word of maps in DDR.
        weight_word_bytes: Bytes per word of weights in DDR.
        maps_bytes: Size of the arena of all feature maps, in bytes.
        images: The files that are uploaded to DDR.
        pass_words: 32-bit words per pass (engine instruction) of the program.
        pass_fields: Indices of the words in a pass that hold addresses.
        program_cycles: Modelled cycles of fetching passes, which no layer's ``modelled_cycles`` include.
        outputs: Layers, other than the last, whose maps the host reads although no head reads them.
        check: The test frame.
    """

    style = "systolic"

    input: SystolicInput
    layers: tuple[SystolicLayer, ...]
    array: Geometry
    word_bytes: Annotated[int, Range(1, 512)]
    weight_word_bytes: Annotated[int, Range(1, 512)]
    maps_bytes: Annotated[int, Range(1, MAX_BUFFER_BYTES)]
    images: SystolicImages
    pass_words: Annotated[int, Range(1, 1024)]
    pass_fields: PassFields
    program_cycles: Annotated[int, Range(0, 1 << 48)] = field(default=0, metadata=OPTIONAL)
    outputs: tuple[Annotated[int, Range(0, MAX_LAYERS - 1)], ...] = field(default=(), metadata=OPTIONAL)
    check: SystolicCheck

    @property
    def lanes(self) -> int:
        """Values per word of a feature map in DDR."""
        return self.array.lanes

    @property
    def cycles(self) -> int:
        """Modelled clock cycles per start of the accelerator, which executes one batch."""
        return self.program_cycles + sum(layer.modelled_cycles for layer in self.layers)

    @property
    def pass_cycles(self) -> tuple[float, ...]:
        """Modelled clock cycles of each pass (engine instruction): its fetch, and an equal share of its layer's
        cycles."""
        fetch = self.program_cycles / self.passes
        counts = ((layer, layer.last_pass - layer.first_pass + 1) for layer in self.layers)
        return tuple(fetch + cycles for layer, count in counts for cycles in [layer.modelled_cycles / count] * count)

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The data files that the host reads: weights, requantisers, program and test frame."""
        images, frame = self.images, self.check
        return (*images.weights, images.requantisers, images.program, frame.maps, frame.layers)

    @property
    def output_layers(self) -> tuple[int, ...]:
        """Indices of the layers whose outputs the host reads: first for the heads, then ``outputs``; without either,
        the last layer."""
        read = (layer for head in self.heads for layer in head.layers)
        return tuple(dict.fromkeys((*read, *self.outputs))) or (len(self.layers) - 1,)

    def layer_of_pass(self, index: int) -> SystolicLayer | None:
        """Return the layer to which pass ``index`` of the program belongs, or None."""
        return next((layer for layer in self.layers if layer.first_pass <= index <= layer.last_pass), None)

    def validate(self) -> None:
        """Raise an error for the first values of the manifest that contradict each other."""
        for index in self.outputs:
            check_range("the index of a layer", index, 0, len(self.layers) - 1, "outputs")
        super().validate()
        check_equal("the number of weight images", len(self.images.weights), self.array.weight_ports)
        _check_array(self)
        _check_input(self)
        _check_layers(self)


# --- checks ------------------------------------------------------------------------------------------------


def _check_array(manifest: SystolicManifest) -> None:
    array, fields = manifest.array, vars(manifest.pass_fields)
    names = names_of(array)
    check_equal("pass_words", manifest.pass_words, words_of(array))
    fields = {name: word for name, word in fields.items() if word is not None}
    right = {name: names.index(name) for name in vars(manifest.pass_fields) if name in names}
    for name in {**right, **fields}:
        check_equal(f"pass_fields.{name}", fields.get(name), right.get(name))
    check_equal("word_bytes", manifest.word_bytes, array.word_bytes)
    check_range("word_bytes", manifest.word_bytes, PIXEL_BYTES)
    check_equal("weight_word_bytes", manifest.weight_word_bytes, array.word_bytes * array.weight_words)
    share = array.lanes // 2 if array.dsp_products else array.lanes
    check_that(
        array.columns % share == 0, "columns", array.columns, f"a multiple of {share} (set by the lanes)", "array"
    )
    beat = array.weight_ports * array.weight_words
    whole = array.columns % beat == 0
    check_that(whole, "columns", array.columns, f"a multiple of weight_ports · weight_words, {beat}", "array")
    check_that(array.row_depth % 2 == 0, "row_depth", array.row_depth, "even", "array")


def _check_input(manifest: SystolicManifest) -> None:
    region = manifest.input
    _check_region("input", region, manifest)
    check_equal("pixel_bytes", region.pixel_bytes, PIXEL_BYTES, "input")
    planes = -(-region.channels // region.pixel_bytes)
    check_equal("blocks", region.blocks, planes, "input")
    check_range("row_bytes", region.row_bytes, planes * region.width * region.pixel_bytes, None, "input")
    words = planes * manifest.word_bytes
    check_that(region.row_bytes % words == 0, "row_bytes", region.row_bytes, f"a multiple of {words}", "input")
    check_equal("bytes", region.bytes, region.height * region.row_bytes, "input")


def _check_layers(manifest: SystolicManifest) -> None:
    expected = 0
    nodes = {0}
    for layer in manifest.layers:
        earlier = "the node of the input or of an earlier layer"
        check_that(layer.input_node in nodes, "input_node", layer.input_node, earlier, layer.name)
        last = layer.input_node if layer.last_input_node is None else layer.last_input_node
        check_that(last in nodes, "last_input_node", last, earlier, layer.name)
        _check_added(layer, nodes - {0}, manifest)
        nodes.add(layer.node)
        region = layer.output
        _check_region(layer.name, region, manifest)
        row = region.blocks * region.width * manifest.lanes * region.value_bits // 8
        pitch = row if region.pitch is None else region.pitch
        check_range("pitch", pitch, row, None, layer.name)
        whole = pitch % manifest.word_bytes == 0
        check_that(whole, "pitch", pitch, f"a multiple of word_bytes, {manifest.word_bytes}", layer.name)
        check_equal("bytes", region.bytes, region.height * pitch, layer.name)
        check_range("blocks", region.blocks, -(-region.channels // manifest.lanes), None, layer.name)
        _check_on_chip(layer.name, region, manifest)
        check_equal("first_pass", layer.first_pass, expected, layer.name)
        check_range("last_pass", layer.last_pass, expected, None, layer.name)
        expected = layer.last_pass + 1
    check_equal("passes", manifest.passes, expected)
    regions = (manifest.input, *(layer.output for layer in manifest.layers))
    end = max(region.offset + manifest.batch * region.bytes for region in regions)
    check_equal("maps_bytes", manifest.maps_bytes, end)  # where the last map ends


def _check_added(layer: SystolicLayer, nodes: set[int], manifest: SystolicManifest) -> None:
    node = layer.added_node
    if node is None:
        return
    check_equal("added_maps of an array for a layer with added_node", manifest.array.added_maps, 1, layer.name)
    check_that(node in nodes, "added_node", node, "the node of an earlier layer", layer.name)


def _check_on_chip(name: str, region: SystolicRegion, manifest: SystolicManifest) -> None:
    if region.map_buffer is None:
        check_that(region.turn is None, "turn", region.turn, "absent without a map_buffer", name)
        check_that(region.place is None, "place", region.place, "absent without a map_buffer", name)
        return
    array = manifest.array
    turns = region.turn is not None and region.turn < array.rows
    check_that(turns, "turn", region.turn, f"below {array.rows} in a map_buffer", name)
    row = region.blocks * region.width * manifest.lanes * region.value_bits // 8
    below = (-(-region.height // array.rows) - 1) * region.bytes // region.height
    words = (region.place or 0) + (below + row) // manifest.word_bytes
    if words > array.map_depth:
        raise DoesNotFitError(f"the map of {cut(name)}", "words of a bank (map_depth)", words, array.map_depth)


def _check_region(name: str, region: SystolicRegion, manifest: SystolicManifest) -> None:
    check_tensor(name, region, _DATATYPE, "INT1…INT16 or UINT1…UINT16")
    bits = int(region.datatype.rpartition("T")[2])
    value_bytes = 1 if bits <= 8 else 2
    check_equal("value_bytes", region.value_bytes, value_bytes, name)
    enough = region.value_bits in (4, 8, 16) and region.value_bits >= bits
    check_that(enough, "value_bits", region.value_bits, f"4, 8 or 16 and at least {bits}", name)
    whole = region.value_bits > 4 or manifest.lanes % 2 == 0
    check_that(whole, "lanes", manifest.lanes, "a multiple of 2, because two 4-bit values share a byte", name)
    check_range("blocks", region.blocks, 1, 1 << 16, name)
    check_range("offset", region.offset, 0, None, name)
    check_range("bytes", region.bytes, 1, None, name)
    # The maps of all frames of a batch follow each other.
    check_range("the end of the map", region.offset + manifest.batch * region.bytes, 0, manifest.maps_bytes, name)
    words = region.offset % manifest.word_bytes == 0
    check_that(words, "offset", region.offset, f"a multiple of word_bytes, {manifest.word_bytes}", name)

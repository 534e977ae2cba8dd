"""A layer as numbers: all that its cost and the rules ask of it, on arrays of one width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cnn.quantized import QuantizedNetwork
from cnn.requantise import UP, MultiplyShift
from contract import formulas
from contract.geometry import PIXEL_BYTES, SUM_BITS
from contract.program import PASS_WORDS
from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.array import TABLE_VALUES, Array
from scheduler.systolic.map_buffers import stays_of
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.network.views import spans_of


@dataclass(frozen=True)
class LayerShape:
    """One layer on arrays of certain columns and lanes; numbers alone, so that it is cheap to send to a process.

    out_height, out_width: of the convolution; saved_height, saved_width: after the pool. Both count the frames of a
    batch that lie one under the other.
    blocks, out_blocks: words of one input and of one output position, of the picture its planes. value_words: words of
    a block of results (more than 1 where they are wider than a lane). pixels: input pixels in a word, 1 where the input
    is a map.
    steps: cycles that the array takes for one position, or for so many ``positions`` of a row at once.
    repeats: frames of a batch that are executed one after the other.
    upscale: how often each value is written in a row, and how many rows of it.
    places: of a window, that the array hands through one after the other as positions; 1 for other layers.
    multiplied: whether these are multiplied, and not compared.
    spread: columns that a position of what is read becomes.
    added: whether the Saver adds another map to what leaves. pass_words: of a pass in the program, of 32 bits.
    late_offsets: 1 where its requantisers add after their multiplication, 2 where they round halves to even.
    sum_bits: that any of its sums has at most, whatever the weights.
    table_depth: values of the table in which results are looked up, 0 where they are not. table_slopes: whether these
    are pieces of lines.
    reads, adds: the number of the layer whose map it reads, or the first of several, and of the one whose map it adds;
    −1 for the picture.
    from_chip, to_chip, added_from_chip: whether the map that is read, the one that is written, and the one that is
    added stays in a map buffer. pieces: runs of words in DDR in which a row lies that is not cut.
    kept_blocks: words of a position there, of all maps that lie beside the one that is
    written. turned: rows by which the banks of the map that is read are rotated, less the layer's padding above.
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
    depthwise: bool
    pixels: int
    value_words: int
    steps: int
    macs: int
    positions: int
    sum_bits: int = SUM_BITS
    repeats: int = 1
    upscale: int = 1
    table_depth: int = 0
    table_slopes: bool = False
    places: int = 1
    late_offsets: int = 0
    multiplied: bool = False
    spread: int = 1
    added: bool = False
    pass_words: int = PASS_WORDS
    reads: int = -1
    adds: int = -1
    from_chip: bool = False
    to_chip: bool = False
    added_from_chip: bool = False
    pieces: int = 1
    kept_blocks: int = 0
    turned: int = 0

    @property
    def phases(self) -> int:
        """Rows of a stride that are read."""
        return min(self.stride, self.kernel_height)

    @property
    def column_positions(self) -> float:
        """Positions that the array computes for each column that is saved."""
        return self.places * self.pool_stride / self.upscale

    @property
    def position_steps(self) -> int:
        """Cycles of the array for one position that is read, or for so many ``positions`` at once."""
        return self.places * self.spread * self.steps

    @property
    def ahead(self) -> int:
        """Row strides that the kernel reaches below its first."""
        return (self.kernel_height - 1) // self.stride


def shapes_of(network: QuantizedNetwork, layers: Sequence[Layer], array: Array) -> tuple[LayerShape, ...]:
    """The numbers of all ``layers``, with those of the layers whose maps they read and add."""
    writers = {layer.output: number for number, layer in enumerate(layers)}
    stays = stays_of(network, layers)

    def shape(number: int, layer: Layer) -> LayerShape:
        reads, added = writers.get(layer.spans[0].node, -1), layer.added
        return replace(
            shape_of(network, layer, array),
            reads=reads,
            adds=writers.get(spans_of(network, added.other_node)[0].node, -1) if added else -1,
            kept_blocks=sum(blocks(network.nodes[node].shape.channels, array) for node in layer.strip),
            turned=stays[reads].turn - layer.padding.top if reads >= 0 else 0,
        )

    return tuple(shape(number, layer) for number, layer in enumerate(layers))


def shape_of(network: QuantizedNetwork, layer: Layer, array: Array) -> LayerShape:
    """The numbers of ``layer`` on arrays with the columns and lanes of ``array``."""
    read = network.nodes[layer.input].shape
    result = network.nodes[layer.output].type.datatype
    return LayerShape(
        name=layer.name,
        filters=int(layer.weights.shape[0]),
        in_channels=read.channels * layer.joined,
        in_height=read_height(network, layer),
        in_width=layer.read_width(read.width),
        blocks=read_blocks(layer, array),
        out_blocks=blocks(int(layer.weights.shape[0]), array),
        kernel_height=layer.kernel[0],
        kernel_width=layer.kernel[1],
        stride=max(1, layer.stride),
        pad_top=layer.padding.top,
        out_height=layer.out.height,
        out_width=layer.out.width,
        saved_height=layer.saved.height,
        saved_width=layer.saved.width,
        pool_size=layer.pool_size,
        pool_stride=layer.pool_stride,
        depthwise=on_own_blocks(layer, array),
        pixels=array.word_pixels if layer.reads_pixels else 1,
        value_words=1 if result.bits <= array.bits else array.result_words,
        steps=_steps(layer, array),
        macs=layer.macs,
        positions=_positions(layer, array),
        sum_bits=_sum_bits(layer, array),
        repeats=layer.repeats,
        upscale=layer.upscale,
        table_depth=0 if layer.table is None else max(TABLE_VALUES, len(layer.table.values), array.table_depth),
        table_slopes=layer.table is not None and layer.table.slopes is not None,
        places=layer.places,
        late_offsets=_late_offsets(layer),
        multiplied=layer.multiplied,
        spread=layer.spread,
        added=layer.added is not None,
        pass_words=layer.pass_words,
        pieces=layer.joined if layer.row_step else 1,
    )


def _late_offsets(layer: Layer) -> int:
    """Return the ``late_offsets`` that an array needs for the layer."""
    added = UP if layer.added is None else layer.added.halves
    if layer.requantiser.halves != UP or added != UP:
        return 2
    return int(isinstance(layer.requantiser, MultiplyShift))


def _steps(layer: Layer, array: Array) -> int:
    """Kernel rows × groups of kernel columns × channel blocks; of a window whose places are handed through
    its blocks alone."""
    height, width = layer.kernel
    if layer.places > 1 or layer.spread > 1:
        return step_blocks(layer, array) // layer.spread
    if layer.reads_pixels:
        return height * ceil_div(width, array.step_pixels) * step_blocks(layer, array)
    return height * width * step_blocks(layer, array)


def _sum_bits(layer: Layer, array: Array) -> int:
    """Of −2^(bits − 1) · −2^(bits − 1) in every lane of every step; at 4 bits a pixel's high nibbles count 16 times. At
    most SUM_BITS, which the weights of every quantised network keep within."""
    products = _steps(layer, array) * array.lanes << 2 * (array.bits - 1)
    if layer.reads_pixels and array.bits == 4:
        products = products // 2 * (1 + 16)
    return min(SUM_BITS, 1 + max(2 * array.bits, products.bit_length()))


def _positions(layer: Layer, array: Array) -> int:
    """Columns of the output that are computed together. Two share DSPs at 4 bits, where their inputs are neighbours: a
    bank of the row buffer gives two neighbouring words a cycle. Windows are compared one after the other,
    and columns of a position computed so."""
    return array.packing.positions if layer.stride == 1 and layer.places == layer.spread == 1 else 1


def blocks(channels: int, array: Array) -> int:
    """Words that hold the channels of one position."""
    return ceil_div(channels, array.lanes)


def read_height(network: QuantizedNetwork, layer: Layer) -> int:
    """Rows that a layer reads: of all frames that lie under each other, and of all maps that it adds; of one that is
    read for every row of the result, as often as that."""
    if layer.part is not None:
        return layer.part.reads.count
    if not layer.stride:
        return layer.out.height
    return network.nodes[layer.input].shape.height * layer.summed // layer.joined * layer.stacked


def read_blocks(layer: Layer, array: Array) -> int:
    """Words of one position of the rows that a layer reads; of the picture its planes."""
    lanes = PIXEL_BYTES if layer.reads_pixels else array.lanes
    return layer.joined * sum(span.blocks(lanes) for span in layer.spans) // layer.summed


def on_own_blocks(layer: Layer, array: Array) -> bool:
    """Whether a channel tile reads the channel blocks of its own number alone: the groups of a depthwise layer end
    where channel tiles do, and channel tiles where blocks do."""
    whole_blocks = array.columns % array.lanes == 0
    return layer.depthwise and whole_blocks and array.columns % layer.weights.shape[1] == 0


def step_blocks(layer: Layer, array: Array) -> int:
    """Of these, the words that a channel tile computes with: its own channels' where it finds whole groups in them."""
    return array.tile_blocks if on_own_blocks(layer, array) else read_blocks(layer, array)


def with_maps_on_chip(shapes: Sequence[LayerShape], on_chip: Sequence[bool]) -> tuple[LayerShape, ...]:
    """The same layers, of which these leave their maps on chip, where others find them."""
    return tuple(
        replace(
            shape,
            from_chip=shape.reads >= 0 and on_chip[shape.reads],
            to_chip=to_chip,
            added_from_chip=shape.adds >= 0 and on_chip[shape.adds],
        )
        for shape, to_chip in zip(shapes, on_chip, strict=True)
    )


def moved_together(shape: LayerShape, rows: int) -> int:
    """Return the row strides of a layer that move from a map buffer in a cycle, on an array of ``rows``."""
    return formulas.moved_together(shape.stride, rows)


def adds_from_ddr(shape: LayerShape) -> bool:
    """Whether the Saver reads a map from DDR."""
    return shape.added and not shape.added_from_chip


def spared_words(shapes: Sequence[LayerShape]) -> tuple[int, ...]:
    """Words of each layer's map, so often as DDR moves it where it does not stay on chip; of maps that are read
    together the first counts for all."""
    words = [shape.saved_height * shape.saved_width * shape.out_blocks for shape in shapes]
    moved = list(words)
    for shape, own_words in zip(shapes, words, strict=True):
        if shape.reads >= 0:
            moved[shape.reads] += shape.in_height * shape.in_width * shape.blocks
        if shape.adds >= 0:
            moved[shape.adds] += own_words
    return tuple(moved)


def steps_after(shapes: Sequence[LayerShape], index: int) -> int:
    """Steps of the layer after ``index``, whose first weight tile arrives during this one; 0 after the last."""
    return shapes[index + 1].steps if index + 1 < len(shapes) else 0


def saved_rows(shape: LayerShape, rows: int, tile: int) -> int:
    """saver/pool.h, rows_of_tile: rows that leave row tile ``tile`` of an array of ``rows``. Where a pool window
    reaches into the next tile, its upper row waits and leaves with that tile."""
    computed, last = min(rows, shape.out_height - tile * rows), (tile + 1) * rows >= shape.out_height
    if shape.pool_size == 1:
        return computed * shape.upscale
    if shape.pool_stride == 1:
        return computed + (tile > 0) - (not last)
    waiting = tile * rows % 2
    return (waiting + computed + last) // 2


def alike_rows(shape: LayerShape, rows: int) -> int:
    """Row tiles in which as much leaves as in the next ones: a row more every second time where a window straddles."""
    return 2 if shape.pool_size == 2 and rows % 2 == 1 else 1


def rows_by_port(shape: LayerShape, rows: int, tiles: int, ports: int) -> list[int]:
    """loader/read.h, row_exists: of each port, the map rows among the row strides that the first ``tiles`` row tiles
    read. Row strides go round the ports; those above and below the map are padding and are not read."""
    strides = tiles * rows + shape.ahead
    rows_of = [0] * ports
    for phase in range(shape.phases):
        low = max(0, ceil_div(shape.pad_top - phase, shape.stride))
        high = max(low, min(strides, ceil_div(shape.pad_top + shape.in_height - phase, shape.stride)))
        for port in range(ports):
            rows_of[port] += ceil_div(high - port, ports) - ceil_div(low - port, ports)
    return rows_of


def rows_in(shape: LayerShape, rows: int, tiles: int) -> int:
    """Map rows that the first ``tiles`` row tiles read."""
    return sum(rows_by_port(shape, rows, tiles, 1))

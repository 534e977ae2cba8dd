"""The numbers of a layer that its cost and the rules of a schedule depend on, and functions of these numbers."""

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
    """The sizes of one layer that its cost and rules depend on, for arrays with certain numbers of columns and lanes.

    It holds no weights, so that it is cheap to send to a worker process. Heights count the rows of all frames of a
    batch whose maps are computed as one map. A *block* is the channels of one position that fit into a word.

    Attributes:
        name: The layer's name.
        filters: Output channels of the convolution.
        in_channels: Channels of the input map, times the input rows that are read as one row.
        in_height: Rows that the layer reads (``read_height``).
        in_width: Columns that the layer reads.
        blocks: Words of one input position. For the input image, the number of its planes.
        out_blocks: Words of one output position, if values are not wider than a lane.
        kernel_height: Rows of the kernel.
        kernel_width: Columns of the kernel.
        stride: Input rows from a window to the next one.
        pad_top: Rows of padding above the map.
        out_height: Output rows of the convolution, before the pool or the upsample.
        out_width: Output columns of the convolution, before the pool or the upsample.
        saved_height: Output rows after the pool or the upsample.
        saved_width: Output columns after the pool or the upsample.
        pool_size: Rows and columns of the fused max pool's window. 1 without a pool.
        pool_stride: Stride of the fused max pool. 1 without a pool.
        depthwise: Whether channel tile n reads only the channel blocks of its own channels.
        pixels: Input pixels per word if the layer reads the input image. Else 1.
        value_words: Words of a block of results. More than 1 if values are wider than a lane.
        steps: Cycles of the array for one position, or for the ``positions`` that are computed together.
        macs: Multiply-accumulates in all frames of a batch.
        positions: Neighbouring output columns that are computed together.
        sum_bits: Bits that a sum of the layer needs at most, for any weights.
        repeats: Frames of a batch that are executed one after the other.
        upscale: Times that each value is written in a row, and times that each row is written.
        table_depth: Values of the activation table. 0 without a table.
        table_slopes: Whether the table is piecewise linear.
        separate_taps: Places of a window that the array passes on as positions. 1 for other layers.
        late_offsets: 1 if the requantisers add an offset after their multiplication. 2 if requantisers or residual
            adds round halves to even. Else 0.
        multiplied: Whether the places of a window are multiplied, and not compared.
        spread: Output columns that are computed from one position that is read.
        added: Whether the Saver adds a residual map to the results.
        pass_words: Words of 32 bits of each of the layer's passes in the program.
        reads: The number of the layer that writes the map that is read, or the first of several. −1 for the image.
        adds: The number of the layer that writes the residual map, or the first of several. −1 for the image,
            or without one.
        from_chip: Whether the map that is read is in a map buffer.
        to_chip: Whether the map that is written stays in a map buffer.
        added_from_chip: Whether the residual map is in a map buffer.
        pieces: Runs of consecutive words in DDR that make up a row that is not cut into column tiles.
        kept_blocks: Words of one position of all maps that are stored side by side with the written one, itself
            included.
        turned: Banks by which the rows of the input map are rotated in a map buffer, minus ``pad_top``.
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
    separate_taps: int = 1
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
        """The number of rows that the kernel reads of each row stride (a group of ``stride`` input rows)."""
        return min(self.stride, self.kernel_height)

    @property
    def column_positions(self) -> float:
        """Positions (pixels before the pool) that the array computes per output column."""
        return self.separate_taps * self.pool_stride / self.upscale

    @property
    def position_steps(self) -> int:
        """Array cycles for one input position, or for the ``positions`` that are computed together."""
        return self.separate_taps * self.spread * self.steps

    @property
    def ahead(self) -> int:
        """The number of row strides (groups of ``stride`` input rows) that a kernel reads below the first one of its
        window."""
        return (self.kernel_height - 1) // self.stride


def shapes_of(network: QuantizedNetwork, layers: Sequence[Layer], array: Array) -> tuple[LayerShape, ...]:
    """Return the sizes of all ``layers``, with the indices of the layers whose maps each of them reads and adds."""
    writers = {layer.output: number for number, layer in enumerate(layers)}
    stays = stays_of(network, layers)

    def shape(number: int, layer: Layer) -> LayerShape:
        reads, added = writers.get(layer.spans[0].node, -1), layer.added
        return replace(
            shape_of(network, layer, array),
            reads=reads,
            adds=writers.get(spans_of(network, added.other_node)[0].node, -1) if added else -1,
            kept_blocks=sum(blocks(network.nodes[node].shape.channels, array) for node in layer.strip),
            turned=stays[reads].bank_rotation - layer.padding.top if reads >= 0 else 0,
        )

    return tuple(shape(number, layer) for number, layer in enumerate(layers))


def shape_of(network: QuantizedNetwork, layer: Layer, array: Array) -> LayerShape:
    """Return the sizes of ``layer`` on arrays with the columns and lanes of ``array``, without facts about other
    layers.

    The fields that depend on other layers have their defaults. ``shapes_of`` sets them.
    """
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
        separate_taps=layer.separate_taps,
        late_offsets=_late_offsets(layer),
        multiplied=layer.multiplied,
        spread=layer.spread,
        added=layer.added is not None,
        pass_words=layer.pass_words,
        pieces=layer.joined if layer.row_step else 1,
    )


def _late_offsets(layer: Layer) -> int:
    """Return the value of ``late_offsets`` (offset after multiplication, rounding) that an array needs for the
    layer."""
    added = UP if layer.added is None else layer.added.halves
    if layer.requantiser.halves != UP or added != UP:
        return 2
    return int(isinstance(layer.requantiser, MultiplyShift))


def _steps(layer: Layer, array: Array) -> int:
    """Return the array cycles for one output pixel: kernel rows × groups of kernel columns × channel blocks.

    If the array passes on the places of a window, or spreads a position, only the channel blocks count.
    """
    height, width = layer.kernel
    if layer.separate_taps > 1 or layer.spread > 1:
        return step_blocks(layer, array) // layer.spread
    if layer.reads_pixels:
        return height * ceil_div(width, array.step_pixels) * step_blocks(layer, array)
    return height * width * step_blocks(layer, array)


def _sum_bits(layer: Layer, array: Array) -> int:
    """Return the accumulator bits for the layer's largest possible sum: −2^(bits − 1) · −2^(bits − 1) in every lane of
    every step.

    At 4 bits the products of a pixel's high nibbles count 16 times. The result is limited to SUM_BITS, because the
    sums of every quantised network fit into SUM_BITS.
    """
    products = _steps(layer, array) * array.lanes << 2 * (array.bits - 1)
    if layer.reads_pixels and array.bits == 4:
        products = products // 2 * (1 + 16)
    return min(SUM_BITS, 1 + max(2 * array.bits, products.bit_length()))


def _positions(layer: Layer, array: Array) -> int:
    """Return the number of neighbouring output columns that the array computes together, which is 2 if they share DSPs.

    At 4 bits two of them share DSPs. Their inputs must be neighbours, because a bank of the row buffer outputs two
    neighbouring words per cycle. The places of a window, and the columns of a spread position, are computed one after
    the other.
    """
    return array.packing.positions if layer.stride == 1 and layer.separate_taps == layer.spread == 1 else 1


def blocks(channels: int, array: Array) -> int:
    """Return the number of words of ``lanes`` values that hold the channels of one pixel."""
    return ceil_div(channels, array.lanes)


def read_height(network: QuantizedNetwork, layer: Layer) -> int:
    """Return the number of input rows that a layer reads, including all maps and frames that it reads as one.

    They are the rows of all frames that are computed as one map, and of all maps that are read in turn. If the layer
    reads a single value of each channel for every output row (stride 0), it counts as one row per output row. If
    several layers write one map, only the rows of this layer's part count.
    """
    if layer.part is not None:
        return layer.part.reads.count
    if not layer.stride:
        return layer.out.height
    return network.nodes[layer.input].shape.height * layer.summed // layer.joined * layer.stacked


def read_blocks(layer: Layer, array: Array) -> int:
    """Return the number of words per input pixel that a layer reads. For the input image, its planes."""
    lanes = PIXEL_BYTES if layer.reads_pixels else array.lanes
    return layer.joined * sum(span.blocks(lanes) for span in layer.spans) // layer.summed


def on_own_blocks(layer: Layer, array: Array) -> bool:
    """Return whether channel tile n of a depthwise layer reads only the channel blocks (words) of its own channels.

    This requires that a channel tile consists of whole groups and of whole blocks.
    """
    whole_blocks = array.columns % array.lanes == 0
    return layer.depthwise and whole_blocks and array.columns % layer.weights.shape[1] == 0


def step_blocks(layer: Layer, array: Array) -> int:
    """Return the number of words per input pixel from which one channel tile computes."""
    return array.tile_blocks if on_own_blocks(layer, array) else read_blocks(layer, array)


def with_maps_on_chip(shapes: Sequence[LayerShape], on_chip: Sequence[bool]) -> tuple[LayerShape, ...]:
    """Return the layers with ``from_chip``, ``to_chip`` and ``added_from_chip`` set from the choice of maps on chip.

    Args:
        shapes: The layers.
        on_chip: Whether the map that a layer writes stays on chip, per layer.
    """
    return tuple(
        replace(
            shape,
            from_chip=shape.reads >= 0 and on_chip[shape.reads],
            to_chip=to_chip,
            added_from_chip=shape.adds >= 0 and on_chip[shape.adds],
        )
        for shape, to_chip in zip(shapes, on_chip, strict=True)
    )


def row_strides_per_cycle(shape: LayerShape, rows: int) -> int:
    """Return how many row strides (groups of ``stride`` input rows) are read from a map buffer per cycle, on an array
    of ``rows``."""
    return formulas.row_strides_per_cycle(shape.stride, rows)


def adds_from_ddr(shape: LayerShape) -> bool:
    """Return whether the layer's residual add reads the other map from DDR."""
    return shape.added and not shape.added_from_chip


def avoided_ddr_words(shapes: Sequence[LayerShape]) -> tuple[int, ...]:
    """Return, per layer, the words of DDR traffic that are saved if the layer's output map stays on chip.

    A map in DDR is written once, and read by each reader. If several maps are read together, the reads count for the
    first one.
    """
    words = [shape.saved_height * shape.saved_width * shape.out_blocks for shape in shapes]
    moved = list(words)
    for shape, own_words in zip(shapes, words, strict=True):
        if shape.reads >= 0:
            moved[shape.reads] += shape.in_height * shape.in_width * shape.blocks
        if shape.adds >= 0:
            moved[shape.adds] += own_words
    return tuple(moved)


def steps_after(shapes: Sequence[LayerShape], index: int) -> int:
    """Return the array steps of the next layer's first weight tile, which is loaded during layer ``index``; 0 after the
    last layer.

    The next layer's first weight tile is loaded while layer ``index`` is computed.
    """
    return shapes[index + 1].steps if index + 1 < len(shapes) else 0


def saved_rows(shape: LayerShape, rows: int, tile: int) -> int:
    """Return the number of output rows that row tile ``tile`` writes on an array of ``rows`` rows, as rows_of_tile in
    saver/pool.h.

    If a pool window extends into the next tile, its upper row is stored, and its output row counts for the next tile.
    """
    computed, last = min(rows, shape.out_height - tile * rows), (tile + 1) * rows >= shape.out_height
    if shape.pool_size == 1:
        return computed * shape.upscale
    if shape.pool_stride == 1:
        return computed + (tile > 0) - (not last)
    waiting = tile * rows % 2
    return (waiting + computed + last) // 2


def alike_rows(shape: LayerShape, rows: int) -> int:
    """Return after how many row tiles the number of output rows per tile repeats, which is 1 or 2.

    With a 2 × 2 pool and an odd number of rows, every second tile has a row more.
    """
    return 2 if shape.pool_size == 2 and rows % 2 == 1 else 1


def rows_by_port(shape: LayerShape, rows: int, tiles: int, ports: int) -> list[int]:
    """Return how many map rows each port reads for the first ``tiles`` row tiles, as row_exists in loader/read.h.

    Row strides are assigned to the ports in turn. Rows above and below the map are padding and are not read.
    """
    strides = tiles * rows + shape.ahead
    rows_of = [0] * ports
    for phase in range(shape.phases):
        low = max(0, ceil_div(shape.pad_top - phase, shape.stride))
        high = max(low, min(strides, ceil_div(shape.pad_top + shape.in_height - phase, shape.stride)))
        for port in range(ports):
            rows_of[port] += ceil_div(high - port, ports) - ceil_div(low - port, ports)
    return rows_of


def rows_in(shape: LayerShape, rows: int, tiles: int) -> int:
    """Return the number of input map rows that the first ``tiles`` row tiles read, each row counted once."""
    return sum(rows_by_port(shape, rows, tiles, 1))

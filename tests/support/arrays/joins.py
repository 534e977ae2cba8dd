"""Joins, upsamples and functions of one value: the networks and arrays on which they are executed."""

from __future__ import annotations

from dataclasses import replace

from cnn.datatype import DataType, TensorType
from cnn.maps import Padding
from cnn.quantisation.calibration import choose_ranges, observe
from cnn.quantisation.quantise import quantise_format
from cnn.quantisation.zero_points import MOST_BITS, quantise_with_zero_points
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.array import Array
from scheduler.systolic.network.copies import with_copies
from tests.support import networks
from tests.support.quantised import Builder, with_zero_points

SMALL = Array(
    5,
    8,
    8,
    row_depth=1024,
    weight_depth=512,
    kept_depth=512,
    chunk=8,
    channel_tiles=16,
    upscale=2,
    table_depth=256,
    table_slopes=True,
    windows=True,
    late_offsets=2,
    map_products=True,
)


ARRAYS = {
    "8 bits": SMALL,
    "4 bits": replace(SMALL, columns=16, bits=4, weight_words=4, save_rows=4, map_ports=1),
    "16 bits": replace(SMALL, lanes=4, bits=16, save_rows=1, chunk=6),
    "map buffers": replace(SMALL, rows=4, columns=16, map_depth=512, map_ports=4),
}


def neck(bits: int = 8) -> QuantizedNetwork:
    """yolov3-tiny's and yolov4-tiny's joins, of channels that fill no blocks: a map of several readers, an upsample, a
    slice in the middle of a block, a concat of maps that lie in the other order."""
    build = Builder(3, 13, 9, seed=7, bits=bits).conv(12, 3).pool(1).pool().conv(20, 3)
    build.part(6, 9).conv(10, 1).conv(6, 3).concat(6, 7).conv(14, 1).concat(4, 9).conv(13, 1).conv(11, 1).upsample()
    return build.conv(5, 3, wide=True).network()


def residual(bits: int = 8) -> QuantizedNetwork:
    """ResNet's joins: an addition behind a pool, one of three maps, one behind an addition."""
    top = 7 if bits == 4 else 100
    build = Builder(3, 11, 9, seed=8, bits=bits).conv(12, 3).pool().conv(12, 3).conv(12, 3)
    build.add(4, 2, multipliers=(top, top - 3)).conv(12, 1).conv(12, 3).add(7, 6, 5).pool().conv(5, 3, wide=True)
    return build.network()


def weighed(bits: int = 8) -> QuantizedNetwork:
    """Additions whose multipliers are more than one weight, of maps of one column and two rows too."""
    wide, three = ((7, 3), (7, 2, 1)) if bits == 4 else ((300, 17), (1000, 129, 1))
    build = Builder(3, 10, 5, seed=9, bits=bits).conv(12, 3).pool().conv(12, 3).conv(12, 3)
    build.add(4, 2, multipliers=wide).conv(12, 1).conv(12, 3).add(7, 6, 5, multipliers=three).pool()
    return build.conv(12, 1).add(9, 10, multipliers=wide).conv(5, 1, wide=True).network()


def curved(bits: int = 8) -> QuantizedNetwork:
    """Tables: behind a convolution and a pool on their own, behind an addition, before an upsample, twice in a row."""
    build = Builder(3, 11, 9, seed=9, bits=bits).conv(12, 3).curve().pool().conv(12, 3).curve(rising=True)
    build.pool(1).curve().conv(12, 1).add(8, 7).curve().upsample().curve().curve()
    return build.conv(5, 3, wide=True).network()


def in_pieces(bits: int = 8) -> QuantizedNetwork:
    """Tables of pieces of lines, of inputs of 9 to 16 bits, with a sign and without, and exact ones of 8 and of 4 bits
    on the same engine; before a pool that is fused, one that is not, and an upsample; in lanes of 16 bits of a map that
    others read too."""
    build = Builder(3, 10, 9, seed=19, bits=bits).conv(12, 3).to(12).curve().conv(9, 3).to(16).curve(rising=True).pool()
    build.conv(13, 3).to(9, signed=False).curve().pool(1).conv(8, 1).to(8).curve().conv(8, 3).to(15, signed=False)
    build.curve().upsample().conv(10, 1).to(4).curve()
    if bits == 16:
        before = build.conv(12, 1).to(13).last
        build.curve().at(before).conv(12, 1).add(before + 1, before + 2)
    return build.conv(5, 3, wide=True).network()


def pooled(bits: int = 8) -> QuantizedNetwork:
    """Windows: a stem's, those of a spatial pyramid, of a slice in the middle of a block and of a concat, before an
    upsample, one without padding, one that is padded left alone, one whose places are all of a map."""
    build = Builder(3, 14, 11, seed=10, bits=bits).conv(20, 3).window(3, 2, Padding(1, 1, 1, 1)).conv(12, 1)
    build.at(3).window(5).at(3).window(9).at(3).window(13).concat(6, 5, 4, 3).conv(21, 1)
    build.part(5, 9).window(2, 1, Padding(0, 1, 1, 0)).upsample().concat(8, 3).window(3, 1, Padding())
    build.window(2, 3, Padding())
    build.curve().at(8).window(6, 6, Padding()).at(1)
    return build.window(4, 4).conv(5, 3, wide=True).network()


def scattered(bits: int = 8) -> QuantizedNetwork:
    """Joins that contradict each other, mended by copies: YOLOv8's block of slices, of which one is added to and
    all are joined again; maps in two concats in another order; a map added to itself; a concat of a part."""
    build = Builder(3, 9, 7, seed=11, bits=bits).conv(24, 3).part(0, 12).at(1).part(12, 12).conv(12, 3)
    build.add(4, 3).conv(12, 1).add(6, 5).concat(2, 3, 5, 7).conv(9, 1).conv(7, 3)
    build.concat(9, 10).conv(5, 1).concat(10, 9, 8).part(2, 19).conv(6, 1).add(15, 15)
    build.conv(8, 1).concat(17, 11, 2).conv(4, 3, wide=True)
    return with_copies(build.network())


def grouped(bits: int = 8) -> QuantizedNetwork:
    """Groups of the picture's channels, of 4, of 8 and of 16 (more than some arrays have columns), of 3, with fewer
    filters than channels, of a slice in the middle of a block; space to depth of a map and of a concat."""
    build = Builder(3, 12, 8, seed=12, bits=bits).conv(6, 3, groups=3).conv(24, 3).conv(24, 3, groups=6, stride=2)
    build.conv(32, 1).conv(32, 3, groups=4).conv(32, 3, groups=2).conv(24, 1).conv(24, 3, groups=8)
    build.conv(16, 1, groups=8).part(3, 8).conv(8, 3, groups=2).reorg().concat(9, 11).reorg().concat(12, 14)
    return build.conv(9, 1).conv(5, 3, wide=True).network()


def reorganised(bits: int = 8) -> QuantizedNetwork:
    """Space to depth in darknet's order: of an even number of rows and of odd ones, of so many channels that halves of
    the result are whole blocks, of a slice in the middle of a block; beside each other, and with a pool behind."""
    build = Builder(3, 20, 12, seed=14, bits=bits).conv(32, 3).reorg(order="darknet").conv(12, 1).part(4, 4)
    build.reorg(order="darknet").at(3).reorg(order="darknet").concat(5, 6).pool(1).at(3).conv(32, 3)
    build.reorg(order="darknet").concat(7, 8).conv(6, 1).at(10).pool()
    return build.conv(5, 3, wide=True).network()


def multiplied(bits: int = 8) -> QuantizedNetwork:
    """Products of maps: one behind the other, of a value a channel with all of its map (squeeze and excite), of a map
    with itself and of a slice, which are copied, before a table, a pool and requantisers that add behind theirs; an
    upsample by 4. No map is square."""
    build = Builder(3, 14, 18, seed=15, bits=bits).conv(12, 3, stride=2).conv(12, 3).multiply(1, 2).conv(20, 1)
    build.average().conv(20, 1).upsample(7, 9).multiply(4, 7).concat(8, 3).conv(16, 3).multiply(10, 10).pool()
    build.at(11).part(4, 9).conv(9, 1).multiply(13, 14).late(falling=False).pool(1)
    build = build.curve().conv(9, 1).upsample(4)
    return with_copies(build.conv(5, 3, wide=True).network())


def spread(bits: int = 8) -> QuantizedNetwork:
    """Depth to space: of whole blocks, which are read where they lie, and of others, which are copied; of a slice, of a
    concat, of two readers, by rows or columns alone, twice in a row, before a pool, at the end."""
    build = Builder(3, 7, 5, seed=17, bits=bits).conv(128, 1).depth(2, 1).at(1).depth(1, 2).conv(24, 3).part(3, 12)
    build.depth(3, 1).at(4).depth().conv(6, 3).concat(7, 8).part(2, 8).depth(1, 4).pool().at(4).conv(16, 3)
    build.depth().depth().conv(5, 1).at(2).pool(1).conv(12, 1)
    return with_copies(build.depth().network())


def many_channels(bits: int = 8) -> QuantizedNetwork:
    """A picture of 13 channels, four planes: a kernel whose columns are no whole steps, groups, a stride, a join behind
    two readers of the picture."""
    build = Builder(13, 11, 23, seed=16, bits=bits).conv(12, 3).at(0).conv(13, 5, groups=13).at(0).conv(9, 3, stride=2)
    build.concat(1, 2).conv(8, 3, stride=2).concat(3, 5)
    return build.conv(5, 3, wide=True).network()


def offset(bits: int = 8) -> QuantizedNetwork:
    """Zero points: convolutions of the picture, on all channels, of groups and depthwise whose padding is no 0."""
    return with_zero_points(grouped(bits), 5 - (1 << (bits - 1)), 0xC5)


def late(bits: int = 8) -> QuantizedNetwork:
    """Requantisers that add behind their multiplication, of the picture and of maps: rising ones before a pool that is
    fused, falling ones before a pool that is not, of an addition and of a depthwise convolution; unsigned results."""
    build = Builder(3, 9, 8, seed=13, bits=bits)
    build.type = TensorType(DataType(bits - 1, False), 1.0)
    build.conv(12, 3).late().conv(12, 3).late(falling=False).pool()
    build.conv(14, 3).late().pool(1).conv(0, 3, depthwise=True).late().add(6, 5).late()
    return build.conv(5, 3, wide=True).network()


def moved(bits: int = 8) -> QuantizedNetwork:
    """Zero points that calibration gives, behind tables and as the end of the integers: of a map that is sliced, added
    to, moved, upsampled and joined."""
    network = networks.branches()
    statistics = observe(network, networks.pictures(network.input_shape))
    if bits > MOST_BITS:
        ranges = choose_ranges(statistics)
        return with_copies(quantise_format(network, ranges, bits))
    return with_copies(quantise_with_zero_points(network, statistics, "mse", bits))


def rectangular(bits: int = 8) -> QuantizedNetwork:
    """Max pools of more rows than columns, and of one row, of a concat too; upsamples by 3, along one side alone, and
    by 2 rows and 3 columns of a map that others read."""
    build = Builder(3, 11, 8, seed=18, bits=bits).conv(12, 3).window(3, 1, Padding(1, 0, 2, 1), 2)
    build.window(1, 2, Padding(0, 2, 0, 1), 4).conv(9, 1).upsample(3, 1).at(4).upsample(3, 1).concat(5, 6)
    build.window(4, 3, Padding(), 1).conv(6, 1).at(4).upsample(2, 3).part(2, 5)
    return with_copies(build.conv(5, 3, wide=True).network())


def every_layer() -> QuantizedNetwork:
    """Return a small network with every kind of layer that the array computes."""
    build = Builder(3, 12, 12, seed=20).conv(16, 3).pool().conv(16, 3).late().conv(0, 3, depthwise=True).add(4, 3)
    build.part(0, 8).at(5).part(8, 8).curve().concat(8, 6).reorg().conv(32, 3, groups=4).depth().concat(12, 2)
    build.window(3).conv(16, 1).average().conv(16, 1).upsample(6).multiply(15, 18).upsample().conv(8, 3, stride=2)
    return with_copies(build.dense(10).network("every_layer"))


NETWORKS = {
    "moved": moved,
    "rectangular": rectangular,
    "many_channels": many_channels,
    "spread": spread,
    "multiplied": multiplied,
    "reorganised": reorganised,
    "offset": offset,
    "late": late,
    "grouped": grouped,
    "scattered": scattered,
    "pooled": pooled,
    "neck": neck,
    "residual": residual,
    "weighed": weighed,
    "curved": curved,
    "in_pieces": in_pieces,
}

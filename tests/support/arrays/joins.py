"""Networks of joins, upsamples and functions of one value, and the arrays that execute them."""

from __future__ import annotations

from dataclasses import replace

from cnn.datatype import DataType, TensorType
from cnn.maps import Padding
from cnn.quantisation.calibration import choose_ranges, observe
from cnn.quantisation.quantise import quantise_format
from cnn.quantisation.zero_points import MAX_BITS, quantise_with_zero_points
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
    """Return a network with the joins of yolov3-tiny and yolov4-tiny.

    No layer's channels fill whole blocks. A map has several readers, a slice begins in the middle of a block, and a
    concat joins maps that are stored in the other order.
    """
    build = Builder(3, 13, 9, seed=7, bits=bits).conv(12, 3).pool(1).pool().conv(20, 3)
    build.part(6, 9).conv(10, 1).conv(6, 3).concat(6, 7).conv(14, 1).concat(4, 9).conv(13, 1).conv(11, 1).upsample()
    return build.conv(5, 3, wide=True).network()


def residual(bits: int = 8) -> QuantizedNetwork:
    """Return a network with the joins of ResNet: additions after a pool, of three maps, and after another addition."""
    top = 7 if bits == 4 else 100
    build = Builder(3, 11, 9, seed=8, bits=bits).conv(12, 3).pool().conv(12, 3).conv(12, 3)
    build.add(4, 2, multipliers=(top, top - 3)).conv(12, 1).conv(12, 3).add(7, 6, 5).pool().conv(5, 3, wide=True)
    return build.network()


def weighed(bits: int = 8) -> QuantizedNetwork:
    """Return a network of additions whose multipliers exceed one weight. Some maps have one column or two rows."""
    wide, three = ((7, 3), (7, 2, 1)) if bits == 4 else ((300, 17), (1000, 129, 1))
    build = Builder(3, 10, 5, seed=9, bits=bits).conv(12, 3).pool().conv(12, 3).conv(12, 3)
    build.add(4, 2, multipliers=wide).conv(12, 1).conv(12, 3).add(7, 6, 5, multipliers=three).pool()
    return build.conv(12, 1).add(9, 10, multipliers=wide).conv(5, 1, wide=True).network()


def curved(bits: int = 8) -> QuantizedNetwork:
    """Return a network of tables: after a convolution, a pool, an addition and a table, and before an upsample."""
    build = Builder(3, 11, 9, seed=9, bits=bits).conv(12, 3).curve().pool().conv(12, 3).curve(rising=True)
    build.pool(1).curve().conv(12, 1).add(8, 7).curve().upsample().curve().curve()
    return build.conv(5, 3, wide=True).network()


def in_pieces(bits: int = 8) -> QuantizedNetwork:
    """Return a network of piecewise-linear tables with inputs of 9 to 16 bits, and of exact tables for 8 and 4 bits.

    The inputs are signed and unsigned. Tables are followed by a fused pool, by a separate pool and by an upsample. With
    16 bits, one table reads a map that has another reader.
    """
    build = Builder(3, 10, 9, seed=19, bits=bits).conv(12, 3).to(12).curve().conv(9, 3).to(16).curve(rising=True).pool()
    build.conv(13, 3).to(9, signed=False).curve().pool(1).conv(8, 1).to(8).curve().conv(8, 3).to(15, signed=False)
    build.curve().upsample().conv(10, 1).to(4).curve()
    if bits == 16:
        before = build.conv(12, 1).to(13).last
        build.curve().at(before).conv(12, 1).add(before + 1, before + 2)
    return build.conv(5, 3, wide=True).network()


def pooled(bits: int = 8) -> QuantizedNetwork:
    """Return a network of max pools with different windows.

    It has a stem's pool and the pools of a spatial pyramid. Other pools read a slice from the middle of a block or a
    concat. One is before an upsample, one has no padding, one has padding on the left only, and one covers the whole
    map.
    """
    build = Builder(3, 14, 11, seed=10, bits=bits).conv(20, 3).window(3, 2, Padding(1, 1, 1, 1)).conv(12, 1)
    build.at(3).window(5).at(3).window(9).at(3).window(13).concat(6, 5, 4, 3).conv(21, 1)
    build.part(5, 9).window(2, 1, Padding(0, 1, 1, 0)).upsample().concat(8, 3).window(3, 1, Padding())
    build.window(2, 3, Padding())
    build.curve().at(8).window(6, 6, Padding()).at(1)
    return build.window(4, 4).conv(5, 3, wide=True).network()


def scattered(bits: int = 8) -> QuantizedNetwork:
    """Return a network whose joins need copies, because they require different places for the same map.

    It has the slices of YOLOv8's block: one is added to, and all are joined again. Maps are in two concats in another
    order, one map is added to itself, and one concat reads a slice.
    """
    build = Builder(3, 9, 7, seed=11, bits=bits).conv(24, 3).part(0, 12).at(1).part(12, 12).conv(12, 3)
    build.add(4, 3).conv(12, 1).add(6, 5).concat(2, 3, 5, 7).conv(9, 1).conv(7, 3)
    build.concat(9, 10).conv(5, 1).concat(10, 9, 8).part(2, 19).conv(6, 1).add(15, 15)
    build.conv(8, 1).concat(17, 11, 2).conv(4, 3, wide=True)
    return with_copies(build.network())


def grouped(bits: int = 8) -> QuantizedNetwork:
    """Return a network of grouped convolutions and of space to depth.

    The groups have 1, 3, 4, 8 or 16 channels, and 16 exceeds the columns of some arrays. One layer has fewer filters
    than channels, and one reads a slice from the middle of a block. Space to depth reads a map and a concat.
    """
    build = Builder(3, 12, 8, seed=12, bits=bits).conv(6, 3, groups=3).conv(24, 3).conv(24, 3, groups=6, stride=2)
    build.conv(32, 1).conv(32, 3, groups=4).conv(32, 3, groups=2).conv(24, 1).conv(24, 3, groups=8)
    build.conv(16, 1, groups=8).part(3, 8).conv(8, 3, groups=2).reorg().concat(9, 11).reorg().concat(12, 14)
    return build.conv(9, 1).conv(5, 3, wide=True).network()


def reorganised(bits: int = 8) -> QuantizedNetwork:
    """Return a network of space to depth in darknet's order.

    The maps have even and odd numbers of rows, and channels for which half of the result is whole blocks. One is a
    slice from the middle of a block. Some layers read the same map, and one is followed by a pool.
    """
    build = Builder(3, 20, 12, seed=14, bits=bits).conv(32, 3).reorg(order="darknet").conv(12, 1).part(4, 4)
    build.reorg(order="darknet").at(3).reorg(order="darknet").concat(5, 6).pool(1).at(3).conv(32, 3)
    build.reorg(order="darknet").concat(7, 8).conv(6, 1).at(10).pool()
    return build.conv(5, 3, wide=True).network()


def multiplied(bits: int = 8) -> QuantizedNetwork:
    """Return a network of products of maps. No map is square.

    A map is multiplied with a previous map, with a value per channel (squeeze and excite), with itself, and with a
    slice, which is copied. Products are before a table, a pool and requantisers with a late bias. One upsample has
    stride 4.
    """
    build = Builder(3, 14, 18, seed=15, bits=bits).conv(12, 3, stride=2).conv(12, 3).multiply(1, 2).conv(20, 1)
    build.average().conv(20, 1).upsample(7, 9).multiply(4, 7).concat(8, 3).conv(16, 3).multiply(10, 10).pool()
    build.at(11).part(4, 9).conv(9, 1).multiply(13, 14).late(falling=False).pool(1)
    build = build.curve().conv(9, 1).upsample(4)
    return with_copies(build.conv(5, 3, wide=True).network())


def spread(bits: int = 8) -> QuantizedNetwork:
    """Return a network of depth to space.

    Whole blocks are read in place, and others are copied. The layers read a slice, a concat and a map with two readers.
    They repeat only rows or only columns, follow each other, are before a pool, and are the last layer.
    """
    build = Builder(3, 7, 5, seed=17, bits=bits).conv(128, 1).depth(2, 1).at(1).depth(1, 2).conv(24, 3).part(3, 12)
    build.depth(3, 1).at(4).depth().conv(6, 3).concat(7, 8).part(2, 8).depth(1, 4).pool().at(4).conv(16, 3)
    build.depth().depth().conv(5, 1).at(2).pool(1).conv(12, 1)
    return with_copies(build.depth().network())


def many_channels(bits: int = 8) -> QuantizedNetwork:
    """Return a network whose image has 13 channels in four planes.

    One kernel's columns do not fill whole steps. The image has three readers, with groups and with a stride, and two of
    their results are joined.
    """
    build = Builder(13, 11, 23, seed=16, bits=bits).conv(12, 3).at(0).conv(13, 5, groups=13).at(0).conv(9, 3, stride=2)
    build.concat(1, 2).conv(8, 3, stride=2).concat(3, 5)
    return build.conv(5, 3, wide=True).network()


def offset(bits: int = 8) -> QuantizedNetwork:
    """Return the grouped network with zero points, so that the padding of its convolutions is not 0."""
    return with_zero_points(grouped(bits), 5 - (1 << (bits - 1)), 0xC5)


def late(bits: int = 8) -> QuantizedNetwork:
    """Return a network of requantisers that add their bias after the multiplication.

    Rising ones are before a fused pool, and falling ones before a separate pool. Others belong to an addition and to a
    depthwise convolution. The results are unsigned.
    """
    build = Builder(3, 9, 8, seed=13, bits=bits)
    build.type = TensorType(DataType(bits - 1, False), 1.0)
    build.conv(12, 3).late().conv(12, 3).late(falling=False).pool()
    build.conv(14, 3).late().pool(1).conv(0, 3, depthwise=True).late().add(6, 5).late()
    return build.conv(5, 3, wide=True).network()


def moved(bits: int = 8) -> QuantizedNetwork:
    """Return a network with calibrated zero points after tables and at the last integer layer.

    Its maps are sliced, added, moved, upsampled and joined.
    """
    network = networks.branches()
    statistics = observe(network, networks.pictures(network.input_shape))
    if bits > MAX_BITS:
        ranges = choose_ranges(statistics)
        return with_copies(quantise_format(network, ranges, bits))
    return with_copies(quantise_with_zero_points(network, statistics, "mse", bits))


def rectangular(bits: int = 8) -> QuantizedNetwork:
    """Return a network of max pools with more rows than columns or with one row, and of upsamples with two factors.

    The upsamples repeat by 3 along one side only, and by 2 rows and 3 columns for a map that has other readers.
    """
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

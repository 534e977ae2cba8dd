"""Turn the sections of a cfg file into nodes with shapes. The weights are zeros that take no memory.

Every shape is checked against the limits before anything of its size is allocated. The table at the end lists the
function for each kind of section; ``heads`` has the sections at the end of a network. A section can become several
nodes, for example a [shortcut] of maps with different shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from boards.errors import InvalidValueError, RangeError, ShapeError, UnsupportedError, listed
from cnn.activations import ACTIVATIONS, LEAKY_SLOPE
from cnn.darknet import fixed, heads
from cnn.darknet.cfg import Section
from cnn.darknet.graph import (
    CHOICES,
    DARKNET_EPSILON,
    DARKNET_FUNCTIONS,
    DarknetLayers,
    bounded,
    fused,
    layer_index,
    require_layer,
)
from cnn.darknet.numbers import file_numbers, holds_bias, stored_weights
from cnn.darknet.strides import Pair, convolved, pooled, strides_of
from cnn.dilation import covered
from cnn.limits import MAX_CHANNELS, MAX_KERNEL, MAX_LAYERS, MAX_MAPS, MAX_SIDE, MAX_WEIGHTS, MAX_WINDOW
from cnn.maps import FloatArray, Padding, Shape
from cnn.network import Network, Node
from cnn.ops import (
    Activate,
    Add,
    AveragePool,
    BatchNorm,
    Concat,
    Convolution,
    Dense,
    Input,
    MaxPool,
    Multiply,
    Op,
    Reorg,
    Slice,
    Stored,
    Upsample,
)

_PLAIN = {"leaky": ("leaky_relu", (LEAKY_SLOPE,)), "relu": ("leaky_relu", (0.0,)), "relu6": ("clip", (0.0, 6.0))}
"""The function that computes the same as each activation except "linear"."""


def unequal_sum(layers: DarknetLayers, section: Section, index: int, activation: str) -> DarknetLayers:
    """Read a [shortcut] of two maps that differ in shape: append layers that add as darknet's shortcut_cpu does.

    Every n-th row and column of a larger map is added. Channels that only the map before has are passed on unchanged;
    channels that only the added map has are ignored. ShapeError is raised if the added map's height and width are not
    the same multiple of the other map's.
    """
    count = len(layers.layers)
    out, summand = layers.shape, layers.nodes[index].shape
    stride = summand.height // out.height
    if stride < 1 or (summand.height, summand.width) != (stride * out.height, stride * out.width):
        required = f"the height and width of {out}, or a multiple of them"
        what, where = "the map that [shortcut] adds", section.source_of("from")
        raise ShapeError(what, f"shape {summand}", required, where=where)
    channels = min(out.channels, summand.channels)
    if stride > 1:
        sampled = MaxPool(1, stride, Padding())
        layers, index = _grown(layers, section, "pool", sampled, replace(out, channels=summand.channels), index)
    if summand.channels > channels:
        layers, index = _grown(layers, section, "slice", Slice(0, channels), replace(out, channels=channels), index)
    base, last = layers.layers[count - 1], layers.layers[count - 1]
    if out.channels > channels:
        shared, rest = replace(out, channels=channels), replace(out, channels=out.channels - channels)
        layers, base = _grown(layers, section, "slice", Slice(0, channels), shared, last)
        layers, passed = _grown(layers, section, "slice", Slice(channels, rest.channels), rest, last)
        layers, added = _grown(layers, section, "add", Add("linear"), shared, base, index)
        layers, end = _grown(layers, section, "route", Concat(), out, added, passed)
        if activation in ACTIVATIONS and activation != "linear":
            function, parameters = _PLAIN[activation]
            layers, end = _grown(layers, section, function, Activate(function, parameters), out, end)
    else:
        fused = activation if activation in ACTIVATIONS else "linear"
        layers, end = _grown(layers, section, "add", Add(fused), out, base, index)
    if activation in DARKNET_FUNCTIONS:
        layers = replace(layers, layers=(*layers.layers[:count], end)).activated(section, activation)
        end = layers.last
    return replace(layers, layers=(*layers.layers[:count], end))


def scaled(layers: DarknetLayers, section: Section) -> DarknetLayers:
    """Read [sam] or [scale_channels]: append the product of two maps, or of a map and one factor per channel.

    ShapeError is raised if the shapes do not fit.
    """
    values = section.integers("from")
    if len(values) != 1:
        what = f"the number of layers that [{section.kind}] multiplies by"
        raise RangeError(what, len(values), 1, 1, where=section.source_of("from"))
    require_layer(layers, section)
    index, count = layer_index(layers, section, "from", values[0]), len(layers.layers)
    activation, out, factor = section.choice("activation", "linear", CHOICES), layers.nodes[index].shape, layers.shape
    each = section.kind == "scale_channels"
    expected = Shape(out.channels, 1, 1) if each else out
    if factor != expected:
        what, where = f"the layer before [{section.kind}], which multiplies it by {out},", section.source_of("from")
        raise ShapeError(what, f"shape {factor}", f"shape {expected}", where=where)
    last = layers.last
    if each and out.height * out.width > 1:
        op = Upsample(out.height, across=out.width if out.width != out.height else 0)
        layers, last = _grown(layers, section, "upsample", op, out, last)
    larger = layers.with_node(section, "multiply", Multiply(fused(activation)), out, last, index)
    return replace(larger, layers=(*larger.layers[:count], larger.last)).activated(section, activation)


def crop(layers: DarknetLayers, section: Section) -> DarknetLayers:
    """Read the cfg section [crop], which must be first: the input image gets the size of the crop.

    Without ``noadjust``, a layer maps pixels from 0…1 to −1…1.

    Raises:
        UnsupportedError: Another layer is before it.
        RangeError: It is larger than the image.
    """
    if layers.layers:
        reason = "it must be the first layer, because the host resizes the image to its size"
        raise UnsupportedError("[crop] after another layer", reason, where=section.source)
    picture = layers.nodes[0].shape
    width, height = (section.integer(f"crop_{key}", None, 1, getattr(picture, key)) for key in ("width", "height"))
    cropped = replace(layers.nodes[0], shape=Shape(picture.channels, height, width))
    layers = replace(layers, nodes=(cropped,))
    if section.integer("noadjust", 0, 0, 1):
        return layers.alias(0)
    return layers.with_node(section, "affine", Activate("affine", (2.0, -1.0)), cropped.shape)


def _grown(
    layers: DarknetLayers, section: Section, stem: str, op: Op, shape: Shape, *inputs: int
) -> tuple[DarknetLayers, int]:
    """Append a node to the network being built; return the network and the node's index."""
    larger = layers.with_node(section, stem, op, shape, *inputs)
    return larger, larger.last


def build_layers(sections: tuple[Section, ...], name: str) -> Network:
    """Return the float network of a cfg file's sections, whose weights, biases and batch norms are all zeros.

    The first layer with an impossible or too large shape raises an error that names its line in the cfg.
    """
    if not 1 < len(sections) <= MAX_LAYERS:
        raise RangeError("the number of layers", len(sections) - 1, 1, MAX_LAYERS - 1, where=sections[-1].source)
    layers = DarknetLayers((_input(sections[0]),))
    values = weights = 0
    for section in sections[1:]:
        before = len(layers.nodes)
        layers = _BUILDERS[section.kind](layers, section)
        values += layers.shape.values
        weights += sum(_weights_of(node) for node in layers.nodes[before:])
        if values > MAX_MAPS:
            raise RangeError("the number of values of all layers", values, high=MAX_MAPS, where=section.source)
        if weights > MAX_WEIGHTS:
            raise RangeError("the number of weights", weights, high=MAX_WEIGHTS, where=section.source)
    return Network(name, layers.nodes)


def parameter_count(node: Node) -> int:
    """Return how many float32 numbers a darknet weights file stores for a node."""
    op = node.op
    if not isinstance(op, (Convolution, Dense)):
        return 0
    stored = stored_weights(op)
    biases = 4 if op.batch_norm is not None else int(holds_bias(op))
    return (0 if stored is None else int(stored.size)) + int(file_numbers(op, op.bias).size) * biases


def _weights_of(node: Node) -> int:
    """Return how many numbers a node has in the weights file or in memory, the greater of the two."""
    op = node.op
    held = int(op.weights.size) if isinstance(op, Convolution) and not op.stored.is_implied else 0
    return max(parameter_count(node), held)


def _input(section: Section) -> Node:
    channels = section.integer("channels", None, 1, MAX_CHANNELS)
    height = section.integer("height", None, 1, MAX_SIDE)
    width = section.integer("width", None, 1, MAX_SIDE)
    return Node("input", Input(), (), bounded(Shape(channels, height, width), section), section.source)


def _zeros(*shape: int) -> FloatArray:
    return np.broadcast_to(np.float32(0), shape)


def _batch_norm(section: Section, filters: int) -> BatchNorm | None:
    if not section.integer("batch_normalize", 0, 0, 1):
        return None
    zeros = _zeros(filters)
    return BatchNorm(zeros, zeros, zeros, DARKNET_EPSILON)


def _slid(
    section: Section, shape: Shape, window: Pair, strides: Pair, padding: tuple[int, int, int]
) -> tuple[Shape, Padding]:
    """Return the output shape of a sliding window, with the input's channels, and the padding that windows really read.

    Args:
        section: The section.
        shape: The shape of the input.
        window: Rows and columns of the window.
        strides: The strides over rows and columns.
        padding: The padding above and below, the padding left and right, and additional padding below and right.
    """
    (rows, columns), (top, side, extra) = window, padding
    sides = [shape.height + 2 * top + extra, shape.width + 2 * side + extra]
    if sides[0] < rows or sides[1] < columns:
        raise InvalidValueError(
            f"the window of [{section.kind}]",
            f"{rows}×{columns}",
            f"at most its padded input, {sides[0]}×{sides[1]}",
            where=section.source_of("size"),
            remedy="make the image larger or the network shallower",
        )
    (down, across), lengths = strides, (sides[0] - rows, sides[1] - columns)
    height, width = lengths[0] // down + 1, lengths[1] // across + 1
    bottom = max(0, (height - 1) * down + rows - top - shape.height)
    right = max(0, (width - 1) * across + columns - side - shape.width)
    return Shape(shape.channels, height, width), Padding(top, side, bottom, right)


def _convolution(layers: DarknetLayers, section: Section) -> DarknetLayers:
    filters = section.integer("filters", 1, 1, MAX_CHANNELS)
    size = section.integer("size", 1, 1, MAX_KERNEL)
    strides = strides_of(section, 1, MAX_SIDE)
    pad = section.integer("pad", 0, 0, 1)
    padding = section.integer("padding", 0, 0, MAX_KERNEL)
    window = (section.integer("size_y", size, 1, MAX_KERNEL), section.integer("size_x", size, 1, MAX_KERNEL))
    step, (upper, outer) = _dilation(section, window, [side // 2 if pad else padding for side in window])
    dilation = (step if window[0] > 1 else 1, step if window[1] > 1 else 1)
    groups = _groups(section, layers.shape.channels, filters)
    shape, sides = _slid(section, layers.shape, covered(window, dilation), strides, (upper, outer, 0))
    weights = _zeros(filters, layers.shape.channels // groups, *window)
    activation = section.choice("activation", "logistic", CHOICES)
    norm, stored = _batch_norm(section, filters), Stored(signs=bool(section.integer("xnor", 0, 0, 1)))
    op = Convolution(weights, _zeros(filters), norm, 1, sides, groups, fused(activation), stored, dilation=dilation)
    layer = len(layers.layers)
    if stored.signs:
        layers = layers.with_node(section, "sign", Activate("sign"), layers.shape)
    larger = convolved(layers, section, op, strides, replace(shape, channels=filters))
    return replace(larger, layers=(*larger.layers[:layer], larger.last)).activated(section, activation)


def _dilation(section: Section, window: tuple[int, int], padding: list[int]) -> tuple[int, tuple[int, int]]:
    """Return a section's dilation, and the padding in rows and columns that the dilated window needs."""
    step = section.integer("dilation", 1, 1, MAX_WINDOW)
    sides = covered(window, (step, step))
    if max(sides) > MAX_WINDOW:
        what = f"a side of the window with dilation={step}"
        raise RangeError(what, max(sides), high=MAX_WINDOW, where=section.source_of("dilation"))
    if step > 1 and any(2 * pad != side - 1 for pad, side in zip(padding, window, strict=True)):
        subject = f"dilation={step} of a window that changes the map's size"
        reason = "a dilation needs an odd window and pad=1"
        raise UnsupportedError(subject, reason, where=section.source_of("dilation"))
    return step, (step * padding[0], step * padding[1])


def _groups(section: Section, channels: int, filters: int) -> int:
    groups = section.integer("groups", 1, 1, MAX_CHANNELS)
    if channels % groups or filters % groups:
        required = f"a divisor of {channels} input channels and of {filters} filters"
        raise InvalidValueError(section.name_of("groups"), groups, required, where=section.source_of("groups"))
    return groups


def _max_pool(layers: DarknetLayers, section: Section) -> DarknetLayers:
    strides = strides_of(section, 1, MAX_KERNEL)
    size = section.integer("size", section.integer("stride", 1, 1, MAX_KERNEL), 1, MAX_KERNEL)
    padding = section.integer("padding", size - 1, 0, 2 * MAX_KERNEL)
    first = padding // 2  # darknet's offset is −padding / 2, rounded towards zero
    shape, sides = _slid(section, layers.shape, (size, size), strides, (first, first, padding - 2 * first))
    widest = max(sides.top, sides.bottom, sides.right)
    if widest >= size:
        what = f"the padding on one side of a window of {size}×{size}"
        raise RangeError(what, widest, high=size - 1, where=section.source_of("padding"))
    return pooled(layers, section, MaxPool(size, 1, sides), strides, shape)


def _average_pool(layers: DarknetLayers, section: Section) -> DarknetLayers:
    return layers.with_node(section, "average", AveragePool(), Shape(layers.shape.channels, 1, 1))


def _connected(layers: DarknetLayers, section: Section) -> DarknetLayers:
    outputs = section.integer("output", 1, 1, MAX_CHANNELS)
    activation = section.choice("activation", "logistic", CHOICES)
    weights = _zeros(outputs, layers.shape.values)
    op = Dense(weights, _zeros(outputs), _batch_norm(section, outputs), fused(activation))
    return layers.with_node(section, "dense", op, Shape(outputs, 1, 1)).activated(section, activation)


def _route(layers: DarknetLayers, section: Section) -> DarknetLayers:
    indices = tuple(layer_index(layers, section, "layers", i) for i in section.integers("layers"))
    joined = layers.alias(indices[0]) if len(indices) == 1 else _joined(layers, section, indices)
    groups = section.integer("groups", 1, 1, MAX_CHANNELS)
    group = section.integer("group_id", 0, 0, groups - 1)
    if groups == 1:
        return joined
    channels, remainder = divmod(joined.shape.channels, groups)
    if remainder:
        required = f"a divisor of {joined.shape.channels} channels"
        raise InvalidValueError(section.name_of("groups"), groups, required, where=section.source_of("groups"))
    shape = replace(joined.shape, channels=channels)
    sliced = joined.with_node(section, "slice", Slice(group * channels, channels), shape)
    return replace(sliced, layers=(*layers.layers, len(sliced.nodes) - 1))


def _joined(layers: DarknetLayers, section: Section, indices: tuple[int, ...]) -> DarknetLayers:
    shapes = [layers.nodes[i].shape for i in indices]
    if len({(shape.height, shape.width) for shape in shapes}) != 1:
        what, where = "the maps that [route] joins", section.source_of("layers")
        raise ShapeError(what, listed(shapes), "one height and width", where=where)
    shape = replace(shapes[0], channels=sum(shape.channels for shape in shapes))
    return layers.with_node(section, "route", Concat(), shape, *indices)


def _reorg(layers: DarknetLayers, section: Section) -> DarknetLayers:
    if section.integer("extra", 0, 0, fixed.MAX_REORG_VALUES):
        return fixed.lengthened(layers, section)
    return _reorganised(layers, section, "darknet")


def _reorg_by_blocks(layers: DarknetLayers, section: Section) -> DarknetLayers:
    """Read the cfg section [reorg3d]: append a space-to-depth layer with block order, as other frameworks have."""
    return _reorganised(layers, section, "block")


def _reorganised(layers: DarknetLayers, section: Section, order: str) -> DarknetLayers:
    stride = section.integer("stride", 1, 1, MAX_SIDE)
    shape = layers.shape
    if shape.height % stride or shape.width % stride or (order == "darknet" and shape.channels % stride**2):
        square = ", and its square of the channels," if order == "darknet" else ""
        required = f"a divisor of height and width{square} of {shape}"
        raise InvalidValueError(section.name_of("stride"), stride, required, where=section.source_of("stride"))
    smaller = Shape(shape.channels * stride**2, shape.height // stride, shape.width // stride)
    return layers.with_node(section, "reorg", Reorg(stride, order), smaller)


def _upsample(layers: DarknetLayers, section: Section) -> DarknetLayers:
    stride = section.integer("stride", 2, 1, MAX_SIDE)
    scale = section.number("scale", 1.0)
    shape = layers.shape
    larger = Shape(shape.channels, shape.height * stride, shape.width * stride)
    return layers.with_node(section, "upsample", Upsample(stride, scale), larger)


def _shortcut(layers: DarknetLayers, section: Section) -> DarknetLayers:
    require_layer(layers, section)
    values = section.integers("from")
    if len(values) != 1:
        raise RangeError(
            "the number of layers that [shortcut] adds", len(values), 1, 1, where=section.source_of("from")
        )
    index = layer_index(layers, section, "from", values[0])
    activation = section.choice("activation", "linear", CHOICES)
    if layers.nodes[index].shape != layers.shape:
        return unequal_sum(layers, section, index, activation)
    added = layers.with_node(section, "add", Add(fused(activation)), layers.shape, layers.last, index)
    return added.activated(section, activation)


def _nothing(layers: DarknetLayers, section: Section) -> DarknetLayers:
    """Read a cfg section, such as [dropout], that computes nothing in a trained network."""
    return layers.alias(layers.last)


_BUILDERS: dict[str, Callable[[DarknetLayers, Section], DarknetLayers]] = {
    "convolutional": _convolution,
    "maxpool": _max_pool,
    "avgpool": _average_pool,
    "connected": _connected,
    "route": _route,
    "reorg": _reorg,
    "reorg3d": _reorg_by_blocks,
    "batchnorm": fixed.batch_norm,
    "upsample": _upsample,
    "shortcut": _shortcut,
    "sam": scaled,
    "scale_channels": scaled,
    "crop": crop,
    "dropout": _nothing,
    "cost": _nothing,
    "softmax": heads.softmax,
    "region": heads.region,
    "detection": heads.cells,
    "yolo": heads.yolo,
    "Gaussian_yolo": heads.gaussian_yolo,
}

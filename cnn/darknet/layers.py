"""Sections of a cfg → nodes with their shapes; weights are zeros that take no memory yet.

Every shape is checked, and bounded, before anything of its size exists. One function builds one kind of section; the
table at the end says which. Those that end a network are in heads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from boards.errors import listed
from cnn.darknet import fixed, heads
from cnn.darknet.cfg import Section
from cnn.darknet.graph import CHOICES, DARKNET_EPSILON, Layers, bounded, fused, layer_index, require
from cnn.darknet.moves import crop, scaled, unequal_sum
from cnn.darknet.numbers import holds_bias, stored_weights
from cnn.limits import MAX_CHANNELS, MAX_KERNEL, MAX_LAYERS, MAX_MAPS, MAX_SIDE, MAX_WEIGHTS
from cnn.network import (
    Activate,
    Add,
    AveragePool,
    BatchNorm,
    Concat,
    Convolution,
    Dense,
    FloatArray,
    Input,
    MaxPool,
    Network,
    Node,
    Padding,
    Reorg,
    Shape,
    Slice,
    Stored,
    Upsample,
)


def build_layers(sections: tuple[Section, ...], name: str) -> Network:
    """The topology: all weights, biases and batch norms are zero views of no memory.

    Raises NetworkError with the cfg line at the first layer whose shape is impossible or too large.
    """
    last = sections[-1].source
    require(len(sections) <= MAX_LAYERS, last, f"a network has at most {MAX_LAYERS - 1} layers")
    require(len(sections) > 1, sections[0].source, "a network needs at least one layer after [net]")
    layers = Layers((_input(sections[0]),))
    values = weights = 0
    for section in sections[1:]:
        layers = _BUILDERS[section.kind](layers, section)
        values += layers.shape.values
        weights += sum(parameter_count(node) for node in layers.nodes[-2:] if node.source == section.source)
        require(values <= MAX_MAPS, section.source, f"the outputs of all layers exceed {MAX_MAPS:,} values")
        require(weights <= MAX_WEIGHTS, section.source, f"the network exceeds {MAX_WEIGHTS:,} weights")
    return Network(name, layers.nodes)


def parameter_count(node: Node) -> int:
    """How many numbers a weights file holds for this node."""
    op = node.op
    if not isinstance(op, (Convolution, Dense)):
        return 0
    stored = stored_weights(op)
    biases = 4 if op.batch_norm is not None else int(holds_bias(op))
    return (0 if stored is None else int(stored.size)) + int(op.bias.size) * biases


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
    section: Section, shape: Shape, window: tuple[int, int], stride: int, padding: tuple[int, int, int]
) -> tuple[Shape, Padding]:
    """The output's height and width, and the padding without what no window reads.

    window: rows and columns. padding: above, to the left, and below or to the right of that beside.
    """
    (rows, columns), (top, side, extra) = window, padding
    sides = [shape.height + 2 * top + extra, shape.width + 2 * side + extra]
    require(
        sides[0] >= rows and sides[1] >= columns,
        section.source_of("size"),
        f"the {rows}×{columns} window of [{section.kind}] is larger than its padded input of "
        f"{sides[0]}×{sides[1]}; make the picture larger or the network shallower",
    )
    height, width = ((length - size) // stride + 1 for length, size in zip(sides, window, strict=True))
    bottom = max(0, (height - 1) * stride + rows - top - shape.height)
    right = max(0, (width - 1) * stride + columns - side - shape.width)
    return Shape(shape.channels, height, width), Padding(top, side, bottom, right)


def _convolution(layers: Layers, section: Section) -> Layers:
    filters = section.integer("filters", 1, 1, MAX_CHANNELS)
    size = section.integer("size", 1, 1, MAX_KERNEL)
    stride = section.integer("stride", 1, 1, MAX_SIDE)
    pad = section.integer("pad", 0, 0, 1)
    padding = section.integer("padding", 0, 0, MAX_KERNEL)
    window = (section.integer("size_y", size, 1, MAX_KERNEL), section.integer("size_x", size, 1, MAX_KERNEL))
    step, window, (upper, outer) = _dilated(section, window, [side // 2 if pad else padding for side in window])
    groups = _groups(section, layers.shape.channels, filters)
    shape, sides = _slid(section, layers.shape, window, stride, (upper, outer, 0))
    weights = _zeros(filters, layers.shape.channels // groups, *window)
    activation = section.choice("activation", "logistic", CHOICES)
    norm, stored = _batch_norm(section, filters), Stored(step=step, signs=bool(section.integer("xnor", 0, 0, 1)))
    op = Convolution(weights, _zeros(filters), norm, stride, sides, groups, fused(activation), stored)
    layer = len(layers.layers)
    if stored.signs:
        layers = layers.grown(section, "sign", Activate("sign"), layers.shape)
    larger = layers.grown(section, "conv", op, replace(shape, channels=filters))
    return replace(larger, layers=(*larger.layers[:layer], larger.last)).activated(section, activation)


def _dilated(
    section: Section, window: tuple[int, int], padding: list[int]
) -> tuple[int, tuple[int, int], tuple[int, int]]:
    """From a place of the window to the next one, its sides with the zeros between, and the padding of that: as many
    times of what it is without them, as darknet has it."""
    step = section.integer("dilation", 1, 1, MAX_KERNEL)
    sides = (step * (window[0] - 1) + 1, step * (window[1] - 1) + 1)
    require(
        max(sides) <= MAX_KERNEL,
        section.source_of("dilation"),
        f"dilation={step} makes a window of {sides[0]}×{sides[1]}, at most {MAX_KERNEL} are read",
    )
    require(
        step == 1 or all(2 * pad == side - 1 for pad, side in zip(padding, window, strict=True)),
        section.source_of("dilation"),
        f"dilation={step} is read of a map that keeps its size: of an odd window with pad=1",
    )
    return step if max(window) > 1 else 1, sides, (step * padding[0], step * padding[1])


def _groups(section: Section, channels: int, filters: int) -> int:
    groups = section.integer("groups", 1, 1, MAX_CHANNELS)
    require(
        channels % groups == 0 and filters % groups == 0,
        section.source_of("groups"),
        f"groups={groups} must divide the {channels} input channels and the {filters} filters",
    )
    return groups


def _max_pool(layers: Layers, section: Section) -> Layers:
    stride = section.integer("stride", 1, 1, MAX_KERNEL)
    size = section.integer("size", stride, 1, MAX_KERNEL)
    padding = section.integer("padding", size - 1, 0, 2 * MAX_KERNEL)
    first = padding // 2  # darknet's offset −padding / 2, cut towards zero
    shape, sides = _slid(section, layers.shape, (size, size), stride, (first, first, padding - 2 * first))
    widest = max(sides.top, sides.bottom, sides.right)
    require(
        widest < size,
        section.source_of("padding"),
        f"padding of {widest} on one side would put a whole {size}×{size} window outside the map; make it less",
    )
    return layers.grown(section, "pool", MaxPool(size, stride, sides), shape)


def _average_pool(layers: Layers, section: Section) -> Layers:
    return layers.grown(section, "average", AveragePool(), Shape(layers.shape.channels, 1, 1))


def _connected(layers: Layers, section: Section) -> Layers:
    outputs = section.integer("output", 1, 1, MAX_CHANNELS)
    activation = section.choice("activation", "logistic", CHOICES)
    weights = _zeros(outputs, layers.shape.values)
    op = Dense(weights, _zeros(outputs), _batch_norm(section, outputs), fused(activation))
    return layers.grown(section, "dense", op, Shape(outputs, 1, 1)).activated(section, activation)


def _route(layers: Layers, section: Section) -> Layers:
    indices = tuple(layer_index(layers, section, "layers", i) for i in section.integers("layers"))
    joined = layers.alias(indices[0]) if len(indices) == 1 else _joined(layers, section, indices)
    groups = section.integer("groups", 1, 1, MAX_CHANNELS)
    group = section.integer("group_id", 0, 0, groups - 1)
    if groups == 1:
        return joined
    channels, remainder = divmod(joined.shape.channels, groups)
    sentence = f"groups={groups} must divide the {joined.shape.channels} channels"
    require(not remainder, section.source_of("groups"), sentence)
    shape = replace(joined.shape, channels=channels)
    sliced = joined.grown(section, "slice", Slice(group * channels, channels), shape)
    return replace(sliced, layers=(*layers.layers, len(sliced.nodes) - 1))


def _joined(layers: Layers, section: Section, indices: tuple[int, ...]) -> Layers:
    shapes = [layers.nodes[i].shape for i in indices]
    require(
        len({(shape.height, shape.width) for shape in shapes}) == 1,
        section.source_of("layers"),
        f"a route joins maps of one height and width, not {listed(shapes)}",
    )
    shape = replace(shapes[0], channels=sum(shape.channels for shape in shapes))
    return layers.grown(section, "route", Concat(), shape, *indices)


def _reorg(layers: Layers, section: Section) -> Layers:
    if section.integer("extra", 0, 0, fixed.MOST_IN_A_ROW):
        return fixed.lengthened(layers, section)
    return _reorganised(layers, section, "darknet")


def _reorg_by_blocks(layers: Layers, section: Section) -> Layers:
    """darknet's [reorg3d] takes the channels of its blocks apart as other programs do."""
    return _reorganised(layers, section, "block")


def _reorganised(layers: Layers, section: Section, order: str) -> Layers:
    stride = section.integer("stride", 1, 1, MAX_SIDE)
    shape = layers.shape
    require(
        not (shape.height % stride or shape.width % stride or (order == "darknet" and shape.channels % stride**2)),
        section.source_of("stride"),
        f"stride={stride} of [{section.kind}] must divide height and width"
        + (f", and its square the channels, of {shape}" if order == "darknet" else f" of {shape}"),
    )
    smaller = Shape(shape.channels * stride**2, shape.height // stride, shape.width // stride)
    return layers.grown(section, "reorg", Reorg(stride, order), smaller)


def _upsample(layers: Layers, section: Section) -> Layers:
    stride = section.integer("stride", 2, 1, MAX_SIDE)
    scale = section.number("scale", 1.0)
    shape = layers.shape
    larger = Shape(shape.channels, shape.height * stride, shape.width * stride)
    return layers.grown(section, "upsample", Upsample(stride, scale), larger)


def _shortcut(layers: Layers, section: Section) -> Layers:
    require(bool(layers.layers), section.source, "[shortcut] needs a layer before it")
    values = section.integers("from")
    require(len(values) == 1, section.source_of("from"), f"[shortcut] adds one layer, not {len(values)}")
    index = layer_index(layers, section, "from", values[0])
    activation = section.choice("activation", "linear", CHOICES)
    if layers.nodes[index].shape != layers.shape:
        return unequal_sum(layers, section, index, activation)
    added = layers.grown(section, "add", Add(fused(activation)), layers.shape, layers.last, index)
    return added.activated(section, activation)


def _nothing(layers: Layers, section: Section) -> Layers:
    return layers.alias(layers.last)


_BUILDERS: dict[str, Callable[[Layers, Section], Layers]] = {
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

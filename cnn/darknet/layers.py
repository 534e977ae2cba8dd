"""Sections of a cfg → nodes with their shapes; weights are zeros that take no memory yet.

Every shape is checked, and bounded, before anything of its size exists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from boards.errors import NetworkError
from cnn.darknet.cfg import Section
from cnn.network import (
    ACTIVATIONS,
    Add,
    AveragePool,
    BatchNorm,
    Concat,
    Convolution,
    Dense,
    Detection,
    FloatArray,
    Input,
    MaxPool,
    Network,
    Node,
    Op,
    Padding,
    Reorg,
    Shape,
    Slice,
    Softmax,
    Upsample,
)

MAX_SIDE = 8192  # of the picture
MAX_CHANNELS = 1 << 16
MAX_KERNEL = 64
MAX_LAYERS = 512
MAX_MAP = 1 << 26  # values of one layer's output
MAX_MAPS = 1 << 28  # values of all layers' outputs together
MAX_WEIGHTS = 1 << 28  # 1 GiB of float32

# Darknet adds 1e-6 to the root itself, (x − mean) / (sqrt(variance) + 0.000001), in normalize_cpu of its
# src/blas.c; its CUDA kernel takes sqrt(variance + 0.00001). Of a trained YOLO-LITE the outputs by the former
# differ from those by sqrt(variance + 1e-6) by 8e-6 of their greatest, and by 9e-5 with 1e-5; a reference's
# probabilities for a picture agree in all four printed digits with the first two, and not with the third.
DARKNET_EPSILON = 1e-6


@dataclass(frozen=True)
class _Layers:
    """Nodes so far, and for each darknet layer (not counting [net]) the node that holds its output."""

    nodes: tuple[Node, ...]
    layers: tuple[int, ...] = ()

    @property
    def last(self) -> int:
        return self.layers[-1] if self.layers else 0

    @property
    def shape(self) -> Shape:
        return self.nodes[self.last].shape

    def name(self, stem: str) -> str:
        return f"{stem}{1 + sum(node.name.rstrip('0123456789') == stem for node in self.nodes)}"

    def grown(self, section: Section, stem: str, op: Op, shape: Shape, *inputs: int) -> _Layers:
        """One more node that is also a darknet layer."""
        node = Node(self.name(stem), op, inputs or (self.last,), _bounded(shape, section), section.source)
        return _Layers((*self.nodes, node), (*self.layers, len(self.nodes)))

    def alias(self, index: int) -> _Layers:
        """One more darknet layer that computes nothing: its output is that of a node that exists."""
        return replace(self, layers=(*self.layers, index))


def build_layers(sections: tuple[Section, ...], name: str) -> Network:
    """The topology: all weights, biases and batch norms are zero views of no memory.

    Raises NetworkError with the cfg line at the first layer whose shape is impossible or too large.
    """
    last = sections[-1].source
    _require(len(sections) <= MAX_LAYERS, last, f"a network has at most {MAX_LAYERS - 1} layers")
    _require(len(sections) > 1, sections[0].source, "a network needs at least one layer after [net]")
    layers = _Layers((_input(sections[0]),))
    values = weights = 0
    for section in sections[1:]:
        layers = _BUILDERS[section.kind](layers, section)
        values += layers.shape.values
        weights += parameter_count(layers.nodes[-1]) if layers.nodes[-1].source == section.source else 0
        _require(values <= MAX_MAPS, section.source, f"the outputs of all layers exceed {MAX_MAPS:,} values")
        _require(weights <= MAX_WEIGHTS, section.source, f"the network exceeds {MAX_WEIGHTS:,} weights")
    return Network(name, layers.nodes)


def parameter_count(node: Node) -> int:
    """Numbers that a weights file holds for this node."""
    op = node.op
    if not isinstance(op, (Convolution, Dense)):
        return 0
    return int(op.weights.size) + int(op.bias.size) * (4 if op.batch_norm is not None else 1)


def _require(condition: bool, source: str, sentence: str) -> None:
    if not condition:
        raise NetworkError(f"{source}: {sentence}")


def _bounded(shape: Shape, section: Section) -> Shape:
    _require(
        shape.channels <= MAX_CHANNELS and shape.values <= MAX_MAP,
        section.source,
        f"a layer has at most {MAX_CHANNELS:,} channels and {MAX_MAP:,} values, not {shape}",
    )
    return shape


def _input(section: Section) -> Node:
    channels = section.integer("channels", None, 1, MAX_CHANNELS)
    height = section.integer("height", None, 1, MAX_SIDE)
    width = section.integer("width", None, 1, MAX_SIDE)
    return Node("input", Input(), (), _bounded(Shape(channels, height, width), section), section.source)


def _zeros(*shape: int) -> FloatArray:
    return np.broadcast_to(np.float32(0), shape)


def _batch_norm(section: Section, filters: int) -> BatchNorm | None:
    if not section.integer("batch_normalize", 0, 0, 1):
        return None
    zeros = _zeros(filters)
    return BatchNorm(zeros, zeros, zeros, DARKNET_EPSILON)


def _slid(section: Section, shape: Shape, size: int, stride: int, before: int, after: int) -> tuple[Shape, Padding]:
    """The output's height and width, and the padding without what no window reads."""
    sides = [shape.height + before + after, shape.width + before + after]
    _require(
        min(sides) >= size,
        section.at("size"),
        f"the {size}×{size} window of [{section.kind}] is larger than its padded input of "
        f"{sides[0]}×{sides[1]}; make the picture larger or the network shallower",
    )
    height, width = ((side - size) // stride + 1 for side in sides)
    bottom = max(0, (height - 1) * stride + size - before - shape.height)
    right = max(0, (width - 1) * stride + size - before - shape.width)
    return Shape(shape.channels, height, width), Padding(before, before, bottom, right)


def _convolution(layers: _Layers, section: Section) -> _Layers:
    filters = section.integer("filters", 1, 1, MAX_CHANNELS)
    size = section.integer("size", 1, 1, MAX_KERNEL)
    stride = section.integer("stride", 1, 1, MAX_SIDE)
    pad = section.integer("pad", 0, 0, 1)
    padding = section.integer("padding", 0, 0, MAX_KERNEL)
    pad = size // 2 if pad else padding
    groups = _groups(section, layers.shape.channels, filters)
    shape, sides = _slid(section, layers.shape, size, stride, pad, pad)
    weights = _zeros(filters, layers.shape.channels // groups, size, size)
    activation = section.choice("activation", "logistic", ACTIVATIONS)
    norm = _batch_norm(section, filters)
    op = Convolution(weights, _zeros(filters), norm, stride, sides, groups, activation)
    return layers.grown(section, "conv", op, replace(shape, channels=filters))


def _groups(section: Section, channels: int, filters: int) -> int:
    groups = section.integer("groups", 1, 1, MAX_CHANNELS)
    _require(
        channels % groups == 0 and filters % groups == 0,
        section.at("groups"),
        f"groups={groups} must divide the {channels} input channels and the {filters} filters",
    )
    return groups


def _max_pool(layers: _Layers, section: Section) -> _Layers:
    stride = section.integer("stride", 1, 1, MAX_KERNEL)
    size = section.integer("size", stride, 1, MAX_KERNEL)
    padding = section.integer("padding", size - 1, 0, 2 * MAX_KERNEL)
    before = padding // 2  # darknet's offset −padding / 2, cut towards zero
    shape, sides = _slid(section, layers.shape, size, stride, before, padding - before)
    most = max(sides.top, sides.bottom, sides.right)
    _require(
        most < size,
        section.at("padding"),
        f"padding of {most} on one side would put a whole {size}×{size} window outside the map; make it less",
    )
    return layers.grown(section, "pool", MaxPool(size, stride, sides), shape)


def _average_pool(layers: _Layers, section: Section) -> _Layers:
    return layers.grown(section, "average", AveragePool(), Shape(layers.shape.channels, 1, 1))


def _connected(layers: _Layers, section: Section) -> _Layers:
    outputs = section.integer("output", 1, 1, MAX_CHANNELS)
    activation = section.choice("activation", "logistic", ACTIVATIONS)
    weights = _zeros(outputs, layers.shape.values)
    op = Dense(weights, _zeros(outputs), _batch_norm(section, outputs), activation)
    return layers.grown(section, "dense", op, Shape(outputs, 1, 1))


def _layer_index(layers: _Layers, section: Section, key: str, value: int) -> int:
    """The node of darknet layer ``value``, counted from this one where negative."""
    here = len(layers.layers)
    index = here + value if value < 0 else value
    _require(
        0 <= index < here,
        section.at(key),
        f"{key} of [{section.kind}] names layer {value}, but only layers 0…{here - 1} come before this one, "
        f"which is layer {here}",
    )
    return layers.layers[index]


def _route(layers: _Layers, section: Section) -> _Layers:
    indices = tuple(_layer_index(layers, section, "layers", i) for i in section.integers("layers"))
    joined = layers.alias(indices[0]) if len(indices) == 1 else _joined(layers, section, indices)
    groups = section.integer("groups", 1, 1, MAX_CHANNELS)
    group = section.integer("group_id", 0, 0, groups - 1)
    if groups == 1:
        return joined
    channels, left = divmod(joined.shape.channels, groups)
    sentence = f"groups={groups} must divide the {joined.shape.channels} channels"
    _require(not left, section.at("groups"), sentence)
    shape = replace(joined.shape, channels=channels)
    sliced = joined.grown(section, "slice", Slice(group * channels, channels), shape)
    return replace(sliced, layers=(*layers.layers, len(sliced.nodes) - 1))


def _joined(layers: _Layers, section: Section, indices: tuple[int, ...]) -> _Layers:
    shapes = [layers.nodes[i].shape for i in indices]
    _require(
        len({(shape.height, shape.width) for shape in shapes}) == 1,
        section.at("layers"),
        f"a route joins maps of one height and width, not {' and '.join(str(shape) for shape in shapes)}",
    )
    shape = replace(shapes[0], channels=sum(shape.channels for shape in shapes))
    return layers.grown(section, "route", Concat(), shape, *indices)


def _reorg(layers: _Layers, section: Section) -> _Layers:
    stride = section.integer("stride", 1, 1, MAX_SIDE)
    shape = layers.shape
    _require(
        shape.height % stride == 0 and shape.width % stride == 0 and shape.channels % stride**2 == 0,
        section.at("stride"),
        f"stride={stride} of [reorg] must divide height and width, and its square the channels, of {shape}",
    )
    smaller = Shape(shape.channels * stride**2, shape.height // stride, shape.width // stride)
    return layers.grown(section, "reorg", Reorg(stride), smaller)


def _upsample(layers: _Layers, section: Section) -> _Layers:
    stride = section.integer("stride", 2, 1, MAX_SIDE)
    scale = _one_number(section, "scale", 1.0)
    shape = layers.shape
    larger = Shape(shape.channels, shape.height * stride, shape.width * stride)
    return layers.grown(section, "upsample", Upsample(stride, scale), larger)


def _one_number(section: Section, key: str, default: float) -> float:
    values = section.numbers(key) if key in section.options else (default,)
    _require(len(values) == 1, section.at(key), f"{key} of [{section.kind}] is one number, not {len(values)}")
    return values[0]


def _shortcut(layers: _Layers, section: Section) -> _Layers:
    _require(bool(layers.layers), section.source, "[shortcut] needs a layer before it")
    values = section.integers("from")
    _require(len(values) == 1, section.at("from"), f"[shortcut] adds one layer, not {len(values)}")
    index = _layer_index(layers, section, "from", values[0])
    other = layers.nodes[index].shape
    _require(
        other == layers.shape,
        section.at("from"),
        f"[shortcut] adds maps of one shape, not {layers.shape} and {other}",
    )
    op = Add(section.choice("activation", "linear", ACTIVATIONS))
    return layers.grown(section, "add", op, layers.shape, layers.last, index)


def _nothing(layers: _Layers, section: Section) -> _Layers:
    return layers.alias(layers.last)


def _softmax(layers: _Layers, section: Section) -> _Layers:
    groups = section.integer("groups", 1, 1, MAX_CHANNELS)
    values = layers.shape.values
    _require(values % groups == 0, section.at("groups"), f"groups={groups} must divide the {values} values")
    return layers.grown(section, "softmax", Softmax(groups), layers.shape)


def _region(layers: _Layers, section: Section) -> _Layers:
    softmax = bool(section.integer("softmax", 0, 0, 1))
    coords = section.integer("coords", 4, 4, 4)
    return _detection(layers, section, _anchors(section), softmax, coords)


def _yolo(layers: _Layers, section: Section) -> _Layers:
    anchors = _anchors(section)
    mask = section.integers("mask") if "mask" in section.options else tuple(range(len(anchors)))
    _require(
        all(0 <= i < len(anchors) for i in mask),
        section.at("mask"),
        f"mask of [yolo] picks anchors 0…{len(anchors) - 1}, not {','.join(str(i) for i in mask)}",
    )
    return _detection(layers, section, tuple(anchors[i] for i in mask), False, 4)


def _anchors(section: Section) -> tuple[tuple[float, float], ...]:
    count = section.integer("num", 1, 1, 1024)
    values = section.numbers("anchors")
    _require(
        len(values) == 2 * count,
        section.at("anchors"),
        f"num={count} anchors of [{section.kind}] are {2 * count} numbers, width and height of each, not {len(values)}",
    )
    least = min(values)
    _require(least > 0, section.at("anchors"), f"the sides of an anchor are above 0, not {least:g}")
    return tuple(zip(values[0::2], values[1::2], strict=True))


def _detection(
    layers: _Layers, section: Section, anchors: tuple[tuple[float, float], ...], softmax: bool, coords: int
) -> _Layers:
    classes = section.integer("classes", 20, 1, MAX_CHANNELS)
    wanted = len(anchors) * (coords + 1 + classes)
    _require(
        layers.shape.channels == wanted,
        section.at("classes"),
        f"[{section.kind}] with {len(anchors)} anchors and {classes} classes reads {wanted} channels, "
        f"but the layer before it gives {layers.shape.channels}; set its filters={wanted}",
    )
    op = Detection(section.kind, anchors, classes, softmax, coords)
    return layers.grown(section, section.kind, op, layers.shape)


_BUILDERS: dict[str, Callable[[_Layers, Section], _Layers]] = {
    "convolutional": _convolution,
    "maxpool": _max_pool,
    "avgpool": _average_pool,
    "connected": _connected,
    "route": _route,
    "reorg": _reorg,
    "upsample": _upsample,
    "shortcut": _shortcut,
    "dropout": _nothing,
    "cost": _nothing,
    "softmax": _softmax,
    "region": _region,
    "yolo": _yolo,
}

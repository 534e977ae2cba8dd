"""Sections that are several nodes here: a [shortcut] of maps of different shapes, [scale_channels] and [crop]."""

from __future__ import annotations

from dataclasses import replace

from boards.errors import RangeError, ShapeError, UnsupportedError
from cnn.darknet.cfg import Section
from cnn.darknet.graph import CHOICES, DARKNET_FUNCTIONS, Layers, fused, layer_index, require_layer
from cnn.network import (
    ACTIVATIONS,
    LEAKY_SLOPE,
    Activate,
    Add,
    Concat,
    MaxPool,
    Multiply,
    Op,
    Padding,
    Shape,
    Slice,
    Upsample,
)

_PLAIN = {"leaky": ("leaky_relu", (LEAKY_SLOPE,)), "relu": ("leaky_relu", (0.0,)), "relu6": ("clip", (0.0, 6.0))}
"""What a layer does to its own sums, as a function of a map."""


def unequal_sum(layers: Layers, section: Section, index: int, activation: str) -> Layers:
    """As darknet's shortcut_cpu: of a larger map every stride-th pixel of every stride-th row is added, and only the
    channels that both have; the others pass. ShapeError if one height and width is not a multiple of the other."""
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
        if activation in _PLAIN:
            function, parameters = _PLAIN[activation]
            layers, end = _grown(layers, section, function, Activate(function, parameters), out, end)
    else:
        fused = activation if activation in ACTIVATIONS else "linear"
        layers, end = _grown(layers, section, "add", Add(fused), out, base, index)
    if activation in DARKNET_FUNCTIONS:
        layers = replace(layers, layers=(*layers.layers[:count], end)).activated(section, activation)
        end = layers.last
    return replace(layers, layers=(*layers.layers[:count], end))


def scaled(layers: Layers, section: Section) -> Layers:
    """A [sam], the product of two maps, or a [scale_channels], of a map and one value for each channel. ShapeError if
    they have other shapes."""
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
        what, where = f"the layer before [{section.kind}], which reads {out} too,", section.source_of("from")
        raise ShapeError(what, f"shape {factor}", f"shape {expected}", where=where)
    last = layers.last
    if each and out.height * out.width > 1:
        op = Upsample(out.height, across=out.width if out.width != out.height else 0)
        layers, last = _grown(layers, section, "upsample", op, out, last)
    larger = layers.grown(section, "multiply", Multiply(fused(activation)), out, last, index)
    return replace(larger, layers=(*larger.layers[:count], larger.last)).activated(section, activation)


def crop(layers: Layers, section: Section) -> Layers:
    """A [crop] at the beginning: pictures are resized to its size at once. Without noadjust pixels become −1…1.
    UnsupportedError after another layer, RangeError if it is larger than the picture."""
    if layers.layers:
        reason = "it is taken as the first layer alone, since the host resizes the picture to its size"
        raise UnsupportedError("[crop] after another layer", reason, where=section.source)
    picture = layers.nodes[0].shape
    width, height = (section.integer(f"crop_{key}", None, 1, getattr(picture, key)) for key in ("width", "height"))
    cropped = replace(layers.nodes[0], shape=Shape(picture.channels, height, width))
    layers = replace(layers, nodes=(cropped,))
    if section.integer("noadjust", 0, 0, 1):
        return layers.alias(0)
    return layers.grown(section, "affine", Activate("affine", (2.0, -1.0)), cropped.shape)


def _grown(layers: Layers, section: Section, stem: str, op: Op, shape: Shape, *inputs: int) -> tuple[Layers, int]:
    """One more node, and its index."""
    larger = layers.grown(section, stem, op, shape, *inputs)
    return larger, larger.last

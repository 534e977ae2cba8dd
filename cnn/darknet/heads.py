"""Read the sections at the end of a network: [softmax], [detection], [region], [yolo] and [Gaussian_yolo]."""

from __future__ import annotations

from dataclasses import replace

from boards.errors import (
    ConflictError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    ShapeError,
)
from cnn.darknet.cfg import Section
from cnn.darknet.graph import DarknetLayers
from cnn.limits import MAX_CHANNELS
from cnn.ops import (
    MAX_BINS,
    MAX_SCALE,
    Activate,
    Cells,
    Detection,
    GaussianYolo,
    Region,
    ScaledYolo,
    Segmentation,
    Softmax,
    Yolo,
)

COORDS = 4
MAX_ANCHOR = 1_000_000
MAX_TEMPERATURE = 1000.0


def softmax(layers: DarknetLayers, section: Section) -> DarknetLayers:
    """Read the cfg section [softmax]: append a softmax over all values, or a segmentation head if ``spatial`` is set.

    Option ``spatial`` selects the second. InvalidValueError is raised if the groups do not divide the values.
    """
    original, layers = layers, _cooled(layers, section)
    larger = _softmax(layers, section)
    return replace(larger, layers=(*original.layers, larger.last))  # the layer before it keeps its output


def _softmax(layers: DarknetLayers, section: Section) -> DarknetLayers:
    groups = section.integer("groups", 1, 1, MAX_CHANNELS)
    if section.integer("spatial", 0, 0, 1):
        if groups != 1:
            subjects, reason = ("spatial=1", f"groups={groups}"), "a softmax of each position is over all channels"
            raise ConflictError(subjects, reason, where=section.source_of("groups"))
        op = Segmentation((), layers.shape.channels, True)
        return layers.with_node(section, "segmentation", op, layers.shape)
    values = layers.shape.values
    if values % groups:
        required = f"a divisor of {values} values"
        raise InvalidValueError(section.name_of("groups"), groups, required, where=section.source_of("groups"))
    return layers.with_node(section, "softmax", Softmax(groups), layers.shape)


def _cooled(layers: DarknetLayers, section: Section) -> DarknetLayers:
    """Append a layer that divides all values by the softmax's option ``temperature``, unless that is 1."""
    temperature = section.number("temperature", 1.0)
    if not 1 / MAX_TEMPERATURE <= temperature <= MAX_TEMPERATURE:
        what, where = section.name_of("temperature"), section.source_of("temperature")
        raise RangeError(what, temperature, 1 / MAX_TEMPERATURE, MAX_TEMPERATURE, where=where)
    if temperature == 1:
        return layers
    return layers.with_node(section, "affine", Activate("affine", (1 / temperature, 0.0)), layers.shape)


def region(layers: DarknetLayers, section: Section) -> DarknetLayers:
    """Append the YOLOv2 head of a [region] section; MismatchError if anchors, classes and channels do not match."""
    softmax = bool(section.integer("softmax", 0, 0, 1))
    section.integer("coords", COORDS, COORDS, COORDS)
    return _detection(layers, section, _anchors(section), softmax)


def cells(layers: DarknetLayers, section: Section) -> DarknetLayers:
    """Append the YOLOv1 head of a [detection] section; ShapeError if its input has another size than the head."""
    for key, default, required in (("coords", 1, COORDS), ("sqrt", 0, 1)):
        value = section.integer(key, default, 0, 99)
        if value != required:
            raise RangeError(section.name_of(key), value, required, required, where=section.source_of(key))
    side, boxes = section.integer("side", 7, 1, MAX_BINS), section.integer("num", 1, 1, 1024)
    classes = section.integer("classes", 1, 1, MAX_CHANNELS)
    op = Cells(((1.0, 1.0),) * boxes, classes, False, COORDS, bins=side)
    if str(layers.shape) != f"{op.channels}×1×1":
        raise ShapeError(
            f"the layer before [detection], of {side}×{side} cells with {boxes} boxes and {classes} classes,",
            f"shape {layers.shape}",
            f"shape {op.channels}×1×1",
            where=section.source,
            remedy=f"set its output={op.channels}",
        )
    return layers.with_node(section, "cells", op, layers.shape)


def gaussian_yolo(layers: DarknetLayers, section: Section) -> DarknetLayers:
    """Append the Gaussian YOLOv3 head of a [Gaussian_yolo] section, with the checks of ``yolo``."""
    return yolo(layers, section, GaussianYolo)


def yolo(layers: DarknetLayers, section: Section, kind: type[Detection] = Yolo) -> DarknetLayers:
    """Append the YOLOv3 head of a [yolo] section; an error is raised if its anchors, mask or channels do not fit."""
    anchors = _anchors(section)
    mask = section.integers("mask") if "mask" in section.options else tuple(range(len(anchors)))
    for number in mask:
        if not 0 <= number < len(anchors):
            raise RangeError(section.name_of("mask"), number, 0, len(anchors) - 1, where=section.source_of("mask"))
    scale = section.number("scale_x_y", 1.0)
    if not 0 < scale <= MAX_SCALE:
        what, where = section.name_of("scale_x_y"), section.source_of("scale_x_y")
        raise RangeError(what, scale, 0, MAX_SCALE, exclusive=True, where=where)
    masked = tuple(anchors[i] for i in mask)
    if section.integer("new_coords", 0, 0, 1):
        layers = _without_logistic(layers, section)
        return _detection(layers, section, masked, False, ScaledYolo, scale)
    return _detection(layers, section, masked, False, kind, scale)


def _without_logistic(layers: DarknetLayers, section: Section) -> DarknetLayers:
    """Remove the logistic layer before a [yolo] with ``new_coords``, because the host computes it more precisely.

    MissingValueError is raised if there is no such layer.
    """
    last = layers.nodes[layers.last]
    if last.op != Activate("logistic") or layers.last != len(layers.nodes) - 1:
        what = "activation=logistic of the layer before [yolo]"
        raise MissingValueError(what, "new_coords=1 needs it", where=section.source_of("new_coords"))
    return DarknetLayers(layers.nodes[:-1], (*layers.layers[:-1], last.inputs[0]))


def _anchors(section: Section) -> tuple[tuple[float, float], ...]:
    count = section.integer("num", 1, 1, 1024)
    values = section.numbers("anchors")
    where = section.source_of("anchors")
    if len(values) != 2 * count:
        what = f"the number of sides of num={count} anchors, width and height of each,"
        raise MismatchError(what, len(values), 2 * count, where=where)
    for value in values:
        if not 0 < value < MAX_ANCHOR:
            raise InvalidValueError("a side of an anchor", value, f"above 0 and below {MAX_ANCHOR:,}", where=where)
    return tuple(zip(values[0::2], values[1::2], strict=True))


def _detection(
    layers: DarknetLayers,
    section: Section,
    anchors: tuple[tuple[float, float], ...],
    softmax: bool,
    kind: type[Detection] = Region,
    scale: float = 1.0,
) -> DarknetLayers:
    classes = section.integer("classes", 20, 1, MAX_CHANNELS)
    op = kind(anchors, classes, softmax, COORDS, (), scale)
    if layers.shape.channels != op.channels:
        raise MismatchError(
            f"the number of channels that [{section.kind}] reads, with {len(anchors)} anchors and {classes} classes,",
            layers.shape.channels,
            op.channels,
            where=section.source_of("classes"),
            remedy=f"set filters={op.channels} of the layer before it",
        )
    return layers.with_node(section, "gaussian" if kind is GaussianYolo else section.kind, op, layers.shape)

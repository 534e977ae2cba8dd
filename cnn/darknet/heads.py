"""Sections that end a network: [softmax], [detection], [region], [yolo] and [Gaussian_yolo]."""

from __future__ import annotations

from dataclasses import replace

from cnn.darknet.cfg import Section
from cnn.darknet.graph import Layers, require
from cnn.limits import MAX_CHANNELS
from cnn.network import MOST_BINS, MOST_SCALE, Activate, Detection, Softmax

COORDS = 4
MOST_ANCHOR = 1_000_000
MOST_TEMPERATURE = 1000.0


def softmax(layers: Layers, section: Section) -> Layers:
    """One more [softmax], with ``spatial`` over the channels of each position: a segmentation. NetworkError where its
    groups do not divide the values that it reads."""
    original, layers = layers, _cooled(layers, section)
    larger = _softmax(layers, section)
    return replace(larger, layers=(*original.layers, larger.last))  # darknet's layer before keeps its own values


def _softmax(layers: Layers, section: Section) -> Layers:
    groups = section.integer("groups", 1, 1, MAX_CHANNELS)
    if section.integer("spatial", 0, 0, 1):
        require(groups == 1, section.source_of("groups"), "spatial=1 of [softmax] has one group, all channels")
        op = Detection("segmentation", (), layers.shape.channels, True)
        return layers.grown(section, "segmentation", op, layers.shape)
    values = layers.shape.values
    require(values % groups == 0, section.source_of("groups"), f"groups={groups} must divide the {values} values")
    return layers.grown(section, "softmax", Softmax(groups), layers.shape)


def _cooled(layers: Layers, section: Section) -> Layers:
    """What a softmax of ``temperature`` reads: all values divided by that."""
    temperature = section.number("temperature", 1.0)
    require(
        1 / MOST_TEMPERATURE <= temperature <= MOST_TEMPERATURE,
        section.source_of("temperature"),
        f"temperature of [softmax] is {1 / MOST_TEMPERATURE:g}…{MOST_TEMPERATURE:g}, not {temperature:g}",
    )
    if temperature == 1:
        return layers
    return layers.grown(section, "affine", Activate("affine", (1 / temperature, 0.0)), layers.shape)


def region(layers: Layers, section: Section) -> Layers:
    """One more [region] (YOLOv2); NetworkError where anchors, classes and channels do not agree."""
    softmax = bool(section.integer("softmax", 0, 0, 1))
    section.integer("coords", COORDS, COORDS, COORDS)
    return _detection(layers, section, _anchors(section), softmax)


def cells(layers: Layers, section: Section) -> Layers:
    """One more [detection] (YOLOv1); NetworkError where its cells, boxes and classes are not the values before it."""
    for key, default, required in (("coords", 1, COORDS), ("sqrt", 0, 1)):
        value = section.integer(key, default, 0, 99)
        require(value == required, section.source_of(key), f"[detection] is read with {key}={required}, not {value}")
    side, boxes = section.integer("side", 7, 1, MOST_BINS), section.integer("num", 1, 1, 1024)
    classes = section.integer("classes", 1, 1, MAX_CHANNELS)
    op = Detection("cells", ((1.0, 1.0),) * boxes, classes, False, COORDS, bins=side)
    require(
        str(layers.shape) == f"{op.channels}×1×1",
        section.source,
        f"[detection] of {side}×{side} cells with {boxes} boxes and {classes} classes reads {op.channels} values of a "
        f"fully connected layer, but the layer before gives {layers.shape}; set its output={op.channels}",
    )
    return layers.grown(section, "cells", op, layers.shape)


def gaussian_yolo(layers: Layers, section: Section) -> Layers:
    """One more [Gaussian_yolo], a [yolo] with the variance of each coordinate; NetworkError as of that."""
    return yolo(layers, section, "gaussian-yolo")


def yolo(layers: Layers, section: Section, kind: str = "yolo") -> Layers:
    """One more [yolo] (YOLOv3); NetworkError where anchors, mask, classes and channels do not agree."""
    anchors = _anchors(section)
    mask = section.integers("mask") if "mask" in section.options else tuple(range(len(anchors)))
    require(
        all(0 <= i < len(anchors) for i in mask),
        section.source_of("mask"),
        f"mask of [{section.kind}] picks anchors 0…{len(anchors) - 1}, not {','.join(str(i) for i in mask)}",
    )
    scale = section.number("scale_x_y", 1.0)
    require(
        0 < scale <= MOST_SCALE,
        section.source_of("scale_x_y"),
        f"scale_x_y of [{section.kind}] is above 0 and at most {MOST_SCALE:g}, not {scale:g}",
    )
    masked = tuple(anchors[i] for i in mask)
    if section.integer("new_coords", 0, 0, 1):
        layers = _without_logistic(layers, section)
        return _detection(layers, section, masked, False, "scaled-yolo", scale)
    return _detection(layers, section, masked, False, kind, scale)


def _without_logistic(layers: Layers, section: Section) -> Layers:
    """The logistic layer that must stand before a head of new_coords is left to the host, which has more digits."""
    last = layers.nodes[layers.last]
    fits = last.op == Activate("logistic") and layers.last == len(layers.nodes) - 1
    require(
        fits,
        section.source_of("new_coords"),
        "new_coords=1 of [yolo] reads a layer of activation=logistic right before it",
    )
    return Layers(layers.nodes[:-1], (*layers.layers[:-1], last.inputs[0]))


def _anchors(section: Section) -> tuple[tuple[float, float], ...]:
    count = section.integer("num", 1, 1, 1024)
    values = section.numbers("anchors")
    require(
        len(values) == 2 * count,
        section.source_of("anchors"),
        f"num={count} anchors of [{section.kind}] are {2 * count} numbers, width and height of each, not {len(values)}",
    )
    wrong = [value for value in values if not 0 < value < MOST_ANCHOR]
    require(
        not wrong,
        section.source_of("anchors"),
        f"the sides of an anchor are above 0 and below {MOST_ANCHOR:,}, not {wrong[0]:g}" if wrong else "",
    )
    return tuple(zip(values[0::2], values[1::2], strict=True))


def _detection(
    layers: Layers,
    section: Section,
    anchors: tuple[tuple[float, float], ...],
    softmax: bool,
    kind: str = "region",
    scale: float = 1.0,
) -> Layers:
    classes = section.integer("classes", 20, 1, MAX_CHANNELS)
    op = Detection(kind, anchors, classes, softmax, COORDS, (), scale)
    require(
        layers.shape.channels == op.channels,
        section.source_of("classes"),
        f"[{section.kind}] with {len(anchors)} anchors and {classes} classes reads {op.channels} channels, "
        f"but the layer before it gives {layers.shape.channels}; set its filters={op.channels}",
    )
    return layers.grown(section, "gaussian" if kind == "gaussian-yolo" else section.kind, op, layers.shape)

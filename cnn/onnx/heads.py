"""The detection heads that read the tensors at the end of an ONNX network.

They are listed in a JSON file, {"heads": [{"kind", "tensors", "classes", …}]}, or in the metadata of the ONNX file, or
are recognised by their layout. The files that this project writes have them in the metadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from boards.errors import (
    ConflictError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    ShapeError,
    listed,
)
from boards.json_text import parse_json
from boards.table import is_number
from cnn.darknet.cfg import file_label, read_text
from cnn.exported.json_table import JsonTable
from cnn.limits import MAX_CHANNELS
from cnn.maps import Shape
from cnn.network import Node
from cnn.onnx.graph import Graph, OnnxOperation
from cnn.onnx.layers import NO_PADDING, Layers, Map
from cnn.ops import HEADS, MAX_BINS, MAX_SCALE, Detection
from cnn.quantized import QNode

METADATA = "systolic.heads"
TEXT_LIMIT = 1 << 20
MAX_HEADS = 64
MAX_TENSORS = 8
"""Limit for the tensors that one head reads."""
COORDS = 4
"""Coordinates of a box."""
WITHOUT_ANCHORS = ("anchor-free", "segmentation")


@dataclass(frozen=True)
class NamedHead:
    """A detection head as a JSON file describes it. The fields after ``classes`` are explained in cnn.ops.Detection.

    Attributes:
        kind: A key of cnn.ops.HEADS.
        tensors: The tensors that it reads, concatenated along the channels.
        classes: Number of classes; 0 to compute it from the number of channels.
    """

    kind: str
    tensors: tuple[str, ...]
    classes: int = 0
    anchors: tuple[tuple[float, float], ...] = ()
    softmax: bool = False
    scale_xy: float = 1.0
    bins: int = 1


def read_heads(path: Path) -> tuple[NamedHead, ...]:
    """Return the detection heads that a JSON file lists; its errors name the file, the head and the key."""
    return parse_heads(read_text(path, TEXT_LIMIT, "file of heads"), file_label(path))


def parse_heads(text: str, file: str) -> tuple[NamedHead, ...]:
    """Return the detection heads that a JSON text lists; ``file`` is its name in errors."""
    table = JsonTable(parse_json(text, file), file)
    entries = table.get("heads", list)
    table.finish()
    if not 1 <= len(entries) <= MAX_HEADS:
        raise RangeError("the number of 'heads'", len(entries), 1, MAX_HEADS, where=file)
    return tuple(_head(JsonTable(entry, f"{file}: head {number}")) for number, entry in enumerate(entries, 1))


def _head(table: JsonTable) -> NamedHead:
    kind = table.choice("kind", tuple(HEADS), None)
    tensors = table.get("tensors", list)
    if not (1 <= len(tensors) <= MAX_TENSORS and all(isinstance(name, str) and name for name in tensors)):
        raise InvalidValueError("'tensors'", tensors, f"a list of 1 to {MAX_TENSORS} names", where=table.source)
    head = NamedHead(
        kind,
        tuple(tensors),
        table.integer("classes", 0, MAX_CHANNELS, 0),
        _anchors(table, kind),
        table.get("softmax", bool, False),
        table.number("scale_xy", 1e-3, MAX_SCALE, 1.0),
        table.integer("bins", 1, MAX_BINS, 1),
    )
    table.finish()
    return head


def _anchors(table: JsonTable, kind: str) -> tuple[tuple[float, float], ...]:
    anchors = table.get("anchors", list, [])
    fits = all(
        isinstance(pair, list) and len(pair) == 2 and all(is_number(side) and 0 < side < 1e6 for side in pair)
        for pair in anchors
    )
    if not fits or len(anchors) > MAX_CHANNELS:
        raise InvalidValueError("'anchors'", anchors, "a list of pairs of numbers above 0", where=table.source)
    if anchors and kind in WITHOUT_ANCHORS:
        raise ConflictError(("'anchors'", f"the kind {kind}"), "such a head has none", where=table.source)
    if not anchors and kind not in WITHOUT_ANCHORS:
        raise MissingValueError("'anchors'", f"a head of kind {kind} needs them", where=table.source)
    return tuple((float(width), float(height)) for width, height in anchors)


def written_heads(heads: Sequence[NamedHead]) -> str:
    """Return detection heads as a JSON text that ``parse_heads`` reads."""
    return json.dumps({"heads": [asdict(head) for head in heads]})


def named_heads(nodes: Sequence[Node | QNode], names: Sequence[str]) -> tuple[NamedHead, ...]:
    """Return descriptions of a network's detection heads for a JSON file; heads that it cannot describe are left out.

    Args:
        nodes: The nodes of the network.
        names: The name of the tensor that each node computes.
    """
    heads = []
    for node in nodes:
        op = node.op
        if isinstance(op, Detection) and not op.bias and op.coords == COORDS and len(node.inputs) <= MAX_TENSORS:
            tensors = tuple(names[i] for i in node.inputs)
            heads.append(NamedHead(op.kind, tensors, op.classes, op.anchors, op.softmax, op.scale_xy, op.bins))
    return tuple(heads)


# --- metadata --------------------------------------------------------------------------------------------------------


def heads_inside(model: Any, label: str) -> tuple[NamedHead, ...]:
    """Return the detection heads in an ONNX file's metadata; none if another tool renamed their tensors."""
    named = [entry.value for entry in model.metadata_props if entry.key == METADATA]
    heads = parse_heads(named[0], f"{label}: {METADATA}") if named else ()
    tensors = {name for node in model.graph.node for name in node.output}
    return heads if tensors.issuperset(name for head in heads for name in head.tensors) else ()


def lost_heads(model: Any, label: str) -> Sequence[str]:
    """Return a sentence that detection heads in the metadata were not used; nothing if the metadata has none."""
    if all(entry.key != METADATA for entry in model.metadata_props):
        return ()
    return (
        f"{label}: its heads are left out, since another tool renamed the tensors that they read; the outputs are "
        "feature maps. Give the heads with --cut FILE.json",
    )


def with_metadata(model: Any, heads: Sequence[NamedHead]) -> bytes:
    """Return the bytes of the ONNX file with these detection heads in its metadata, in place of any older ones."""
    for place in reversed([i for i, entry in enumerate(model.metadata_props) if entry.key == METADATA]):
        del model.metadata_props[place]
    if heads:
        model.metadata_props.add(key=METADATA, value=written_heads(heads))
    return bytes(model.SerializeToString(deterministic=True))


# --- nodes -----------------------------------------------------------------------------------------------------------


def with_heads(layers: Layers, heads: Sequence[NamedHead]) -> tuple[Node, ...]:
    """Return the network's nodes, followed by a ``Detection`` node for each head.

    Raises:
        ShapeError: A tensor of a head is not a map, or its tensors have different heights or widths.
        RangeError: There are too few channels for one class.
        MismatchError: The channels do not fit the number of classes.
    """
    nodes = layers.nodes
    for number, head in enumerate(heads, 1):
        nodes = (*nodes, _node(layers, head, f"{layers.label}: head {number}", f"{head.kind}{number}"))
    return nodes


def _node(layers: Layers, head: NamedHead, source: str, name: str) -> Node:
    maps = _maps(layers, head, source)
    shapes = [layers.nodes[node].shape for node in maps]
    channels = sum(shape.channels for shape in shapes)
    classes = head.classes or _classes(head, channels)
    op = _detection(head, classes)
    what = f"channels of {listed(head.tensors)}"
    form = f"a head of kind {head.kind}, {len(head.anchors)} anchors and {head.bins} bins"
    if classes < 1:
        raise RangeError(f"{what} for a class of {form}", channels, low=replace(op, classes=1).channels, where=source)
    if channels != op.channels:
        raise MismatchError(f"{what} for {classes} classes of {form}", channels, op.channels, where=source)
    shape = Shape(channels, shapes[0].height, shapes[0].width)
    return Node(name.replace("-", "_"), op, maps, shape, source)


def _maps(layers: Layers, head: NamedHead, source: str) -> tuple[int, ...]:
    """Return the indices of the nodes whose outputs a detection head reads; ShapeError if their heights or widths
    differ."""
    values = [layers.value(tensor) for tensor in head.tensors]
    maps = tuple(value.node for value in values if isinstance(value, Map) and value.padding == NO_PADDING)
    sizes = {(layers.nodes[node].shape.height, layers.nodes[node].shape.width) for node in maps}
    if len(maps) < len(values) or len(sizes) > 1:
        told = listed(f"{height}×{width}" for height, width in sorted(sizes)) or "no map"
        raise ShapeError(listed(head.tensors), told, "maps of one height and width", where=source)
    return maps


def _classes(head: NamedHead, channels: int) -> int:
    """Return the number of classes for which a head of this kind reads ``channels`` channels, rounded down."""
    empty = _detection(head, 0)
    return (channels - empty.channels) // max(1, empty.channels_of_a_class)


def _detection(head: NamedHead, classes: int) -> Detection:
    return HEADS[head.kind](head.anchors, classes, head.softmax, COORDS, (), head.scale_xy, head.bins)


# --- known layouts ---------------------------------------------------------------------------------------------------


def recognised(graph: Graph) -> tuple[NamedHead, ...]:
    """Return the detection heads of an ultralytics export (YOLOv8, YOLOv11 and similar); () for any other network.

    The layout is recognised by the convolution with the weights 0, 1, 2 … that computes the mean of a distribution
    over bins. From its input, views lead back to a concat of one map per stride. Each of these maps is a concat of a
    box map and a class map, which are the tensors of one head.
    """
    producers = {name: operation for operation in graph.operations for name in operation.outputs}
    for operation in graph.operations:
        bins = _expectation(operation, graph.constants)
        if bins:
            joined = _followed(operation.inputs[0], producers)
            heads = [_of_size(name, producers, bins) for name in joined.inputs] if joined else []
            return tuple(head for head in heads if head) if heads and all(heads) else ()
    return ()


_VIEWS = ("Softmax", "Transpose", "Reshape", "Split", "Slice")


def _expectation(operation: OnnxOperation, constants: Mapping[str, Any]) -> int:
    """Return the bins of the distribution whose mean a Conv with weights 0, 1, 2 … computes; 0 for other operations."""
    weights = constants.get(operation.inputs[1]) if operation.kind == "Conv" and len(operation.inputs) > 1 else None
    if weights is None or weights.ndim != 4 or not 2 <= weights.size <= MAX_BINS:
        return 0
    counted = weights.shape[1] == weights.size and np.array_equal(weights.ravel(), np.arange(weights.size))
    return int(weights.size) if counted else 0


def _followed(name: str, producers: Mapping[str, OnnxOperation]) -> OnnxOperation | None:
    """Return the Concat from which only views lead to the tensor ``name``; None without one within 8 operations."""
    for _ in range(8):
        operation = producers.get(name)
        if operation is None or operation.kind not in _VIEWS:
            return operation if operation is not None and operation.kind == "Concat" else None
        name = operation.inputs[0]
    return None


def _of_size(name: str, producers: Mapping[str, OnnxOperation], bins: int) -> NamedHead | None:
    """Return the detection head of one stride, from the Concat of its box and class maps; None for another layout."""
    joined = _followed(name, producers)
    if joined is None or len(joined.inputs) != 2 or joined.integer("axis", 0) != 1:
        return None
    return NamedHead("anchor-free", joined.inputs, bins=bins)

"""Which heads read the tensors at which an ONNX network ends: told by a file beside it, or known by their layout.

A file of heads is JSON: {"heads": [{"kind", "tensors", "classes", …}]}. A file that stands alone keeps them in its
metadata, so that it gives the same network again.
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
from cnn.ops import HEADS, MOST_BINS, MOST_SCALE, Detection
from cnn.quantized import QNode

METADATA = "systolic.heads"
TEXT_LIMIT = 1 << 20
MOST_HEADS = 64
MOST_TENSORS = 8
"""Of a head."""
COORDS = 4
"""Of a box."""
WITHOUT_ANCHORS = ("anchor-free", "segmentation")


@dataclass(frozen=True)
class NamedHead:
    """A head and the tensors that it reads, one after the other along the channels. classes: 0 where they are what the
    channels leave."""

    kind: str
    tensors: tuple[str, ...]
    classes: int = 0
    anchors: tuple[tuple[float, float], ...] = ()
    softmax: bool = False
    scale_xy: float = 1.0
    bins: int = 1


def read_heads(path: Path) -> tuple[NamedHead, ...]:
    """Return the heads in a JSON file; errors name file, head and key."""
    return parse_heads(read_text(path, TEXT_LIMIT, "file of heads"), file_label(path))


def parse_heads(text: str, file: str) -> tuple[NamedHead, ...]:
    """As ``read_heads``, from the text itself; ``file`` is what errors call it."""
    table = JsonTable(parse_json(text, file), file)
    entries = table.get("heads", list)
    table.finish()
    if not 1 <= len(entries) <= MOST_HEADS:
        raise RangeError("the number of 'heads'", len(entries), 1, MOST_HEADS, where=file)
    return tuple(_head(JsonTable(entry, f"{file}: head {number}")) for number, entry in enumerate(entries, 1))


def _head(table: JsonTable) -> NamedHead:
    kind = table.choice("kind", tuple(HEADS), None)
    tensors = table.get("tensors", list)
    if not (1 <= len(tensors) <= MOST_TENSORS and all(isinstance(name, str) and name for name in tensors)):
        raise InvalidValueError("'tensors'", tensors, f"a list of 1 to {MOST_TENSORS} names", where=table.source)
    head = NamedHead(
        kind,
        tuple(tensors),
        table.integer("classes", 0, MAX_CHANNELS, 0),
        _anchors(table, kind),
        table.get("softmax", bool, False),
        table.number("scale_xy", 1e-3, MOST_SCALE, 1.0),
        table.integer("bins", 1, MOST_BINS, 1),
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
        raise MissingValueError("'anchors'", f"a head of kind {kind} has some", where=table.source)
    return tuple((float(width), float(height)) for width, height in anchors)


def written_heads(heads: Sequence[NamedHead]) -> str:
    """What ``parse_heads`` reads."""
    return json.dumps({"heads": [asdict(head) for head in heads]})


def named_heads(nodes: Sequence[Node | QNode], names: Sequence[str]) -> tuple[NamedHead, ...]:
    """Those of a network that such a file can tell. names: of the tensor that each node gives."""
    heads = []
    for node in nodes:
        op = node.op
        if isinstance(op, Detection) and not op.bias and op.coords == COORDS and len(node.inputs) <= MOST_TENSORS:
            tensors = tuple(names[i] for i in node.inputs)
            heads.append(NamedHead(op.kind, tensors, op.classes, op.anchors, op.softmax, op.scale_xy, op.bins))
    return tuple(heads)


# --- metadata --------------------------------------------------------------------------------------------------------


def heads_inside(model: Any, label: str) -> tuple[NamedHead, ...]:
    """The heads that a file names in its metadata; none where another tool gave its tensors other names since."""
    named = [entry.value for entry in model.metadata_props if entry.key == METADATA]
    heads = parse_heads(named[0], f"{label}: {METADATA}") if named else ()
    tensors = {name for node in model.graph.node for name in node.output}
    return heads if tensors.issuperset(name for head in heads for name in head.tensors) else ()


def lost_heads(model: Any, label: str) -> Sequence[str]:
    """A sentence where the file names heads, and none of its tensors has the name."""
    if all(entry.key != METADATA for entry in model.metadata_props):
        return ()
    return (
        f"{label}: its heads are left out, since another tool renamed the tensors that they read: maps come out, and "
        "--cut FILE.json tells of heads",
    )


def with_metadata(model: Any, heads: Sequence[NamedHead]) -> bytes:
    """The bytes of the file with its heads."""
    for place in reversed([i for i, entry in enumerate(model.metadata_props) if entry.key == METADATA]):
        del model.metadata_props[place]
    if heads:
        model.metadata_props.add(key=METADATA, value=written_heads(heads))
    return bytes(model.SerializeToString(deterministic=True))


# --- nodes -----------------------------------------------------------------------------------------------------------


def with_heads(layers: Layers, heads: Sequence[NamedHead]) -> tuple[Node, ...]:
    """Return the network's nodes and a ``Detection`` for each head; ShapeError if its maps are not what it reads."""
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
    """The nodes whose maps the head reads."""
    values = [layers.value(tensor) for tensor in head.tensors]
    maps = tuple(value.node for value in values if isinstance(value, Map) and value.padding == NO_PADDING)
    sizes = {(layers.nodes[node].shape.height, layers.nodes[node].shape.width) for node in maps}
    if len(maps) < len(values) or len(sizes) > 1:
        told = listed(f"{height}×{width}" for height, width in sorted(sizes)) or "no map"
        raise ShapeError(listed(head.tensors), told, "maps of one height and width", where=source)
    return maps


def _classes(head: NamedHead, channels: int) -> int:
    """What the channels leave for classes."""
    empty = _detection(head, 0)
    return (channels - empty.channels) // max(1, empty.channels_of_a_class)


def _detection(head: NamedHead, classes: int) -> Detection:
    return HEADS[head.kind](head.anchors, classes, head.softmax, COORDS, (), head.scale_xy, head.bins)


# --- known layouts ---------------------------------------------------------------------------------------------------


def recognised(graph: Graph) -> tuple[NamedHead, ...]:
    """The heads of an ultralytics export (YOLOv8, YOLOv11 and their kin), () where the layout is another.

    Its mark is the convolution with the weights 0, 1, 2 … that takes the mean of a distribution. What it reads is
    followed back, through views of one input, to the concat of all sizes; of each size a box map and a class map are
    joined there.
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
    """Bins of the distribution whose mean the operation takes, 0 where it is another one."""
    weights = constants.get(operation.inputs[1]) if operation.kind == "Conv" and len(operation.inputs) > 1 else None
    if weights is None or weights.ndim != 4 or not 2 <= weights.size <= MOST_BINS:
        return 0
    counted = weights.shape[1] == weights.size and np.array_equal(weights.ravel(), np.arange(weights.size))
    return int(weights.size) if counted else 0


def _followed(name: str, producers: Mapping[str, OnnxOperation]) -> OnnxOperation | None:
    """The concat behind views of one input."""
    for _ in range(8):
        operation = producers.get(name)
        if operation is None or operation.kind not in _VIEWS:
            return operation if operation is not None and operation.kind == "Concat" else None
        name = operation.inputs[0]
    return None


def _of_size(name: str, producers: Mapping[str, OnnxOperation], bins: int) -> NamedHead | None:
    """Of one size the box map and the class map that are joined."""
    joined = _followed(name, producers)
    if joined is None or len(joined.inputs) != 2 or joined.integer("axis", 0) != 1:
        return None
    return NamedHead("anchor-free", joined.inputs, bins=bins)

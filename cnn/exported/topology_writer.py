"""Writes a topology as the text of its JSON file, which ``parse_topology`` reads."""

from __future__ import annotations

import json
from typing import Any

from boards.errors import UnsupportedError
from cnn.exported.topology import Kernel, LayerOp, Sum, Topology, TopologyLayer
from cnn.exported.topology_file import FORMAT
from cnn.maps import Padding
from cnn.ops import (
    AveragePool,
    Concat,
    Detection,
    IntegerSoftmax,
    MaxPool,
    OneObject,
    Region,
    Reorg,
    Segmentation,
    Softmax,
    TopK,
    Upsample,
    Yolo,
    assert_never,
)


def topology_text(topology: Topology) -> str:
    """Return a topology as JSON text, with one layer per line.

    Raises:
        UnsupportedError: The exported form does not have this kind of head.
    """
    shape = topology.input
    values = {
        "format": FORMAT,
        "name": topology.name,
        "input": {
            "channels": shape.channels,
            "height": shape.height,
            "width": shape.width,
            "order": topology.order,
            **({} if topology.plain_pixels else {"mean": list(topology.mean), "std": topology.std}),
        },
        "fit": topology.fit,
        "extra_bits": topology.extra_bits,
        "batch_norm": {"epsilon": topology.epsilon, "added_to": topology.epsilon_of},
        "requantise": topology.requantise,
        "labels": list(topology.labels),
    }
    head = json.dumps(values, ensure_ascii=False, indent=2).removesuffix("\n}")
    names = ("input", *(layer.name for layer in topology.layers))
    lines = [json.dumps(_layer(layer, names), ensure_ascii=False) for layer in topology.layers]
    return head + ',\n  "layers": [\n    ' + ",\n    ".join(lines) + "\n  ]\n}\n"


def _layer(layer: TopologyLayer, names: tuple[str, ...]) -> dict[str, Any]:
    kind, options = _options(layer.op, layer.source)
    sources = [names[index] for index in layer.inputs]
    return {"type": kind, "name": layer.name, "from": sources[0] if len(sources) == 1 else sources, **options}


def _options(op: LayerOp, source: str) -> tuple[str, dict[str, Any]]:
    match op:
        case Kernel():
            return "convolution", _kernel(op)
        case MaxPool():
            size = list(op.window) if op.across else op.size
            return "max_pool", {"size": size, "stride": op.stride, **_padding(op.padding)}
        case AveragePool():
            return "average_pool", {}
        case Sum():
            return "add", {} if op.output_bits is None else {"output_bits": op.output_bits}
        case Concat():
            return "concat", {}
        case Reorg():
            return "reorg", {"stride": op.stride, "order": op.order}
        case Upsample():
            return "upsample", {"stride": op.stride}
        case TopK():
            return "top_k", {"k": op.k, "labels": op.labels}
        case Softmax():
            return "softmax", {"method": "none"}
        case IntegerSoftmax():
            return "softmax", {"method": op.method}
        case Detection():
            return head_options(op, source)
    assert_never(op)


def _kernel(op: Kernel) -> dict[str, Any]:
    values: dict[str, Any] = {"filters": op.filters, "kernel": op.size, "stride": op.stride, **_padding(op.padding)}
    values["weight_bits"] = op.weight_bits
    if op.groups != 1:
        values["groups"] = op.groups
    if op.integers:
        values["integers"] = True
    if op.output_bits is None:
        return values if op.scale == 1.0 else {**values, "scale": op.scale}
    values["output_bits"] = op.output_bits
    if op.bias:
        values["bias"] = True
    arithmetic = {"requantise": op.requantise, "extra_bits": op.extra_bits}
    values |= {key: value for key, value in arithmetic.items() if value is not None}
    return values if op.activation == "unit" else {**values, "activation": op.activation}


def _padding(padding: Padding) -> dict[str, Any]:
    sides = [padding.top, padding.left, padding.bottom, padding.right]
    if not any(sides):
        return {}
    return {"padding": sides[0] if len(set(sides)) == 1 else sides}


def head_options(op: Detection, source: str) -> tuple[str, dict[str, Any]]:
    """Return a detection head's "type" and other keys in the topology JSON; UnsupportedError for other heads."""
    anchors = {"anchors": [list(anchor) for anchor in op.anchors], "classes": op.classes}
    if isinstance(op, OneObject):
        return "one_object", anchors
    if isinstance(op, Region):
        return "region", {**anchors, "softmax": op.softmax}
    if isinstance(op, Yolo):
        return "yolo", {**anchors, "scale_xy": op.scale_xy}
    if isinstance(op, Segmentation):
        return "segmentation", {}
    reason = "the file of a network quantised by training may have one-object, region, yolo and segmentation heads"
    raise UnsupportedError(f"a head of kind {op.kind}", reason, where=source, remedy="end the network before it")

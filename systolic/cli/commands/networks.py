"""``systolic networks``: the built-in networks and their facts."""

from __future__ import annotations

import argparse
from typing import Any

from cnn import zoo
from cnn.darknet.files import read_topology as read_darknet_topology
from cnn.exported import topology_file
from cnn.maps import Shape
from cnn.ops import Detection
from systolic.cli.output import write_result
from systolic.report.tables import table

NOTES = (
    "bits: generate quantises float networks to 4, 8 or 16 bits; the other networks were trained with these bits.\n"
    "weights: if a network has none, give --weights FILE for trained weights or --seed 1 for random ones."
)


def run(options: argparse.Namespace) -> int:
    """Print a table of the built-in networks: input size, layers, classes, bits and whether they have weights.

    JSON: {networks: [{name, width, height, channels, layers, classes, bits, trained}]}; bits is null for a float
    network.
    """
    facts = [_facts(name) for name in zoo.names()]
    rows = [
        (
            one["name"],
            f"{one['width']}×{one['height']}×{one['channels']}",
            one["layers"],
            one["classes"],
            "float" if one["bits"] is None else one["bits"],
            "trained" if one["trained"] else "none",
        )
        for one in facts
    ]
    text = table(("network", "input", "layers", "classes", "bits", "weights"), rows)
    write_result(options, {"networks": facts}, f"{text}\n\n{NOTES}")
    return 0


def _facts(name: str) -> dict[str, Any]:
    """Return a built-in network's name, input shape, layers, classes, bits and whether it is trained."""
    path = zoo.topology_file(name)
    if path.suffix == ".json":
        exported = topology_file.read_topology(path)
        ops: list[Any] = [layer.op for layer in exported.layers]
        shape, last = exported.input, exported.layers[-1].shape
        bits: int | None = max(kernel.weight_bits for _, kernel in exported.kernels[1:])
        layers = len(exported.layers)
    else:
        network = read_darknet_topology(path)
        shape, last, bits = network.input_shape, network.nodes[network.outputs[0]].shape, None
        ops, layers = [node.op for node in network.nodes], len(network.nodes) - 1
    return {
        "name": name,
        "width": shape.width,
        "height": shape.height,
        "channels": shape.channels,
        "layers": layers,
        "classes": _classes(ops, last),
        "bits": bits,
        "trained": zoo.has_numbers(name),
    }


def _classes(ops: list[Any], output: Shape) -> int:
    """Return the number of classes of a detector's heads, else the number of output channels."""
    return max((op.classes for op in ops if isinstance(op, Detection)), default=output.channels)

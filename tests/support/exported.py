"""Topologies of networks that were quantised by training, as dictionaries and parsed."""

from __future__ import annotations

import json
from typing import Any

from cnn.exported.topology import Topology
from cnn.exported.topology_file import FORMAT, parse_topology


def described(*layers: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "name": "small net",
        "input": {"channels": 3, "height": 12, "width": 20},
        "layers": list(layers),
        **others,
    }


def convolution(filters: int = 4, kernel: int = 3, **others: Any) -> dict[str, Any]:
    return {"type": "convolution", "filters": filters, "kernel": kernel, "weight_bits": 4, "output_bits": 4, **others}


def parsed(*layers: dict[str, Any], **others: Any) -> Topology:
    return parse_topology(json.dumps(described(*layers, **others)), "small.json")

"""An exported network of three layers, and what the command reports of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CONVOLUTION = {"type": "convolution", "weight_bits": 4}
LAYERS: tuple[dict[str, Any], ...] = (
    {**CONVOLUTION, "name": "first", "filters": 8, "kernel": 3, "padding": 1, "output_bits": 4},
    {"type": "max_pool", "name": "half", "size": 2},
    {**CONVOLUTION, "name": "sums", "filters": 36, "kernel": 1},
)
HEAD = {"type": "one_object", "anchors": [[8, 8]] * 6}
BLOCKS = ["input", "first_window", "first", "half", "sums", "sums_out"]


def write_small(folder: Path, layers: tuple[dict[str, Any], ...] = (*LAYERS, HEAD)) -> Path:
    """Write small.json, a network for 16 × 32 pixels, and return its path."""
    path = folder / "small.json"
    topology = {
        "format": "systolic exported network 1",
        "name": "small",
        "input": {"channels": 3, "height": 16, "width": 32},
        "labels": ["object"],
        "layers": layers,
    }
    path.write_text(json.dumps(topology))
    return path

"""The package of docs/how-to/extend.md, read from the page, and an ONNX file that needs it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import onnx

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "extend.md"
GROUPS, CHANNELS = 3, 12


def documented() -> dict[str, str]:
    """Return the text of each of the package's files by name."""
    blocks = re.findall(r'^```\w+ title="(.+?)"\n(.*?)^```$', PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return dict(blocks)


def entry_points(pyproject: str) -> str:
    """Return the entry points in the format of a wheel."""
    groups = tomllib.loads(pyproject)["project"]["entry-points"]
    return "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in groups.items()
    )


def write_onnx(path: Path, groups: int = GROUPS) -> None:
    """Write a convolution, a shuffle of its channels, and a grouped convolution, as in ShuffleNet."""
    random = np.random.default_rng(1)
    weights = {
        "first": random.normal(0, 0.3, (CHANNELS, 3, 3, 3)),
        "second": random.normal(0, 0.3, (CHANNELS, CHANNELS // GROUPS, 3, 3)),
    }
    nodes = [
        onnx.helper.make_node("Conv", ["picture", "first"], ["sums"], pads=[1, 1, 1, 1]),
        onnx.helper.make_node("Relu", ["sums"], ["values"]),
        onnx.helper.make_node("Shuffle", ["values"], ["shuffled"], domain="org.acme", groups=groups),
        onnx.helper.make_node("Conv", ["shuffled", "second"], ["out"], group=GROUPS, pads=[1, 1, 1, 1]),
    ]
    arrays = [onnx.numpy_helper.from_array(values.astype(np.float32), name) for name, values in weights.items()]
    sides = [onnx.helper.make_tensor_value_info("picture", 1, (1, 3, 8, 12))]
    ends = [onnx.helper.make_tensor_value_info("out", 1, None)]
    graph = onnx.helper.make_graph(nodes, "net", sides, ends, arrays)
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("org.acme", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)

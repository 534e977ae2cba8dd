"""One case: a network and everything that is asked of it, as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

FORMAT = "systolic fuzzed network 1"

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """What goes in.

    network: {"form": "exported", "topology": {…}} or {"form": "darknet", "sections": [[kind, {option: value}], …]},
    or these sections with "form": "onnx", "opset" and "views": as another tool would export them, every so manieth
    layer reads through an Identity, with "transposed", "last" and "dilated" as tests.support.onnx.writer.written has
    them, and with "quantised", if it is there, what tests.support.onnx.quantising.Form says.
    In the first two forms "added": {"layers", "seed"}, what installed packages add to it, see added.
    numbers: {"seed", "wild"}: the weights, and the share of them that is driven to extremes. pixels: {"kind", "seed"}.
    target: {"board", "clock", "style", "bits", "method", "zero_points", "activation_bits", "softmax"}; the last five
    for floats alone.
    mapping: how the network gets onto the board, see prepare. checks: names of checks.CHECKS, in their order.
    """

    network: Values
    numbers: Values
    pixels: Values
    target: Values
    mapping: Values
    checks: tuple[str, ...]

    @property
    def style(self) -> str:
        return str(self.target["style"])

    @property
    def layers(self) -> int:
        """Of the network, whatever computes them."""
        if self.network["form"] == "exported":
            return len(self.network["topology"]["layers"])
        return len(self.network["sections"]) - 1

    def text(self) -> str:
        """As a file."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"


def read_case(text: str) -> Case:
    """From a file's text."""
    values = json.loads(text)
    assert values.pop("format") == FORMAT, "no case of this fuzzer"
    return Case(**{**values, "checks": tuple(values["checks"])})

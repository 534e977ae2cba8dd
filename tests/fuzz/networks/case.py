"""One case: a network, its numbers, its target and its checks, stored as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

FORMAT = "systolic fuzzed network 1"

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """The input of one trial.

    The forms "darknet" and "onnx" have "sections": a list of [kind, {option: value}], "net" first. The keys "opset",
    "views", "transposed", "last" and "dilated" of the form "onnx" are arguments of tests.support.onnx.writer.written.

    Attributes:
        network: {"form": "exported", "topology": {…}}, {"form": "darknet", "sections": […]} or {"form": "onnx",
            "sections": […], "opset", …}, which is written as another tool exports it. "quantised" of the form "onnx"
            holds the fields of tests.support.onnx.quantising.Form. "added": {"layers", "seed"} of the other two forms
            are the layers of installed packages.
        numbers: {"seed", "wild"} of the weights. "wild" is the share of them that gets extreme values.
        pixels: {"kind", "seed"} of the input images.
        target: {"board", "clock", "style", "bits", "method", "zero_points", "activation_bits", "softmax"}. The last
            five are for float networks only.
        mapping: The schedule or the folding, and the options of its search, see ``prepare``.
        checks: Keys of checks.CHECKS. They run in the order of CHECKS.
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
        """The number of the network's layers, for any form."""
        if self.network["form"] == "exported":
            return len(self.network["topology"]["layers"])
        return len(self.network["sections"]) - 1

    def text(self) -> str:
        """Return the text of the case's file."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"


def read_case(text: str) -> Case:
    """Read a case from the text of its file."""
    values = json.loads(text)
    assert values.pop("format") == FORMAT, "the file is not a case of this fuzzer"
    return Case(**{**values, "checks": tuple(values["checks"])})

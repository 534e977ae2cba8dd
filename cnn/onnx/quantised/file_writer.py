"""An ONNX file of a quantised network while it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cnn.datatype import BIPOLAR, TERNARY, DataType, TensorType
from cnn.onnx.file import load_onnx
from cnn.quantized import QuantizedNetwork

DOMAIN = "qonnx.custom_op.general"
"""Of Quant and its kind."""

LABELS = "_labels"
"""How tensors of labels end, which are no floats."""


def kind_of(name: str) -> int:
    """Of a tensor's values, as ONNX numbers them."""
    return int(load_onnx().TensorProto.INT64 if name.endswith(LABELS) else load_onnx().TensorProto.FLOAT)


@dataclass(eq=False)
class FileWriter:
    """The graph while it grows. names: of the tensor that each node gives, in floats."""

    network: QuantizedNetwork
    dialect: str
    nodes: list[Any] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def constant(self, values: Any, kind: npt.DTypeLike = np.float32) -> str:
        """An initialiser."""
        name = f"constant{len(self.arrays)}"
        self.arrays.append(load_onnx().numpy_helper.from_array(np.array(values, kind), name))
        return name

    def put(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        """An operation; its output."""
        name = f"{kind.lower()}{len(self.nodes)}"
        made = load_onnx().helper.make_node(kind, list(inputs), [name], name=f"{kind}_{name}", **attributes)
        self.nodes.append(made)
        return name

    def quant(self, source: str, type_: TensorType, **attributes: Any) -> str:
        """A map of that type; attributes: what else the operator says."""
        narrow = int(type_.datatype == TERNARY)
        return self.rounded(source, type_.datatype, type_.scale, zero=type_.zero_point, narrow=narrow, **attributes)

    def rounded(self, source: str, datatype: DataType, scale: Any, zero: int = 0, **attributes: Any) -> str:
        """Quant, or BipolarQuant."""
        size = self.constant(scale)
        if datatype == BIPOLAR:
            return self.put("BipolarQuant", [source, size], domain=DOMAIN)
        inputs = [source, size, self.constant(zero), self.constant(datatype.bits)]
        attributes = {"signed": int(datatype.signed), "rounding_mode": "ROUND", **attributes}
        return self.put("Quant", inputs, domain=DOMAIN, **attributes)

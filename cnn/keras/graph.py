"""The ONNX graph, channels first, that is written while the layers of a Keras model are walked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
OPSET = 20


@dataclass
class Graph:
    """onnx: the package. nodes, arrays: its protocol buffers. flattened: by tensor of values in a row, the channels,
    height and width of the map whose values these are, in Keras' order channels last."""

    onnx: Any
    nodes: list[Any] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)
    flattened: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def constant(self, values: Any, kind: Any = np.float32) -> str:
        """An initialiser."""
        name = f"constant{len(self.arrays)}"
        self.arrays.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(values, kind), name))
        return name

    def put(self, kind: str, inputs: Sequence[str], label: str, **attributes: Any) -> str:
        """An operator of the layer ``label``; its output."""
        name = f"{label}/{kind}_{len(self.nodes)}"
        node = self.onnx.helper.make_node(kind, list(inputs), [name], name=name, **attributes)
        self.nodes.append(node)
        return name

    def model(self, shape: Sequence[int], outputs: Sequence[str]) -> Any:
        """The file's protocol buffer, its input called "picture"."""
        helper, kind = self.onnx.helper, self.onnx.TensorProto.FLOAT
        ends = [helper.make_empty_tensor_value_info(name) for name in outputs]
        entry = helper.make_tensor_value_info("picture", kind, [1, *shape])
        graph = helper.make_graph(self.nodes, "keras", [entry], ends, self.arrays)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)

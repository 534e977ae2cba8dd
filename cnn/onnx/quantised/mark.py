"""What a file that holds integers says of a layer."""

from __future__ import annotations

from dataclasses import dataclass

from cnn.network import FloatArray
from cnn.onnx.graph import Array
from cnn.quantized import TensorType


@dataclass(frozen=True, eq=False)
class Mark:
    """type: of its output. scale: the float of its weights' 1, one or one a filter. thresholds: float [1 or channels,
    levels] that its value is compared with. gate: the type of f(x) where the layer is x · f(x)."""

    type: TensorType | None = None
    scale: FloatArray | None = None
    thresholds: Array | None = None
    gate: TensorType | None = None


NO_MARK = Mark()

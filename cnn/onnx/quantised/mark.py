"""What a file that holds integers says of a layer."""

from __future__ import annotations

from dataclasses import dataclass

from cnn.datatype import TensorType
from cnn.maps import FloatArray, IntArray
from cnn.onnx.graph import Array
from cnn.requantise import UP


@dataclass(frozen=True, eq=False)
class Stated:
    """The integers of its requantiser, as cnn.onnx.quantised.stated has them. multipliers: of an addition. halves: what
    a half becomes, counted in steps from the zero point."""

    rows: IntArray
    multipliers: tuple[int, ...]
    halves: str = UP


@dataclass(frozen=True, eq=False)
class Mark:
    """type: of its output. scale: the float of its weights' 1, one or one a filter. thresholds: float [1 or channels,
    levels] that its value is compared with. gate: the type of f(x) where the layer is x · f(x). multipliers: of an
    addition that the file has of integers, each times its own. stated: its requantiser in integers. zero_first: its
    zero point is added before the rounding."""

    type: TensorType | None = None
    scale: FloatArray | None = None
    thresholds: Array | None = None
    gate: TensorType | None = None
    multipliers: tuple[int, ...] | None = None
    stated: Stated | None = None
    zero_first: bool = False


NO_MARK = Mark()

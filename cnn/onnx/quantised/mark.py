"""The facts that a quantised ONNX file states about a layer."""

from __future__ import annotations

from dataclasses import dataclass

from cnn.datatype import TensorType
from cnn.maps import FloatArray, IntArray
from cnn.onnx.graph import Array
from cnn.requantise import UP


@dataclass(frozen=True, eq=False)
class Stated:
    """The exact integers of a layer's requantiser, which files exported by this project state in attributes.

    Attributes:
        rows: The requantiser's integers, one row per field, [3 or 4, channels]; one column if channels are equal.
        multipliers: The multipliers of an addition.
        halves: The rounding of halves, counted in steps from the zero point.
    """

    rows: IntArray
    multipliers: tuple[int, ...]
    halves: str = UP


@dataclass(frozen=True, eq=False)
class Mark:
    """The facts that a quantised ONNX file states about a layer, such as its output type, weight scale and thresholds.

    Attributes:
        type: The type of its output.
        scale: The real value of an integer weight of 1, one number or one per filter.
        thresholds: float [1 or channels, levels], which its values are compared with.
        gate: The type of f(x) if the layer is x · f(x).
        multipliers: The integers that the file multiplies an addition's integer inputs by.
        stated: Its requantiser in integers.
        zero_first: Whether its zero point is added before rounding.
    """

    type: TensorType | None = None
    scale: FloatArray | None = None
    thresholds: Array | None = None
    gate: TensorType | None = None
    multipliers: tuple[int, ...] | None = None
    stated: Stated | None = None
    zero_first: bool = False


NO_MARK = Mark()

"""Datatypes by their QONNX/FINN names: INT2…INT32, UINT1…UINT32, BIPOLAR (−1, +1), TERNARY (−1, 0, +1)."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, RangeError

_NAME = re.compile(r"(U?)INT([1-9][0-9]?)\Z")
_FEW = {"BIPOLAR": 1, "TERNARY": 2}
_ALL = "INT2…INT32, UINT1…UINT32, BIPOLAR or TERNARY"


@dataclass(frozen=True)
class DataType:
    """An integer datatype, in two's complement if it is signed.

    Attributes:
        bits: The number of bits.
        signed: Whether values may be negative.
        few: "BIPOLAR" for −1 and +1 in one bit, "TERNARY" for −1, 0 and +1 in two bits; "" for all values of the bits.

    Raises:
        RangeError: No datatype has that number of bits.
        InvalidValueError: ``few`` is another text, or does not match the bits and the sign.
    """

    bits: int
    signed: bool
    few: str = ""

    def __post_init__(self) -> None:
        if self.few:
            if (self.few, self.bits, self.signed) not in {(name, bits, True) for name, bits in _FEW.items()}:
                raise InvalidValueError(
                    "a datatype of few values", self, "BIPOLAR with 1 bit or TERNARY with 2 bits, both signed"
                )
            return
        least = 2 if self.signed else 1
        if not least <= self.bits <= 32:
            raise RangeError(
                f"the bits of {'a signed' if self.signed else 'an unsigned'} datatype", self.bits, least, 32
            )

    @property
    def name(self) -> str:
        """The QONNX name: "INT8", "UINT4", "BIPOLAR"."""
        return self.few or f"{'' if self.signed else 'U'}INT{self.bits}"

    @property
    def low(self) -> int:
        """The least value of the datatype, such as −128 for INT8."""
        return -1 if self.few else -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """The greatest value of the datatype, such as 127 for INT8."""
        return 1 if self.few else (1 << (self.bits - self.signed)) - 1

    @property
    def step(self) -> int:
        """The distance from one value of the datatype to the next: 2 for BIPOLAR (−1, +1), else 1."""
        return 2 if self.few == "BIPOLAR" else 1

    @property
    def levels(self) -> int:
        """The number of values of the datatype minus one: so many thresholds distinguish all of its values."""
        return (self.high - self.low) // self.step

    @property
    def carrier(self) -> npt.DTypeLike:
        """The narrowest numpy integer type that holds every value of the datatype: int8 … int32, uint8 … uint32."""
        width = next(w for w in (8, 16, 32) if self.bits <= w)
        return np.dtype(f"{'i' if self.signed else 'u'}{width // 8}")

    @staticmethod
    def parse(name: str) -> DataType:
        """Return the datatype of a name such as "INT8".

        Raises:
            InvalidValueError: ``name`` is not the name of a datatype.
            RangeError: No datatype has that number of bits.
        """
        if name in _FEW:
            return DataType(_FEW[name], True, name)
        match = _NAME.match(name)
        if match is None:
            raise InvalidValueError("a datatype", name, _ALL)
        return DataType(int(match[2]), signed=not match[1])


INT8 = DataType(8, True)
INT16 = DataType(16, True)
INT32 = DataType(32, True)
UINT8 = DataType(8, False)
BIPOLAR = DataType(1, True, "BIPOLAR")
TERNARY = DataType(2, True, "TERNARY")


@dataclass(frozen=True)
class TensorType:
    """The type of a tensor: its integer datatype, scale and zero point; value = (integer − zero_point) × scale."""

    datatype: DataType
    scale: float
    zero_point: int = 0


def magnitude(datatype: DataType) -> int:
    """Return the greatest |a| over all values a of the datatype, such as 128 for INT8."""
    return max(-datatype.low, datatype.high)

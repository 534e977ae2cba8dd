"""Datatypes by their QONNX/FINN names: INT2…INT32, UINT1…UINT32, FLOAT32."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from boards.errors import QuantiseError

_NAME = re.compile(r"(U?)INT([1-9][0-9]?)\Z")


@dataclass(frozen=True)
class DataType:
    """An integer datatype of ``bits`` bits, two's complement where signed."""

    bits: int
    signed: bool

    def __post_init__(self) -> None:
        least = 2 if self.signed else 1
        if not least <= self.bits <= 32:
            kind = "INT2…INT32" if self.signed else "UINT1…UINT32"
            raise QuantiseError(f"a datatype is {kind}, not {self.name}")

    @property
    def name(self) -> str:
        return f"{'' if self.signed else 'U'}INT{self.bits}"

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        return (1 << (self.bits - self.signed)) - 1

    @property
    def carrier(self) -> npt.DTypeLike:
        """The narrowest numpy integer that holds every value."""
        width = next(w for w in (8, 16, 32) if self.bits <= w)
        return np.dtype(f"{'i' if self.signed else 'u'}{width // 8}")

    @staticmethod
    def parse(name: str) -> DataType:
        """``"INT8"`` → the datatype; raises QuantiseError on any other text."""
        match = _NAME.match(name)
        if match is None:
            raise QuantiseError(f"a datatype is INT2…INT32 or UINT1…UINT32, not {name!r}")
        return DataType(int(match[2]), signed=not match[1])


INT8 = DataType(8, True)
INT16 = DataType(16, True)
INT32 = DataType(32, True)
UINT8 = DataType(8, False)

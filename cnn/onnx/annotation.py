"""The datatypes that a file annotates its tensors with (`quantization_annotation`), as FINN and QONNX write them.

An annotation restricts the values of a float tensor to integers of a number of bits, or to multiples of 2^−f for
FIXED<bits, bits − f>. FLOAT32 and other floats restrict nothing. SCALEDINT leaves the scale to an operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from boards.errors import (
    InvalidValueError,
    MismatchError,
    RangeError,
    SeveralFaultsError,
    SystolicError,
    UnsupportedError,
    shown,
)

Array: TypeAlias = npt.NDArray[Any]

DATATYPE = "finn_datatype"
SCALE_KEYS = frozenset({"SCALE_TENSOR", "ZERO_POINT_TENSOR"})
"""The keys by which ONNX itself names a tensor's scale and zero point."""

MAX_BITS = 64
NEAR = 1e-5
"""Limit for the relative error of a quotient of two floats that is taken as an integer."""

_SILENT = re.compile(r"FLOAT32|FLOAT16|FLOAT<[\d,. +-]{1,40}>|SCALEDINT<\d{1,9}>|\Z")
_WHOLE = re.compile(r"(U?)INT([1-9]\d?)")
_FIXED = re.compile(r"FIXED<\s*(\d{1,2})\s*,\s*(-?\d{1,2})\s*>")
_KNOWN = "INT1…INT64, UINT1…UINT64, BINARY, BIPOLAR, TERNARY, FIXED<bits,whole bits>, SCALEDINT<bits> or a float"


@dataclass(frozen=True)
class Annotation:
    """A data type that an ONNX file states for a float tensor: its values are whole multiples of ``step`` in a range.

    Attributes:
        name: The data type's name in the file.
        low: The lowest value, in steps.
        high: The greatest value, in steps.
        step: The difference between neighbouring values.
    """

    name: str
    low: int
    high: int
    step: float = 1.0

    @property
    def is_bipolar(self) -> bool:
        """Return whether the data type has the values −1 and 1 only, without 0."""
        return self.name == "BIPOLAR"

    @property
    def bits(self) -> int:
        """The number of bits of the integers from ``low`` to ``high``."""
        return (self.high - self.low).bit_length()

    @property
    def values(self) -> str:
        """The allowed values in words, for errors."""
        if self.is_bipolar:
            return "-1 or 1"
        return f"whole multiples of {self.step:g} from {self.low * self.step:g} to {self.high * self.step:g}"

    def holds(self, values: Array) -> Array:
        """Return a mask that is true where a value is one that the data type has."""
        quotients = np.asarray(values, np.float64) / self.step
        integers = np.rint(quotients)
        near = np.abs(quotients - integers) <= NEAR * np.maximum(1, np.abs(integers))
        held = near & (self.low <= integers) & (integers <= self.high)
        return np.asarray(held & (integers != 0) if self.is_bipolar else held)


def parse(text: str, subject: str) -> Annotation | None:
    """Return the data type that a file names ``text``, such as "INT4"; None if it restricts no values, such as FLOAT32.

    subject: The tensor, as the error names it. InvalidValueError is raised if ``text`` is not a data type.
    """
    few = {"BIPOLAR": (-1, 1), "TERNARY": (-1, 1), "BINARY": (0, 1)}.get(text)
    if few is not None:
        return Annotation(text, *few)
    if _SILENT.fullmatch(text):
        return None
    if match := _WHOLE.fullmatch(text):
        bits, signed = int(match[2]), not match[1]
        if bits <= MAX_BITS:
            return Annotation(text, -(1 << bits >> 1) if signed else 0, (1 << (bits - signed)) - 1)
    if match := _FIXED.fullmatch(text):
        bits, whole = int(match[1]), int(match[2])
        if 1 <= bits <= MAX_BITS and whole < bits:
            return Annotation(text, -(1 << bits >> 1), (1 << (bits - 1)) - 1, 2.0 ** (whole - bits))
    raise InvalidValueError(f"the datatype that {subject} is annotated with", text, _KNOWN)


def annotations_of(entries: Iterable[Any], most: int, label: str) -> Mapping[str, Annotation]:
    """Return the data types that an ONNX file states for its tensors, by the tensor's name.

    Raises:
        RangeError: There are more than ``most`` annotations.
        SystolicError: An annotation is not a data type, contradicts another annotation of the tensor, or names a
            scale; SeveralFaultsError if there are several such faults.
    """
    found: dict[str, Annotation] = {}
    said: dict[str, str] = {}
    faults: list[SystolicError] = []
    for count, entry in enumerate(entries, 1):
        if count > most:
            raise RangeError("the number of annotations of tensors", count, high=most, where=label)
        for pair in entry.quant_parameter_tensor_names:
            name, subject = entry.tensor_name, f"the tensor {shown(entry.tensor_name)}"
            try:
                if pair.key in SCALE_KEYS:
                    reason = f"its scale is in an annotation, {pair.key}, instead of an operator"
                    raise UnsupportedError(subject, reason, remedy="quantise it with QuantizeLinear or QONNX's Quant")
                if pair.key == DATATYPE:
                    if said.setdefault(name, pair.value) != pair.value:
                        raise MismatchError(f"the datatype that {subject} is annotated with", pair.value, said[name])
                    annotation = parse(pair.value, subject)
                    if annotation is not None:
                        found[name] = annotation
            except SystolicError as error:
                faults.append(error.at(label))
    raise_all(faults, label)
    return found


def check_constants(annotations: Mapping[str, Annotation], constants: Mapping[str, Array], label: str) -> None:
    """Raise InvalidValueError if a constant tensor has a value that its stated data type does not have."""
    faults: list[SystolicError] = []
    for name, annotation in annotations.items():
        array = constants.get(name)
        if array is None or array.dtype.kind not in "biuf":
            continue
        wrong = np.asarray(array)[~annotation.holds(array)]
        if wrong.size:
            what = f"a value of the tensor {shown(name)}, which is annotated {annotation.name},"
            faults.append(InvalidValueError(what, float(wrong.flat[0]), annotation.values, where=label))
    raise_all(faults, label)


def raise_all(faults: list[SystolicError], label: str) -> None:
    """Raise the only fault of the list, or one SeveralFaultsError with all of them; do nothing if the list is empty."""
    if len(faults) > 1:
        subject = f"the annotations of {len(faults)} tensors are wrong"
        raise SeveralFaultsError(faults, subject, where=label)
    if faults:
        raise faults[0]

"""The base classes of the operations of float networks and of integer networks.

A float network holds ``FloatOperation``s and a quantised one ``IntegerOperation``s. A ``Move`` is both.
Errors that these methods raise have no place yet; the caller adds the node's with ``SystolicError.at``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NoReturn, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from boards.errors import DoesNotFitError, MismatchError, ShapeError, UnsupportedError, listed
from cnn.datatype import DataType, TensorType
from cnn.maps import FloatArray, Integers, Shape
from cnn.requantise import Requantiser, Requantising, check_requantiser

Number = TypeVar("Number", bound=np.generic)

ACCUMULATOR_BITS = 32


class Tensor(Protocol):
    """The description of a map of a quantised network, without its values; each ``cnn.quantized.QNode`` is one."""

    @property
    def name(self) -> str:
        """The name of the layer whose output the map is."""

    @property
    def shape(self) -> Shape:
        """The shape of the map."""

    @property
    def type(self) -> TensorType:
        """The integer datatype, scale and zero point of the map."""


class Operation(ABC):
    """The base class of the operations of float and of quantised networks.

    Attributes:
        input_counts: The least and the greatest number of maps that it reads; None has no bound.
        on_host: The host computes it, in float, after the last layer of the accelerator.
        passes_on: Its output has the type of its inputs, since it only moves or chooses values.
    """

    input_counts: ClassVar[tuple[int, int | None]] = (1, 1)
    on_host: ClassVar[bool] = False
    passes_on: ClassVar[bool] = False

    @abstractmethod
    def output_shape(self, read: Sequence[Shape]) -> Shape:
        """Return the shape of the operation's output for inputs of the shapes ``read``, at least one.

        Raises:
            ShapeError: Weights or inputs have another shape.
            RangeError: A number of the operation is outside the range for these inputs; MismatchError,
                ChoiceError and InvalidValueError as they say.
        """


class FloatOperation(Operation):
    """The base class of operations of a float network.

    Attributes:
        calibrated: Its output gets a scale of its own, from the range that calibration saw.
    """

    calibrated: ClassVar[bool] = False

    @abstractmethod
    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        """Return the operation's float32 output [channels, height, width] of ``shape``, as darknet computes it."""


class IntegerOperation(Operation):
    """The base class of operations of a quantised network."""

    @abstractmethod
    def run_integer(self, inputs: Sequence[Integers], read: Sequence[Tensor], output: Tensor) -> Integers:
        """Return the operation's output [channels, height, width] as integers in its datatype's numpy type.

        Args:
            inputs: The integers of the inputs, [channels, height, width] each.
            read: The inputs' shapes and types.
            output: The output's shape and type.
        """

    def check(self, read: Sequence[Tensor], output: Tensor) -> None:
        """Raise an error if the operation breaks a rule of the arithmetic contract.

        Unless an operation says otherwise, its inputs and its output have one type.
        """
        for source in read:
            if source.type != output.type:
                raise MismatchError(f"the type, since it passes {source.name!r} on,", output.type, source.type)


class Move(FloatOperation, IntegerOperation):
    """The base class of operations that move or repeat values without computing, for floats and for integers."""

    passes_on = True

    @abstractmethod
    def move(self, arrays: Sequence[npt.NDArray[Number]]) -> npt.NDArray[Number]:
        """Return the rearranged values [channels, height, width] of the input arrays, whose data type may be any."""

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        return self.move(inputs)

    def run_integer(self, inputs: Sequence[Integers], read: Sequence[Tensor], output: Tensor) -> Integers:
        return self.move(inputs)


class HostOperation(FloatOperation, IntegerOperation):
    """The base class of operations that the host computes in float, after the accelerator's last layer."""

    on_host = True

    def run_integer(self, inputs: Sequence[Integers], read: Sequence[Tensor], output: Tensor) -> Integers:
        """Raise UnsupportedError, because an operation of the host has no integer output."""
        raise UnsupportedError(type(self).__name__, "it is not an integer layer")

    def check(self, read: Sequence[Tensor], output: Tensor) -> None:
        super().check(read[:1], output)  # the host knows the scale of each map


class Accumulating(IntegerOperation):
    """The base class of integer operations that sum products in 32-bit accumulators and requantise the sums.

    Attributes:
        requantiser: The arithmetic that turns a sum into an output value.
    """

    requantiser: Requantising

    @abstractmethod
    def greatest_sums(self, read: Sequence[DataType], positions: int) -> npt.NDArray[np.int64]:
        """Return a bound of the accumulator per output channel or for all: Σ|w|·max|a|, for any order of adding.

        Args:
            read: The datatypes of the inputs.
            positions: Height · width of the first input.
        """

    def accumulator_bound(self, *read: DataType, positions: int = 1) -> int:
        """Return the greatest possible |acc + bias| of any channel: Σ|w|·max|a| + |bias|.

        Only a Requantiser adds its bias to the sum itself. A MultiplyShift adds its own to the product.
        """
        by = self.requantiser
        bias = np.abs(by.bias) if isinstance(by, Requantiser) else np.zeros(1, np.int64)
        return int(np.max(self.greatest_sums(read, positions) + bias))

    def check(self, read: Sequence[Tensor], output: Tensor) -> None:
        check_requantiser(self.requantiser, output.type.datatype, output.shape.channels)
        self.check_operands(read)
        positions = read[0].shape.height * read[0].shape.width
        bound = self.accumulator_bound(*(source.type.datatype for source in read), positions=positions)
        bits = bound.bit_length() + 1
        if bits > ACCUMULATOR_BITS:
            raise DoesNotFitError(
                f"acc + bias, which reaches Σ|w|·max|a| + |bias| = {bound},",
                "bits",
                bits,
                ACCUMULATOR_BITS,
                remedy="use fewer bits for weights or activations, or fewer inputs to this layer",
            )

    def check_operands(self, read: Sequence[Tensor]) -> None:
        """Raise an error if weights, multipliers or padding break the arithmetic contract."""


def check_one_shape(read: Sequence[Shape], what: str) -> Shape:
    """Return the common shape of an operation's inputs; ShapeError if the shapes differ."""
    if len(set(read)) > 1:
        raise ShapeError(what, listed(read), "one shape")
    return read[0]


def assert_never(op: NoReturn) -> NoReturn:
    """Close a match over all operations: mypy refuses the call if an operation has no case.

    ``typing.assert_never`` exists from Python 3.11 on.
    """
    raise AssertionError(f"{type(op).__name__} has no case")

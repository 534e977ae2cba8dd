"""Activations as layers of their own: float functions, and the integer lookup tables that the accelerator has
for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cnn.activations import FUNCTIONS
from cnn.maps import FloatArray, Integers, Shape
from cnn.ops.operation import FloatOperation, IntegerOperation, Tensor
from cnn.requantise import carried
from cnn.tables import Table, check_table, looked_up


@dataclass(frozen=True)
class Activate(FloatOperation):
    """A float activation as a layer of its own: a function by its name in ``FUNCTIONS``, with its parameters."""

    function: str
    parameters: tuple[float, ...] = ()

    calibrated = True

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return read[0]

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        values = FUNCTIONS[self.function].values(inputs[0].astype(np.float64), *self.parameters)
        return np.asarray(values, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class QActivate(IntegerOperation):
    """An integer activation as a layer of its own: a lookup table from input integers to output integers."""

    table: Table

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return read[0]

    def run_integer(self, inputs: Sequence[Integers], read: Sequence[Tensor], output: Tensor) -> Integers:
        return carried(looked_up(self.table, inputs[0], read[0].type.datatype), output.type.datatype)

    def check(self, read: Sequence[Tensor], output: Tensor) -> None:
        check_table(self.table, read[0].type.datatype, output.type.datatype)

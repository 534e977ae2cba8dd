"""Layers that packages add (docs/how-to/extend.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, MismatchError, ShapeError, ToolError, cut, listed
from cnn.extending.layers import Layer, layer_named
from cnn.maps import FloatArray, Integers, Shape
from cnn.ops.operation import FloatOperation, IntegerOperation, Tensor
from cnn.requantise import carried

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Custom(FloatOperation, IntegerOperation):
    """A layer whose functions another installed package supplies, by the layer's registered name, with its
    parameters."""

    layer: str
    parameters: tuple[int, ...] = ()

    input_counts = (1, None)
    passes_on = True

    @property
    def definition(self) -> Layer:
        """The functions that the package supplies for the layer; ChoiceError if no installed package has it."""
        return layer_named(self.layer)

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        """Return the shape of the layer's output, which the package's function computes.

        Raises:
            ShapeError: The layer reads another number of maps.
            ToolError: The layer's function failed, as it does for maps that the layer cannot read.
            InvalidValueError: The function returned something else than a shape.
        """
        layer = self.definition
        if len(read) != layer.inputs:
            raise ShapeError(f"the input of {self.layer}", f"{len(read)} maps", f"{layer.inputs} maps")
        try:
            shape = layer.shape(read, self.parameters)
        except Exception as error:  # a package's function may raise any
            raise ToolError(self.layer, f"cannot read {self._inputs(read)}: {cut(error)}") from error
        if not isinstance(shape, Shape):
            raise InvalidValueError(f"the shape of {self.layer}", shape, "a cnn.maps.Shape", remedy="mend its package")
        return shape

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        return self._values(inputs, shape)

    def run_integer(self, inputs: Sequence[Integers], read: Sequence[Tensor], output: Tensor) -> Integers:
        datatype = output.type.datatype
        values = self._values([array.astype(np.int64) for array in inputs], output.shape)
        return carried(np.clip(values, datatype.low, datatype.high), datatype)

    def check(self, read: Sequence[Tensor], output: Tensor) -> None:
        for source in read:
            if source.type.zero_point:
                raise MismatchError(f"the zero point of what {self.layer} reads", source.type.zero_point, 0)
        super().check(read, output)

    def _values(self, maps: Sequence[Values], shape: Shape) -> Values:
        """Return the output that the package's function computes; ToolError if it fails, ShapeError for another
        shape."""
        read = [Shape(*values.shape) for values in maps]
        try:
            values = np.asarray(self.definition.values(maps, self.parameters))
        except Exception as error:  # a package's function may raise any
            raise ToolError(self.layer, f"cannot compute values of {self._inputs(read)}: {cut(error)}") from error
        if values.shape != (shape.channels, shape.height, shape.width) or values.dtype != maps[0].dtype:
            came = "×".join(str(side) for side in values.shape)
            required = f"{maps[0].dtype} {shape}"
            subject = f"the output of {self.layer}"
            raise ShapeError(subject, f"{values.dtype} {came}", required, remedy="mend its package")
        return values

    def _inputs(self, read: Sequence[Shape]) -> str:
        parameters = f" with parameters {listed(self.parameters)}" if self.parameters else ""
        return f"{listed(read)}{parameters}"

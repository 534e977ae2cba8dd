"""Layers that other packages add (docs/how-to/extend.md): the output of each, of floats and integers alike.

A layer gives integers of the scale that it reads, as a pool or a concat does. So one function says what it makes of
both: it moves values, chooses among them or takes their signs off, and values(s · x) is s · values(x) for every s > 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError, InvalidValueError, ShapeError, ToolError, cut, listed
from cnn.extending.registry import Registry
from cnn.network import Custom, Shape

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Layer:
    """A layer of a package, by the name of its ``cnn.network.Custom``.

    Attributes:
        shape: Returns the output's shape, of the inputs' shapes and the parameters; raises ValueError for inputs that
            the layer cannot read.
        values: Returns the output, of the inputs [channels, height, width], all float32 or all int64, and the
            parameters.
        golden: The same as the body of a C++ function that returns a map_t (hls_templates/templates/golden) of
            ``const std::vector<const map_t *> &in`` and ``const std::vector<integer> &parameters``.
        inputs: The number of maps that it reads.
    """

    shape: Callable[[Sequence[Shape], tuple[int, ...]], Shape]
    values: Callable[[Sequence[Values], tuple[int, ...]], Values]
    golden: str
    inputs: int = 1


LAYERS: Registry[Layer] = Registry(
    "systolic.layers", {}, "a cnn.extending.layers.Layer", lambda value: isinstance(value, Layer)
)
"""By the name of ``cnn.network.Custom``. The project has none of its own."""


def layer_of(op: Custom) -> Layer:
    """Return the layer of an operation; ChoiceError if no installed package has it."""
    if op.layer not in LAYERS:
        raise ChoiceError("a layer of packages", op.layer, tuple(LAYERS), remedy="install the package that has it")
    return LAYERS[op.layer]


def shape_of(op: Custom, read: Sequence[Shape]) -> Shape:
    """Return the shape of the layer's output.

    Raises:
        ShapeError: The layer reads another number of maps.
        ToolError: The layer's function failed, as it does for maps that the layer cannot read.
        InvalidValueError: The function returned something else than a shape.
    """
    layer = layer_of(op)
    if len(read) != layer.inputs:
        raise ShapeError(f"the input of {op.layer}", f"{len(read)} maps", f"{layer.inputs} maps")
    try:
        shape = layer.shape(read, op.parameters)
    except Exception as error:  # whatever a package's function raises
        raise ToolError(op.layer, f"cannot read {_inputs(op, read)}: {cut(error)}") from error
    if not isinstance(shape, Shape):
        raise InvalidValueError(f"the shape of {op.layer}", shape, "a cnn.network.Shape", remedy="mend its package")
    return shape


def values_of(op: Custom, maps: Sequence[Values], shape: Shape) -> Values:
    """Return the layer's output of ``maps``, in their dtype; ToolError if it fails, ShapeError for another shape."""
    read = [Shape(*values.shape) for values in maps]
    try:
        values = np.asarray(layer_of(op).values(maps, op.parameters))
    except Exception as error:  # whatever a package's function raises
        raise ToolError(op.layer, f"cannot compute values of {_inputs(op, read)}: {cut(error)}") from error
    if values.shape != (shape.channels, shape.height, shape.width) or values.dtype != maps[0].dtype:
        came = "×".join(str(side) for side in values.shape)
        required = f"{maps[0].dtype} {shape}"
        raise ShapeError(f"the output of {op.layer}", f"{values.dtype} {came}", required, remedy="mend its package")
    return values


def _inputs(op: Custom, read: Sequence[Shape]) -> str:
    parameters = f" with parameters {listed(op.parameters)}" if op.parameters else ""
    return f"{listed(read)}{parameters}"

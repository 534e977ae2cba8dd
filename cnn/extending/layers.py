"""Layers that packages of others add (docs/how-to/extend.md): what each makes of maps, floats and integers alike.

A layer gives integers of the scale that it reads, as a pool or a concat does. So one function says what it makes of
both: it moves values, chooses among them or takes their signs off, and values(s · x) is s · values(x) for every s > 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import NetworkError, cut, listed, shown
from cnn.extending.registry import Registry
from cnn.network import Custom, Shape

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Layer:
    """A layer of a package, by the name of its ``cnn.network.Custom``.

    shape: shapes of what it reads, parameters → Shape of what it gives; ValueError says what it cannot read.
    values: maps [channels, height, width], all float32 or all int64, parameters → the map that it gives.
    golden: the same once more, as the body of a C++ function that gives a map_t (hls_templates/templates/golden) of
    ``const std::vector<const map_t *> &in`` and ``const std::vector<integer> &parameters``.
    inputs: how many maps it reads.
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
    """NetworkError where no package has it."""
    if op.layer not in LAYERS:
        known = f"packages have {listed(LAYERS)}" if LAYERS else "no package that is installed has one"
        raise NetworkError(f"there is no layer {shown(op.layer)}: {known}; install the package that has it")
    return LAYERS[op.layer]


def shape_of(op: Custom, read: Sequence[Shape]) -> Shape:
    """Of what the layer gives. NetworkError where it cannot read such maps, or gives no shape."""
    layer = layer_of(op)
    if len(read) != layer.inputs:
        raise NetworkError(f"{op.layer} reads {layer.inputs} map(s), not {len(read)}")
    try:
        shape = layer.shape(read, op.parameters)
    except Exception as error:  # whatever a package's function raises
        raise NetworkError(f"{op.layer} cannot read {_told(op, read)}: {cut(error)}") from error
    if not isinstance(shape, Shape):
        raise NetworkError(f"the shape that {op.layer} gives must be a cnn.network.Shape, not {shown(shape)}")
    return shape


def values_of(op: Custom, maps: Sequence[Values], shape: Shape) -> Values:
    """What the layer makes of ``maps``, in their dtype. NetworkError where that is no map of ``shape``."""
    read = [Shape(*values.shape) for values in maps]
    try:
        values = np.asarray(layer_of(op).values(maps, op.parameters))
    except Exception as error:  # whatever a package's function raises
        raise NetworkError(
            f"the values of {op.layer} cannot be worked out of {_told(op, read)}: {cut(error)}"
        ) from error
    if values.shape != (shape.channels, shape.height, shape.width) or values.dtype != maps[0].dtype:
        came = "×".join(str(side) for side in values.shape)
        raise NetworkError(
            f"the values of {op.layer} must be {maps[0].dtype} {shape}, not {values.dtype} {came}; mend its package"
        )
    return values


def _told(op: Custom, read: Sequence[Shape]) -> str:
    parameters = f" with parameters {listed(op.parameters)}" if op.parameters else ""
    return f"{listed(read)}{parameters}"

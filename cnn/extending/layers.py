"""Layers that other packages add (docs/how-to/extend.md). One function computes the output for floats and integers.

The output has the scale of the input, as for a pool or a concat. So the function may only move values, choose among
them or remove their signs: values(s · x) must be s · values(x) for every s > 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from boards.errors import ChoiceError
from cnn.extending.registry import Registry
from cnn.maps import Shape

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Layer:
    """A layer that an installed package supplies: functions for its output's shape and values, and its C++ golden
    model.

    Attributes:
        shape: Returns the output's shape from the inputs' shapes and the parameters. It raises ValueError for inputs
            that the layer cannot read.
        values: Returns the output from the inputs [channels, height, width], all float32 or all int64, and the
            parameters.
        golden: The same as the body of a C++ function that returns a map_t (hls_templates/templates/golden) from
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
"""The layers by the name in ``cnn.ops.Custom``. The project has none of its own."""


def layer_named(name: str) -> Layer:
    """Return the package-supplied layer of that name; ChoiceError if no installed package provides it."""
    if name not in LAYERS:
        raise ChoiceError("a layer of packages", name, tuple(LAYERS), remedy="install the package that provides it")
    return LAYERS[name]

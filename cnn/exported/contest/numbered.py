"""arr_0, arr_1 …: the arrays of a network's layers in order, as UltraNet's exporter saves them.

Each layer has its weights, then its bias if it has one. If a batch norm follows, its gamma, beta, mean, variance and
epsilon come next. The epsilon is a single number.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from itertools import count, takewhile
from math import prod
from pathlib import Path

import numpy as np

from boards.errors import ChoiceError, MismatchError
from cnn.maps import FloatArray
from cnn.stored.npz import array_headers, read_arrays

Shapes = Mapping[str, tuple[int, ...]]

_PARTS = {0: (False, False), 1: (True, False), 5: (False, True), 6: (True, True)}
"""The number of arrays after a layer's weights → whether the layer has a bias, and whether it has a batch norm."""


@dataclass(frozen=True)
class Parts:
    """The presence of a bias and of a batch norm for one layer in an .npz, in addition to its weights."""

    bias: bool
    norm: bool


def is_numbered(names: Container[str]) -> bool:
    """Return whether the arrays of an .npz are named by numbers, arr_0, arr_1 …, as UltraNet's exporter names them."""
    return "arr_0" in names


def layer_parts(shapes: Shapes, file: str) -> tuple[Parts, ...]:
    """Return, per layer with weights, whether an .npz has its bias and batch norm, found from names and shapes.

    Raises:
        ChoiceError: No layer has this number of arrays after its weights.
    """
    if not is_numbered(shapes):
        numbers = takewhile(lambda number: f"conv{number}_w" in shapes, count())
        return tuple(Parts(f"conv{number}_b" in shapes, f"bn{number}_gamma" in shapes) for number in numbers)
    names = list(takewhile(shapes.__contains__, (f"arr_{number}" for number in count())))
    starts = [number for number, name in enumerate(names) if len(shapes[name]) > 1]
    ends = [*starts[1:], len(names)]
    return tuple(_parts(end - start - 1, names[start], file) for start, end in zip(starts, ends, strict=True))


def _parts(extra_arrays: int, name: str, file: str) -> Parts:
    if extra_arrays not in _PARTS:
        what = f"the number of arrays after the weights {name}, a bias (1), a batch norm (5), both or neither,"
        raise ChoiceError(what, extra_arrays, tuple(_PARTS), where=file, remedy="export it again")
    return Parts(*_PARTS[extra_arrays])


def read_numbered(path: Path, shapes: Shapes, epsilon: float | None) -> tuple[dict[str, FloatArray], float | None]:
    """Return the arrays arr_0, arr_1 … of an .npz by the names convN_w, bnN_gamma …, and the batch norms' epsilon.

    A linear layer's matrix [outputs, inputs] becomes a window that covers the whole map.

    Args:
        path: The .npz.
        shapes: The shapes of the arrays by their names in the exported form, in the order of the file.
        epsilon: The epsilon that the file must have; None accepts any.

    Raises:
        MismatchError: A batch norm has another epsilon.
        SystolicError: ``read_arrays`` raised it.
    """
    names: list[str] = []
    for name in shapes:
        names += [name, name.replace("_var", "_eps")] if name.endswith("_var") else [name]
    stored = array_headers(path)
    files = {f"arr_{number}": name for number, name in enumerate(names)}
    stored_shapes = {numbered: _stored(shapes.get(name, ()), stored.get(numbered)) for numbered, name in files.items()}
    arrays = {files[numbered]: values for numbered, values in read_arrays(path, stored_shapes).items()}
    for name in (name for name in names if name not in shapes):
        value = float(str(arrays[name]))  # through text, so that a float32 of 1e-5 becomes the double 1e-5
        epsilon = value if epsilon is None else epsilon
        if not np.isclose(value, epsilon, rtol=1e-6):
            what, remedy = f"{name}, an epsilon of the network's batch norms,", "correct it in the network file"
            raise MismatchError(what, value, epsilon, where=path.name, remedy=remedy)
    return {name: arrays[name].reshape(shape) for name, shape in shapes.items()}, epsilon


def _stored(shape: tuple[int, ...], written: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the array shape that the file must have: ``shape``, or [outputs, inputs] for a stored matrix."""
    matrix = (shape[0], prod(shape[1:])) if len(shape) == 4 else shape
    return matrix if written == matrix else shape

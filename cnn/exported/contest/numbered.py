"""arr_0, arr_1 …: arrays in the order of a network's layers, as the exporter saves them.

Of each layer its weights, the bias where it has one, and where a batch norm follows gamma, beta, mean, variance and
epsilon, which is one number.
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
"""Arrays behind the weights → whether they are a bias, and a batch norm."""


@dataclass(frozen=True)
class Parts:
    """What an .npz has of one layer beside its weights."""

    bias: bool
    norm: bool


def is_numbered(names: Container[str]) -> bool:
    """Whether the arrays have numbers for names."""
    return "arr_0" in names


def layer_parts(shapes: Shapes, file: str) -> tuple[Parts, ...]:
    """Of each layer in order, from the arrays' names and shapes; ChoiceError if they are those of no layer."""
    if not is_numbered(shapes):
        numbers = takewhile(lambda number: f"conv{number}_w" in shapes, count())
        return tuple(Parts(f"conv{number}_b" in shapes, f"bn{number}_gamma" in shapes) for number in numbers)
    names = list(takewhile(shapes.__contains__, (f"arr_{number}" for number in count())))
    starts = [number for number, name in enumerate(names) if len(shapes[name]) > 1]
    ends = [*starts[1:], len(names)]
    return tuple(_parts(end - start - 1, names[start], file) for start, end in zip(starts, ends, strict=True))


def _parts(behind: int, name: str, file: str) -> Parts:
    if behind not in _PARTS:
        what = f"the number of arrays after the weights {name}, a bias (1), a batch norm (5), both or neither,"
        raise ChoiceError(what, behind, tuple(_PARTS), where=file, remedy="export it again")
    return Parts(*_PARTS[behind])


def read_numbered(path: Path, shapes: Shapes, epsilon: float | None) -> tuple[dict[str, FloatArray], float | None]:
    """The arrays of ``shapes``, by their names in that order, and the epsilon of the batch norms.

    epsilon: what it must be, None where the file says it. A matrix of a linear layer, [outputs, inputs], becomes a
    window of the whole map. MismatchError for another epsilon, other errors as of ``read_arrays``.
    """
    names: list[str] = []
    for name in shapes:
        names += [name, name.replace("_var", "_eps")] if name.endswith("_var") else [name]
    stored = array_headers(path)
    files = {f"arr_{number}": name for number, name in enumerate(names)}
    stored_shapes = {numbered: _stored(shapes.get(name, ()), stored.get(numbered)) for numbered, name in files.items()}
    arrays = {files[numbered]: values for numbered, values in read_arrays(path, stored_shapes).items()}
    for name in (name for name in names if name not in shapes):
        value = float(str(arrays[name]))  # 1e-5 in float32, as it was written
        epsilon = value if epsilon is None else epsilon
        if not np.isclose(value, epsilon, rtol=1e-6):
            what, remedy = f"{name}, an epsilon of the network's batch norms,", "correct it in the network file"
            raise MismatchError(what, value, epsilon, where=path.name, remedy=remedy)
    return {name: arrays[name].reshape(shape) for name, shape in shapes.items()}, epsilon


def _stored(shape: tuple[int, ...], written: tuple[int, ...] | None) -> tuple[int, ...]:
    """``shape``, or that of the matrix which stands for it."""
    matrix = (shape[0], prod(shape[1:])) if len(shape) == 4 else shape
    return matrix if written == matrix else shape

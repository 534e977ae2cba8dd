"""What simulating is in either style: a whole folder, a loaded library, layers compared with the golden model."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import SimulationError
from cnn.integer_model import Integers
from systolic.execution.build import Variant
from systolic.files import MANIFEST

MESSAGE_ROOM = 4096
"""Bytes of the sentence with which generated code stops."""


@dataclass(frozen=True)
class LayerResult:
    """One layer of a simulation: how many integers, and how many differ from the golden model."""

    name: str
    values: int
    mismatches: int
    first: tuple[int, int, int] | None  # (channel, row, column) of the first that differs


@dataclass(frozen=True, eq=False)
class Simulation:
    """``outputs``: the integers of every layer [channels, height, width], as the generated code left them."""

    layers: tuple[LayerResult, ...]
    outputs: tuple[Integers, ...]
    variant: Variant

    @property
    def mismatches(self) -> int:
        return sum(layer.mismatches for layer in self.layers)


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """While the files of a generated folder are read: SimulationError where one is missing or damaged."""
    try:
        yield
    except KeyError as error:
        raise SimulationError(f"{path} is not whole: {MANIFEST} lacks {error}; generate it again") from error
    except (OSError, ValueError, TypeError) as error:
        raise SimulationError(f"{path} is not whole: {error}; generate it again") from error


def load(path: Path) -> ctypes.CDLL:
    """A built simulation library."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise SimulationError(f"a library cannot be loaded ({error}); remove it and try again") from error


def said(message: ctypes.Array[ctypes.c_char]) -> str:
    """Why generated code stopped."""
    return message.value.decode("utf-8", "replace")


def check_picture(picture: npt.NDArray[np.uint8], to: Mapping[str, Any]) -> tuple[int, int, int]:
    """Channels, height and width of the manifest's input; SimulationError where the picture is not uint8 of these."""
    shape = (to["channels"], to["height"], to["width"])
    if picture.shape != shape or picture.dtype != np.uint8:
        raise SimulationError(f"the input is uint8 of shape {shape}, not {picture.dtype} of shape {picture.shape}")
    return shape


def compared(
    golden: Sequence[Integers | None],
    layers: Sequence[Mapping[str, Any]],
    outputs: Sequence[Integers],
    variant: Variant,
) -> Simulation:
    """golden: by node. outputs: [channels, height, width] of each of the manifest's ``layers``."""
    results = tuple(
        compare(layer["output_name"], golden[layer["node"]], output)
        for layer, output in zip(layers, outputs, strict=True)
    )
    return Simulation(results, tuple(outputs), variant)


def compare(name: str, wanted: Integers | None, found: Integers) -> LayerResult:
    if wanted is None or wanted.shape != found.shape:
        raise SimulationError(
            f"{name}: the golden model has {None if wanted is None else wanted.shape}, the design {found.shape}"
        )
    differs = wanted != found
    where = np.argwhere(differs)
    first = (int(where[0][0]), int(where[0][1]), int(where[0][2])) if len(where) else None
    return LayerResult(name, int(found.size), len(where), first)

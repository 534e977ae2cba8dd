"""What simulating is in either style: a whole folder, a loaded library, layers compared with the golden model."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boards.errors import SimulationError
from cnn.integer_model import Integers
from cnn.quantized import QuantizedNetwork
from host.contract.parts import Layer, Manifest, TensorMap
from systolic.execution.build import Variant

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
    except (OSError, ValueError, TypeError) as error:
        raise SimulationError(f"{path} is not whole: {error}; generate it again") from error


def check_nodes(manifest: Manifest, network: QuantizedNetwork) -> None:
    """SimulationError where a layer of the manifest is no node of the network: the folder holds files of two."""
    for layer in manifest.layers:
        if layer.node >= len(network.nodes):
            raise SimulationError(
                f"{layer.name} is node {layer.node}, network.npz has {len(network.nodes)} nodes; generate it again"
            )


def load(path: Path) -> ctypes.CDLL:
    """A built simulation library."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise SimulationError(f"a library cannot be loaded ({error}); remove it and try again") from error


def said(message: ctypes.Array[ctypes.c_char]) -> str:
    """Why generated code stopped."""
    return message.value.decode("utf-8", "replace")


def check_picture(picture: npt.NDArray[np.uint8], region: TensorMap) -> None:
    """SimulationError where the picture is not uint8 of the shape of the manifest's input."""
    if picture.shape != region.shape or picture.dtype != np.uint8:
        raise SimulationError(
            f"the input is uint8 of shape {region.shape}, not {picture.dtype} of shape {picture.shape}"
        )


def compared(
    golden: Sequence[Integers | None],
    layers: Sequence[Layer],
    outputs: Sequence[Integers],
    variant: Variant,
) -> Simulation:
    """golden: by node. outputs: [channels, height, width] of each of the manifest's ``layers``."""
    results = tuple(
        compare(layer.name, golden[layer.node], output) for layer, output in zip(layers, outputs, strict=True)
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

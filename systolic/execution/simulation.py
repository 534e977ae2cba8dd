"""What simulating is in either style: a whole folder, a loaded library, layers compared with the golden model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from boards.errors import SimulationError
from cnn.integer_model import Integers
from cnn.quantized import QuantizedNetwork
from host.contract.parts import Layer, Manifest
from systolic.execution.build import Variant


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


def compare(name: str, expected: Integers | None, actual: Integers) -> LayerResult:
    """How many integers differ, and the first. SimulationError where the shapes do."""
    if expected is None or expected.shape != actual.shape:
        raise SimulationError(
            f"{name}: the golden model has {None if expected is None else expected.shape}, the design {actual.shape}"
        )
    differs = expected != actual
    places = np.argwhere(differs)
    first = (int(places[0][0]), int(places[0][1]), int(places[0][2])) if len(places) else None
    return LayerResult(name, int(actual.size), len(places), first)

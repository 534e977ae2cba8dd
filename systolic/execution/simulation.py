"""What simulating is in either style: a whole folder, a loaded library, layers compared with the golden model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from boards.errors import FileAccessError, MismatchError, RangeError, ShapeError
from cnn.maps import Integers
from cnn.quantized import QuantizedNetwork
from cnn.stored.quantized_file import FILE_LIMIT, from_npz
from host.contract.codec import read_bounded
from host.contract.parts import Manifest, ManifestLayer
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
    """``outputs``: the integers of every layer [channels, height, width], as the generated code left them. cycles: of
    every layer, of all frames of a batch, where the execution counts them, as that of SystemVerilog does; pass_cycles:
    of every pass."""

    layers: tuple[LayerResult, ...]
    outputs: tuple[Integers, ...]
    variant: Variant
    cycles: tuple[int, ...] = ()
    pass_cycles: tuple[int, ...] = ()

    @property
    def mismatches(self) -> int:
        return sum(layer.mismatches for layer in self.layers)


NETWORK = "network.npz"


def read_network(path: Path, manifest: Manifest) -> QuantizedNetwork:
    """Return the integers of a generated folder.

    Raises:
        FileAccessError: The file cannot be read.
        DamagedFileError: It is damaged.
        RangeError, MismatchError: It has other maps than the manifest says: the folder holds files of two designs.
    """
    try:
        data = read_bounded(path / NETWORK, FILE_LIMIT)
    except OSError as error:
        raise FileAccessError(
            str(path / NETWORK), f"cannot be read: {error.strerror}", "network", remedy="generate the design again"
        ) from error
    network = from_npz(data, NETWORK)
    for name, node, tensor in (("input", 0, manifest.input), *((x.name, x.node, x.output) for x in manifest.layers)):
        if node >= len(network.nodes):
            raise RangeError(
                f"the node of {name} in {NETWORK}", node, 0, len(network.nodes) - 1, remedy="generate the design again"
            )
        source = network.nodes[node]
        shape, form = source.shape, source.type
        expected = (*tensor.shape, tensor.datatype, tensor.scale, tensor.zero_point)
        actual = (shape.channels, shape.height, shape.width, form.datatype.name, form.scale, form.zero_point)
        if actual != expected:
            raise MismatchError(f"the map of {name} in {NETWORK}", actual, expected, remedy="generate the design again")
    return network


def compared(
    golden: Sequence[Integers | None],
    layers: Sequence[ManifestLayer],
    outputs: Sequence[Integers],
    variant: Variant,
) -> Simulation:
    """golden: by node. outputs: [channels, height, width] of each of the manifest's ``layers``."""
    results = tuple(
        compare(layer.name, golden[layer.node], output) for layer, output in zip(layers, outputs, strict=True)
    )
    return Simulation(results, tuple(outputs), variant)


def compare(name: str, expected: Integers | None, actual: Integers) -> LayerResult:
    """Return how many integers differ, and the first that does; ShapeError if the shapes differ."""
    if expected is None or expected.shape != actual.shape:
        golden = "no map in the golden model" if expected is None else expected.shape
        raise ShapeError(f"the design's map of {name}", actual.shape, golden)
    differs = expected != actual
    places = np.argwhere(differs)
    first = (int(places[0][0]), int(places[0][1]), int(places[0][2])) if len(places) else None
    return LayerResult(name, int(actual.size), len(places), first)

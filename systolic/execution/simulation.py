"""The parts of a simulation that both styles share: reading the network, and comparing it with the golden model."""

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
    """The number of integers of one layer that differ from the golden model, and the position of the first one.

    Attributes:
        name: The name of the layer.
        values: The number of integers.
        mismatches: The number of integers that differ.
        first: The (channel, row, column) of the first integer that differs.
    """

    name: str
    values: int
    mismatches: int
    first: tuple[int, int, int] | None


@dataclass(frozen=True, eq=False)
class Simulation:
    """The integers of every layer that the generated code computed for one frame, and their mismatches.

    Attributes:
        layers: The comparison of each layer.
        outputs: The integers of each layer that the generated code wrote, of shape (channels, rows, columns).
        variant: The variant of the simulation library.
        cycles: The counted cycles of each layer for all frames of the batch. Empty except for SystemVerilog.
        pass_cycles: The counted cycles of each pass. Empty except for SystemVerilog.
    """

    layers: tuple[LayerResult, ...]
    outputs: tuple[Integers, ...]
    variant: Variant
    cycles: tuple[int, ...] = ()
    pass_cycles: tuple[int, ...] = ()

    @property
    def mismatches(self) -> int:
        """The number of integers in all layers that differ from the golden model."""
        return sum(layer.mismatches for layer in self.layers)


NETWORK = "network.npz"


def read_network(path: Path, manifest: Manifest) -> QuantizedNetwork:
    """Read the quantised network of a design's folder (network.npz), and check it against the manifest.

    Raises:
        FileAccessError: The file cannot be read.
        DamagedFileError: The file is damaged.
        RangeError, MismatchError: Its feature maps differ from the manifest, because the folder has files of two
            designs.
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
    """Compare the integers of executed layers with the golden model, and return both with the mismatches.

    Args:
        golden: The feature maps of the golden model, by node.
        layers: The executed layers of the manifest.
        outputs: The executed integers of each of these layers, of shape (channels, rows, columns).
        variant: The variant of the simulation library.
    """
    results = tuple(
        compare(layer.name, golden[layer.node], output) for layer, output in zip(layers, outputs, strict=True)
    )
    return Simulation(results, tuple(outputs), variant)


def compare(name: str, expected: Integers | None, actual: Integers) -> LayerResult:
    """Return how many integers of a layer differ from the golden model, and the position of the first.

    Raises:
        ShapeError: The shapes differ.
    """
    if expected is None or expected.shape != actual.shape:
        golden = "no map in the golden model" if expected is None else expected.shape
        raise ShapeError(f"the design's map of {name}", actual.shape, golden)
    differs = expected != actual
    places = np.argwhere(differs)
    first = (int(places[0][0]), int(places[0][1]), int(places[0][2])) if len(places) else None
    return LayerResult(name, int(actual.size), len(places), first)

"""Comparison of each layer's map with the golden model's integers, which the generator stored with the weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from boards.errors import AcceleratorError, StateError
from host.contract.parts import Manifest, ManifestLayer
from host.contract.tensors import Integers, Pixels
from host.styles import STYLES, CheckFrame


@dataclass(frozen=True)
class LayerCheck:
    """The result of comparing one layer's output with the golden model, over all frames of a batch.

    Attributes:
        layer: The layer.
        values: Number of integers compared.
        mismatches: Number of integers that differ.
        first: Position (channel, row, column) of the first integer that differs, or None if all are equal.
        actual: The accelerator's integer at that position.
        expected: The golden model's integer at that position.
        frame: Number of the frame, within the batch, that holds that position.
    """

    layer: ManifestLayer
    values: int
    mismatches: int
    first: tuple[int, int, int] | None
    actual: int
    expected: int
    frame: int = 0


@dataclass(frozen=True)
class Check:
    """The result of comparing a design's layers with the golden model, layer by layer. It ends at the first layer that
    differs.

    Attributes:
        network: The network's name.
        layers: The layers that were compared, in order.
        error: The error that ended the comparison before the last layer, or "".
    """

    network: str
    layers: tuple[LayerCheck, ...]
    error: str = ""

    @property
    def first_wrong(self) -> LayerCheck | None:
        return next((layer for layer in self.layers if layer.mismatches), None)

    @property
    def passed(self) -> bool:
        return not self.error and self.first_wrong is None

    def __str__(self) -> str:
        wrong = self.first_wrong
        if wrong is not None and wrong.first is not None:
            channel, row, column = wrong.first
            place = f"in frame {wrong.frame} of the batch at" if wrong.frame else "at"
            return (
                f"{self.network}: the first layer that differs from the golden model is {wrong.layer.name} "
                f"({wrong.layer.source}): {wrong.mismatches:,} of {wrong.values:,} integers, first {place} channel "
                f"{channel}, row {row}, column {column}: {wrong.actual}, not {wrong.expected}; "
                f"{self.layers.index(wrong)} layers before it are right in every bit"
            )
        if self.error:
            return f"{self.network}: {len(self.layers)} layers are right in every bit, then: {self.error}"
        total = sum(layer.values for layer in self.layers)
        return f"{self.network}: {len(self.layers)} layers, {total:,} integers: every bit equal to the golden model's"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(check.layer.name)}</td><td>{escape(check.layer.source)}</td><td>{check.values:,}</td>"
            f"<td>{check.mismatches:,}</td></tr>"
            for check in self.layers
        )
        head = "<tr><th>layer</th><th>source</th><th>integers</th><th>different</th></tr>"
        return f"<p>{escape(str(self))}</p><table>{head}{rows}</table>"


def compare(network: str, layers: Iterable[tuple[ManifestLayer, Integers]], expected: Iterator[Integers]) -> Check:
    """Return the comparison of the layers' outputs with the golden model's integers, up to the first layer that
    differs.

    Args:
        network: The network's name, for the report.
        layers: Runs one layer per step and yields its map ``(channels, height, width)``, or one such map per frame, all
            of the same picture. If a layer fails, the error becomes part of the report.
        expected: The golden model's map of each layer.
    """
    checks: list[LayerCheck] = []
    try:
        for layer, integers in layers:
            checks.append(_compare(layer, integers, next(expected)))
            if checks[-1].mismatches:
                break
    except (AcceleratorError, StateError) as error:
        return Check(network, tuple(checks), str(error))
    return Check(network, tuple(checks))


def check_frame(manifest: Manifest, folder: Path) -> CheckFrame:
    """Return the design's test frame and the golden model's outputs for it. MissingValueError or MismatchError if the
    folder has none."""
    return STYLES[manifest.style].check_frame(manifest, folder)


def check_picture(manifest: Manifest, folder: Path) -> Pixels:
    """Return the network input of the design's test frame, uint8 ``(channels, height, width)``."""
    return check_frame(manifest, folder)[0]


def golden_maps(manifest: Manifest, folder: Path) -> Iterator[Integers]:
    """Return the golden model's output ``(channels, height, width)`` of each compared layer, for the design's test
    frame."""
    return check_frame(manifest, folder)[1]


def _compare(layer: ManifestLayer, actual: Integers, expected: Integers) -> LayerCheck:
    frames = actual.reshape(-1, *expected.shape)
    differs = np.argwhere(frames != expected)
    if not len(differs):
        return LayerCheck(layer, int(actual.size), 0, None, 0, 0)
    frame, channel, row, column = (int(value) for value in differs[0])
    place = (channel, row, column)
    return LayerCheck(
        layer, int(actual.size), len(differs), place, int(frames[frame][place]), int(expected[place]), frame
    )

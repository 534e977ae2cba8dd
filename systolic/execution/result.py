"""The result of a simulation: the mismatches with the golden model, and the SQNR against the float network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np

from boards.progress import Progress, silent
from cnn.float_model import run_float
from cnn.integer_model import dequantise, run_integer
from cnn.maps import Integers
from cnn.quantisation.fidelity import heads, origins, sqnr_db
from host.vision.picture import Pixels
from systolic.evaluation.fidelity import Tried, rounded, warning_of, weight_bits
from systolic.execution.build import Variant
from systolic.execution.simulation import LayerResult, Simulation
from systolic.golden import checksums, first_difference, run_golden
from systolic.loading import reload, trained_integers
from systolic.report.page import html_table
from systolic.report.tables import Cell, table
from systolic.styles.registry import execute
from systolic.styles.style import OpenedDesign


@dataclass(frozen=True)
class GoldenProgram:
    """The comparison of the integers of the standalone C++ golden program with the numpy golden model.

    Attributes:
        first_difference: The first layer in which they differ, or None if they agree in all layers.
    """

    first_difference: str | None

    @property
    def agrees(self) -> bool:
        """Return whether the C++ golden program and the numpy golden model agree in all layers."""
        return self.first_difference is None


@dataclass(frozen=True, eq=False)
class FrameResult:
    """The result of simulating one frame: mismatches with the golden model, and SQNR per layer.

    Attributes:
        network: The name of the network.
        simulation: The executed integers, compared with the golden model.
        noise_db: The SQNR of each layer's integers against the float network in dB. None for a layer that is all zeros
            or exact.
        golden: The comparison of the standalone golden program. None if the program was not run.
        warning: A sentence if the SQNR of a head is too low, else "".
    """

    network: str
    simulation: Simulation
    noise_db: tuple[float | None, ...]
    golden: GoldenProgram | None = None
    warning: str = ""

    @property
    def mismatches(self) -> int:
        """The number of integers in all layers that differ from the golden model."""
        return self.simulation.mismatches

    @property
    def right(self) -> bool:
        """Return whether every integer equals the golden model, and the standalone program agrees if it was run."""
        return self.mismatches == 0 and (self.golden is None or self.golden.agrees)

    def values(self) -> dict[str, Any]:
        """Return the simulated frame as a JSON object.

        {network, variant, layers: [{name, values, mismatches, first, sqnr_db, cycles}], mismatches, golden_program}.
        Only engines in SystemVerilog count ``cycles``; for the others they are null.
        """
        cycles: Sequence[int | None] = self.simulation.cycles or [None] * len(self.simulation.layers)
        layers = zip(self.simulation.layers, self.noise_db, cycles, strict=True)
        values: dict[str, Any] = {
            "network": self.network,
            "variant": self.simulation.variant.name,
            "layers": [{**asdict(layer), "sqnr_db": noise, "cycles": count} for layer, noise, count in layers],
            "mismatches": self.mismatches,
        }
        if self.warning:
            values["warning"] = self.warning
        if self.golden is not None:
            differs = self.golden.first_difference
            values["golden_program"] = {"agrees": self.golden.agrees, "first_difference": differs}
        return values

    def rows(self) -> list[list[Cell]]:
        """Return the table's rows, one per layer; ``head`` has the columns."""
        cycles = [[count] for count in self.simulation.cycles] or [[] for _ in self.simulation.layers]
        layers = zip(self.simulation.layers, self.noise_db, cycles, strict=True)
        return [
            [layer.name, layer.values, layer.mismatches, noise, *counted, _where(layer)]
            for layer, noise, counted in layers
        ]

    def head(self) -> tuple[str, ...]:
        """Return the titles of the columns of ``rows``."""
        return (*HEAD, *(["cycles"] if self.simulation.cycles else []), "")

    def verdict(self) -> str:
        """Return sentences with the number of mismatches and whether every integer is equal."""
        total = sum(layer.values for layer in self.simulation.layers)
        verdict = "every bit equal" if self.mismatches == 0 else "THE DESIGN IS NOT RIGHT"
        golden = ""
        if self.golden is not None:
            sentence = (
                "agrees in every layer" if self.golden.agrees else f"DIFFERS, first in {self.golden.first_difference}"
            )
            golden = f"\nthe standalone C++ golden program {sentence}"
        executed = f"executed {self.simulation.variant.name} code"
        counted = ""
        if self.simulation.cycles:
            executed = "executed SystemVerilog under Verilator"
            counted = f"\n{sum(self.simulation.cycles):,} cycles counted, including the cycles that wait for DDR"
        return (
            f"{self.mismatches:,} mismatches in {total:,} values: {verdict} ({executed} "
            f"against the golden model; SQNR against the float network){golden}{counted}"
            + (f"\nbut {self.warning}" if self.warning else "")
        )

    def text(self) -> str:
        """Return the table of the layers and the verdict for a terminal."""
        return f"{table(self.head(), self.rows())}\n\n{self.verdict()}"

    __repr__ = text


HEAD = ("layer", "values", "mismatches", "SQNR dB")


def _where(layer: LayerResult) -> str:
    return "" if layer.first is None else "first at channel {}, row {}, column {}".format(*layer.first)


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """The result of simulating one start of a design: one frame, or the frames of a batch."""

    network: str
    frames: tuple[FrameResult, ...]

    @property
    def mismatches(self) -> int:
        """The number of integers in all layers and frames that differ from the golden model."""
        return sum(frame.mismatches for frame in self.frames)

    @property
    def right(self) -> bool:
        """Return whether every integer of every frame equals the golden model."""
        return all(frame.right for frame in self.frames)

    @property
    def layers(self) -> tuple[LayerResult, ...]:
        """The comparison of each layer of the first frame with the golden model."""
        return self.frames[0].simulation.layers

    @property
    def outputs(self) -> tuple[Integers, ...]:
        """The integers of every layer of the first frame, each of shape (channels, rows, columns)."""
        return self.frames[0].simulation.outputs

    def values(self) -> dict[str, Any]:
        """Return the JSON object of one frame, or for a batch {network, batch, frames, mismatches}."""
        if len(self.frames) == 1:
            return self.frames[0].values()
        return {
            "network": self.network,
            "batch": len(self.frames),
            "frames": [frame.values() for frame in self.frames],
            "mismatches": self.mismatches,
        }

    def text(self) -> str:
        """Return one table of layers per frame, each with the mismatches, for a terminal."""
        if len(self.frames) == 1:
            return self.frames[0].text()
        count = len(self.frames)
        return "\n\n".join(f"frame {number} of {count}\n{frame.text()}" for number, frame in enumerate(self.frames, 1))

    __repr__ = text

    def _repr_html_(self) -> str:
        return "".join(
            f"<p>{escape(frame.verdict())}</p>{html_table(frame.head(), frame.rows())}" for frame in self.frames
        )


def simulate(
    design: OpenedDesign,
    pictures: Sequence[Pixels],
    variant: Variant = Variant(),  # noqa: B008 (frozen)
    golden: bool = False,
    progress: Progress = silent,
) -> SimulationResult:
    """Execute one start of a design, and compare every layer's integers with the golden model.

    Args:
        design: The design.
        pictures: The input images, uint8 of shape (channels, rows, columns). The last image is repeated if the batch
            has more frames.
        variant: The variant of the simulation library.
        golden: Whether to also compile and run the standalone C++ golden program.

    Raises:
        SystolicError: An error of ``Style.execute``.
    """
    simulations = execute(design, pictures, variant, progress)
    progress("float reference")
    filled = [*pictures, *[pictures[-1]] * (len(simulations) - len(pictures))]
    programs = [_golden_program(design, picture, progress) if golden else None for picture in pictures]
    programs += programs[-1:] * (len(simulations) - len(pictures))
    frames = zip(filled, simulations, programs, strict=True)
    return SimulationResult(design.manifest.network, tuple(_frame(design, *frame) for frame in frames))


def _frame(design: OpenedDesign, picture: Pixels, simulation: Simulation, golden: GoldenProgram | None) -> FrameResult:
    noise = noise_of(design, picture, simulation)
    return FrameResult(design.manifest.network, simulation, noise, golden, _warning(design, noise))


def _warning(design: OpenedDesign, noise_db: Sequence[float | None]) -> str:
    """Return a warning if the SQNR of an output layer (head) is too low, else "".

    A network that was quantised by training has no warning, because it does not approximate a float network.
    """
    if trained_integers(design.path):
        return ""
    outputs = heads(design.network)
    layers = zip(design.manifest.layers, noise_db, strict=True)
    tried = Tried(bits=weight_bits(design.network), generated=True)
    return warning_of({layer.name: ratio for layer, ratio in layers if layer.node in outputs}, tried)


def noise_of(design: OpenedDesign, picture: Pixels, simulation: Simulation) -> tuple[float | None, ...]:
    """Return the SQNR of each layer in dB against the float network. None for a layer that copies a part of a map.

    Args:
        design: The design.
        picture: The input image, uint8 of shape (channels, rows, columns).
        simulation: The executed integers.
    """
    network = reload(design.path)
    origin = origins(network, design.network)
    floats = run_float(network, picture.astype(np.float32) / np.float32(255))
    ratios = []
    for layer, output in zip(design.manifest.layers, simulation.outputs, strict=True):
        node = design.network.nodes[layer.node]
        exact = floats[origin[layer.node]]
        whole = exact.size == output.size
        ratios.append(rounded(sqnr_db(exact, dequantise(output, node.type))) if whole else None)
    return tuple(ratios)


def _golden_program(design: OpenedDesign, picture: Pixels, progress: Progress) -> GoldenProgram:
    progress("compiling and running the standalone C++ golden program")
    expected = checksums(design.network, run_integer(design.network, picture))
    return GoldenProgram(first_difference(expected, run_golden(design.path / "golden", picture)))

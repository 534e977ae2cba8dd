"""The systolic style's implementation of the interface ``Style``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from boards.board import Board
from boards.errors import UnsupportedError
from boards.progress import Progress
from cnn.network import Network
from cnn.quantized import QuantizedNetwork
from host.contract.parts import Manifest
from host.vision.picture import Pixels
from scheduler.systolic.engines.language import language_named
from scheduler.systolic.network.refusals import check_mappable
from systolic.choices import STYLES
from systolic.execution.build import Variant
from systolic.execution.simulation import Simulation
from systolic.execution.waves import Recording, layer_named, recording_of, without_signals
from systolic.model import Calibration, DesignInputs, Model
from systolic.option import Option
from systolic.styles.estimates import Estimates
from systolic.styles.systolic.arguments import ARGUMENTS
from systolic.styles.systolic.counts import SystolicCounts, count
from systolic.styles.systolic.cycles import SystolicTrace
from systolic.styles.systolic.exploration import explore
from systolic.styles.systolic.generation.estimates import estimates
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.generation.plan import SystolicPlan
from systolic.styles.systolic.mapping import SystolicMapping
from systolic.styles.systolic.measure import check_timeline
from systolic.styles.systolic.options import SystolicOptions, check_engine, options_from
from systolic.styles.systolic.simulate import SystolicDesign, open_design, simulate_batch


class SystolicStyle:
    """The systolic style: one array of PEs, and a program whose passes each compute a column tile of a layer."""

    name = "systolic"
    summary = STYLES["systolic"]
    arguments: tuple[Option, ...] = ARGUMENTS
    options = SystolicOptions

    def options_from(self, options: argparse.Namespace) -> SystolicOptions:
        """Return the systolic style's options of a parsed ``systolic generate`` command line."""
        return options_from(options)

    def prepared(self, model: Model, options: SystolicOptions) -> Model:
        """Return the model unchanged: no option of this style moves work between accelerator and host."""
        return model

    def check_layers(self, network: Network | QuantizedNetwork) -> None:
        """Raise SeveralFaultsError with all layers that the array cannot compute."""
        check_mappable(network)

    def calibration_for(
        self, calibration: Calibration, board: Board, clock_mhz: float | None, options: SystolicOptions
    ) -> Calibration:
        """Return the calibration unchanged; UnsupportedError if it chooses bits per layer.

        Raises:
            UnsupportedError: Bits are to be chosen layer by layer. The array has one format for all layers, so fewer
                bits in one layer would lose accuracy and save nothing.
        """
        if calibration.mixed is not None:
            raise UnsupportedError(
                "--mixed, bits by layer, in the systolic style",
                "the array has one format for all layers, and only a pipeline has hardware for each",
                remedy="take --style streaming, or --bits",
            )
        return calibration

    def map(
        self,
        network: QuantizedNetwork,
        board: Board,
        clock_mhz: float | None,
        options: SystolicOptions,
        progress: Progress,
    ) -> SystolicMapping:
        """Return the best schedule at ``clock_mhz``, or at the clock with the least time per frame."""
        check_engine(options.engine, options.dsp_clock)
        progress("scheduling")
        return explore(network, board, clock_mhz, options, progress=progress)

    def generate(
        self, mapping: SystolicMapping, inputs: DesignInputs, options: SystolicOptions, progress: Progress
    ) -> SystolicPlan:
        """Return the design's files in memory: the engine, its program and its weight images."""
        progress("generating")
        return SystolicPlan(mapping, generate(mapping, inputs))

    def open(self, path: Path, manifest: Manifest) -> SystolicDesign:
        """Read the folder of a generated systolic design; see ``open_design``."""
        return open_design(path, manifest)

    def estimates(self, design: SystolicDesign) -> Estimates:
        """Return the estimated DSPs of each process of the engine."""
        return estimates(design)

    def execute(
        self, design: SystolicDesign, pictures: Sequence[Pixels], variant: Variant, progress: Progress
    ) -> tuple[Simulation, ...]:
        """Execute one batch, and return the compared integers of each frame."""
        return simulate_batch(design, pictures, variant, progress)

    def trace(self, design: SystolicDesign, picture: Pixels, progress: Progress) -> SystolicTrace:
        """Execute one batch of copies of the picture on the C++ engine, and record its reads and writes."""
        return SystolicTrace.of(design, picture, progress)

    def count(
        self, design: SystolicDesign, picture: Pixels, compare_with_hls: bool, progress: Progress
    ) -> SystolicCounts:
        """Count the cycles of one simulated batch in SystemVerilog. Raises UnsupportedError for C++."""
        if self.is_traced(design):
            raise UnsupportedError(
                f"counting cycles of {design.path}",
                "it holds an engine in C++, whose cycles are traced",
                remedy="leave --hls out",
            )
        return count(design, picture, compare_with_hls, progress)

    def is_traced(self, design: SystolicDesign) -> bool:
        """Return whether the engine is in C++, whose cycles are traced instead of counted."""
        return language_named(design.manifest.array.engine).is_traced

    def check_timeline(self, design: SystolicDesign, layer: str | None) -> None:
        """Raise ChoiceError if ``layer`` is neither None nor the name of a layer."""
        check_timeline(design.manifest.layers, layer)

    def recording(self, design: SystolicDesign, layer: str, path: Path | None) -> Recording:
        """Return which signals to record of an engine in SystemVerilog; see ``Style.recording``."""
        if self.is_traced(design):
            raise without_signals(design.path)
        chosen = layer_named(design.manifest.layers, layer)
        return recording_of(chosen.name, range(chosen.first_pass, chosen.last_pass + 1), path)

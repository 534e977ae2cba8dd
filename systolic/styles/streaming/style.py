"""The streaming style's implementation of the interface ``Style``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from boards.board import Board
from boards.errors import RangeError, UnsupportedError
from boards.progress import Progress
from cnn.network import Network
from cnn.quantized import QuantizedNetwork
from host.contract.parts import Manifest
from host.vision.picture import Pixels
from scheduler.streaming.refusals import check_mappable
from systolic.choices import STYLES
from systolic.evaluation.mixed import Pipeline
from systolic.execution.build import Variant
from systolic.execution.simulation import Simulation
from systolic.execution.waves import Recording
from systolic.model import Calibration, DesignInputs, Model, with_softmax
from systolic.styles.estimates import Estimates
from systolic.styles.streaming.arguments import ARGUMENTS
from systolic.styles.streaming.cycles import StreamingTrace
from systolic.styles.streaming.exploration import explore
from systolic.styles.streaming.flow import generate_with_fifos
from systolic.styles.streaming.generation.estimates import estimates
from systolic.styles.streaming.generation.plan import StreamingPlan
from systolic.styles.streaming.mapping import StreamingMapping
from systolic.styles.streaming.measure import check_timeline
from systolic.styles.streaming.options import StreamingOptions, options_from
from systolic.styles.streaming.simulate import StreamingDesign, open_design, simulate
from systolic.styles.style import Counts


class StreamingStyle:
    """The streaming style: a pipeline in which every layer has its own hardware, and all layers work at once."""

    name = "streaming"
    summary = STYLES["streaming"]
    arguments = ARGUMENTS
    options = StreamingOptions

    def options_from(self, options: argparse.Namespace) -> StreamingOptions:
        """Return the streaming options of a parsed ``systolic generate`` command line."""
        return options_from(options)

    def prepared(self, model: Model, options: StreamingOptions) -> Model:
        """Return the model, with its final softmax moved to the pipeline if the options ask for that."""
        return with_softmax(model, options.softmax)

    def check_layers(self, network: Network | QuantizedNetwork) -> None:
        """Raise SeveralFaultsError with all layers that a pipeline cannot compute."""
        check_mappable(network)

    def calibration_for(
        self, calibration: Calibration, board: Board, clock_mhz: float | None, options: StreamingOptions
    ) -> Calibration:
        """Return the calibration. If it chooses bits per layer, this board and options set the frame rate."""
        if calibration.mixed is None or calibration.pipeline is not None:
            return calibration
        return replace(calibration, pipeline=Pipeline(board, clock_mhz, options))

    def map(
        self,
        network: QuantizedNetwork,
        board: Board,
        clock_mhz: float | None,
        options: StreamingOptions,
        progress: Progress,
    ) -> StreamingMapping:
        """Return the folding that the options ask for, at ``clock_mhz`` or the board's target clock."""
        progress("folding")
        return explore(network, board, clock_mhz, options, progress)

    def generate(
        self, mapping: StreamingMapping, inputs: DesignInputs, options: StreamingOptions, progress: Progress
    ) -> StreamingPlan:
        """Return the pipeline's files in memory. A trace sizes its FIFOs, unless the options keep the estimates."""
        return generate_with_fifos(mapping, inputs, options, progress)

    def open(self, path: Path, manifest: Manifest) -> StreamingDesign:
        """Read the folder of a generated pipeline; see ``open_design``."""
        return open_design(path, manifest)

    def estimates(self, design: StreamingDesign) -> Estimates:
        """Return the estimated DSPs and memories of each process of the pipeline."""
        return estimates(design)

    def execute(
        self, design: StreamingDesign, pictures: Sequence[Pixels], variant: Variant, progress: Progress
    ) -> tuple[Simulation, ...]:
        """Execute one frame and return its integers. Raises RangeError if there is not exactly one picture."""
        if len(pictures) != 1:
            raise RangeError(f"the number of pictures that {design.path} takes at a time", len(pictures), 1, 1)
        return (simulate(design, pictures[0], variant, progress),)

    def trace(self, design: StreamingDesign, picture: Pixels, progress: Progress) -> StreamingTrace:
        """Execute a few frames of the picture in a row, and record each read and write of every process."""
        return StreamingTrace.of(design, picture, progress)

    def count(self, design: StreamingDesign, picture: Pixels, compare_with_hls: bool, progress: Progress) -> Counts:
        """Raise UnsupportedError: only a design in SystemVerilog counts cycles, and a pipeline is in C++."""
        raise UnsupportedError(
            f"counting cycles of {design.path}",
            "it holds a pipeline in C++, whose cycles are traced",
            remedy="leave --hls out",
        )

    def is_traced(self, design: StreamingDesign) -> bool:
        """Return True: a pipeline's cycles are traced in its C++."""
        return True

    def check_timeline(self, design: StreamingDesign, layer: str | None) -> None:
        """Raise UnsupportedError if ``layer`` names a layer: a timeline shows the whole pipeline."""
        check_timeline(layer)

    def recording(self, design: StreamingDesign, layer: str, path: Path | None) -> Recording:
        """Raise UnsupportedError: a pipeline is in C++ and has no signals to record."""
        raise UnsupportedError(
            f"recording waves of {design.path}",
            "it holds a pipeline in C++, which has no signals",
            remedy="draw its blocks with --cycles --timeline FILE.png",
        )

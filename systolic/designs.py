"""The Python interface to designs: ``design`` generates one from a network, ``open_folder`` opens a written one."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from boards import board as board_room
from boards.board import Board
from boards.errors import UnknownKeyError
from boards.progress import Progress, silent
from host.designs import design_folder
from host.vision.channels import checked_frame, load_frame
from host.vision.detection import IOU_THRESHOLD, THRESHOLD
from host.vision.picture import Pixels
from host.whole_file import write_whole
from systolic.evaluation.fidelity import HeadFidelity, head_fidelity
from systolic.execution.build import Variant, build
from systolic.execution.result import SimulationResult, simulate
from systolic.execution.run import Run, fit_picture, run
from systolic.files import DesignFiles, OutputFolder, output_folder
from systolic.model import Calibration, Model, inputs_of, quantise_model, sample_pictures
from systolic.option import elsewhere_reasons
from systolic.package import package
from systolic.pictures import picture_files
from systolic.styles.registry import STYLES, default_style, open_design, style_named, style_of
from systolic.styles.style import Counts, DesignTrace, NetworkMapping, OpenedDesign, Plan
from systolic.trace.report import CycleReport
from systolic.vendor.compare_design import VendorOptions, compare_design
from systolic.vendor.report import VendorReport

Picture = str | Path | Pixels
"""A picture: the path of a file, or uint8 of shape (height, width, 3)."""

Pictures = Calibration | Path | str | Pixels | Sequence[Path | str | Pixels]
"""Calibration pictures: one or several files, folders or uint8 arrays, or a ``Calibration``.

An array has the shape (height, width, channels).
"""


class Design:
    """A generated design, which can be simulated, traced, run on pictures and packaged for its board."""

    def __init__(self, opened: OpenedDesign) -> None:
        self._design = opened

    @property
    def opened(self) -> OpenedDesign:
        """The opened folder with its manifest and its quantised network, which other modules of the package read."""
        return self._design

    @property
    def folder(self) -> Path:
        """The folder that holds the design's files."""
        return self.opened.path

    @property
    def name(self) -> str:
        """The name of the network."""
        return self.opened.manifest.network

    @property
    def labels(self) -> tuple[str, ...]:
        """The class labels, by class index."""
        return tuple(self.opened.manifest.labels)

    @property
    def batch(self) -> int:
        """The number of pictures that one start of the accelerator processes."""
        return self.opened.manifest.batch

    def simulate(
        self, *pictures: Picture, ap_int: bool = False, golden: bool = False, progress: Progress = silent
    ) -> SimulationResult:
        """Execute the generated code, and compare every integer of every layer with the golden model.

        Args:
            pictures: The pictures. If they are fewer than a batch, the last one is repeated.
            ap_int: Compile with the vendor's integer types and packed products.
            golden: Also compile and run the standalone C++ golden program.
            progress: Receives the current step.

        Raises:
            ToolError: The code does not compile, or does not run to its end.
        """
        pixels = [self.pixels(picture) for picture in pictures]
        return simulate(self.opened, pixels, Variant(ap_int=ap_int), golden, progress)

    def trace(self, picture: Picture, progress: Progress = silent) -> DesignTrace:
        """Execute the generated C++ and record the clock cycle of each FIFO and DDR access of every process.

        The result gives the cycles for any clock, memory and FIFO depths without another execution.
        """
        return style_of(self.opened).trace(self.opened, self.pixels(picture), progress)

    def cycles(
        self,
        picture: Picture,
        clock_mhz: float | None = None,
        ddr_efficiency: float | None = None,
        progress: Progress = silent,
        ddr_gbps: float | None = None,
        ddr_profile: str | None = None,
    ) -> CycleReport:
        """Return the traced cycles, stalls and frame rate of the generated code.

        Args:
            picture: The picture that is executed.
            clock_mhz: The clock; None for the design's target.
            ddr_efficiency: The share of the DDR's peak rate that carries data; None for the design's value.
            progress: Receives the current step.
            ddr_gbps: The DDR's peak rate in GB/s; None for the design's value.
            ddr_profile: "measured" or "optimistic", the share that the board states; None for the design's value.
        """
        trace = self.trace(picture, progress)
        return trace.report(clock_mhz, ddr_efficiency, ddr_gbps=ddr_gbps, ddr_profile=ddr_profile)

    def counted(self, picture: Picture, hls: bool = False, progress: Progress = silent) -> Counts:
        """Simulate an engine in SystemVerilog, and compare its clock cycles per layer with the modelled ones.

        Args:
            picture: The picture that is executed.
            hls: Also generate and trace the C++ engine of the same schedule.
            progress: Receives the current step.

        Raises:
            UnsupportedError: The design's engine is in C++.
        """
        return style_of(self.opened).count(self.opened, self.pixels(picture), hls, progress)

    def run(
        self,
        picture: Picture,
        threshold: float = THRESHOLD,
        overlap: float = IOU_THRESHOLD,
        progress: Progress = silent,
    ) -> Run:
        """Execute the generated code on a picture and return its detections, which can be drawn and saved.

        Args:
            picture: The picture.
            threshold: The confidence threshold.
            overlap: The IoU threshold of non-maximum suppression.
            progress: Receives the current step.

        Raises:
            SystolicError: One of the errors of ``open_detector``.
        """
        return run(self.opened, pixels_of(picture), threshold, overlap, progress=progress)

    def package(self, folder: Path | str = ".", without_bitstream: bool = False) -> Path:
        """Write a wheel for the board into ``folder`` and return its path.

        Args:
            folder: The folder of the wheel.
            without_bitstream: Package the simulation library instead of a bitstream. The wheel then runs only on
                machines with this operating system and architecture.

        Raises:
            FileAccessError: There is no bitstream.
        """
        simulation = build(self.folder) if without_bitstream else None
        return package(self.folder, Path(folder), simulation=simulation)

    def vendor(
        self,
        reports: Path | str | None = None,
        only: str | None = None,
        csynth: bool = False,
        derived: bool = False,
        progress: Progress = silent,
    ) -> VendorReport:
        """Compare the design's declared loops, memories, resources and clock with Vitis HLS's and Vivado's reports.

        Args:
            reports: The folder of the reports; None for the design's folder.
            only: The name of the only function to compare; None for all functions.
            csynth: Run the C synthesis of Vitis HLS first.
            derived: Also compare with the values that ``systolic check`` derives from the sources.
            progress: Receives the current step.

        Raises:
            SystolicError: One of the errors of ``systolic.vendor.compare_design.compare_design``.
        """
        place = None if reports is None else Path(reports)
        return compare_design(self.folder, VendorOptions(place, only, csynth, derived), progress)

    def pixels(self, picture: Picture) -> Pixels:
        """Return a picture resized to the network's input, as uint8 of shape (channels, height, width)."""
        return fit_picture(self.opened, pixels_of(picture))[0]

    def __repr__(self) -> str:
        manifest = self.opened.manifest
        return f"<{manifest.network} on {manifest.board}, {manifest.style}, in {self.folder}>"

    def _repr_html_(self) -> str:
        manifest = self.opened.manifest
        return (
            f"<p><b>{escape(manifest.network)}</b> on {escape(manifest.board)}: {escape(manifest.style)} style, "
            f"target clock {manifest.clock_mhz:g} MHz, in {escape(str(self.folder))}</p>"
        )


class GeneratedDesign(Design):
    """A design that ``design`` generated. Its files are in memory until ``write`` stores them in a folder.

    To be executed before that, they are written to a temporary folder.
    """

    def __init__(self, plan: Plan, source: tuple[Model, Calibration] | None = None) -> None:
        self.plan = plan
        self._source = source
        self._written: OpenedDesign | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @property
    def mapping(self) -> NetworkMapping:
        """The schedule (systolic style) or the folding (streaming style), with its modelled cost."""
        return self.plan.mapping

    @property
    def files(self) -> DesignFiles:
        """All files of the design in memory, with the SHA-256 digest over them."""
        return self.plan.files

    @cached_property
    def fidelity(self) -> HeadFidelity | None:
        """The SQNR of the network's outputs against the float network, measured on calibration pictures.

        None for a network that was quantised in training.
        """
        return head_fidelity(self._source[0], self.mapping.network, self._source[1]) if self._source else None

    @property
    def opened(self) -> OpenedDesign:
        """The opened folder that the design was last written to; a temporary folder if it was not written yet."""
        if self._written is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="systolic-")
            self.write(Path(self._temporary.name) / "design")
        assert self._written is not None
        return self._written

    def report(self) -> Report:
        """Return the report of the design: its schedule or folding, and the modelled cost."""
        return Report(self.plan)

    def write(self, folder: Path | str, replace: bool = False) -> Design:
        """Write all files into ``folder`` and open the design there. If an error occurs, nothing is written.

        Args:
            folder: The folder of the design.
            replace: Replace a design that is there already.

        Raises:
            FileAccessError: The folder cannot be written, or must not be replaced.
        """
        with output_folder(Path(folder), replace) as output:
            return self.write_to(output)

    def write_to(self, output: OutputFolder) -> Design:
        """Write all files into ``output``, a folder that was reserved before the design was generated."""
        output.write(self.files)
        self._written = open_design(output.folder)
        return Design(self._written)

    def __repr__(self) -> str:
        mapping = self.mapping
        return f"<{mapping.network.name} on {mapping.board.name}, {self.files.digest[:16]}>"

    def _repr_html_(self) -> str:
        return self.plan._repr_html_()


class Report:
    """The report of a generated design: text when printed, tables and figures in a notebook, or one HTML file."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def values(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return self._plan.values()

    def save(self, path: Path | str) -> None:
        """Write the report as one HTML file, completely or not at all. Raises OSError if it cannot be written."""
        write_whole(Path(path), self._plan.mapping.page().encode())

    def __str__(self) -> str:
        return self._plan.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self._plan._repr_html_()


def design(
    network: Model,
    board: Board | str = "zcu104",
    style: str | None = None,
    clock_mhz: float | None = None,
    calibrate: Pictures = (),
    progress: Progress = silent,
    **options: Any,
) -> GeneratedDesign:
    """Quantise a network, find its best schedule or folding on a board, and generate the accelerator's files.

    Args:
        network: A model that ``load`` returned.
        board: One of ``boards()``, or its name.
        style: "systolic", which is the default, or "streaming".
        clock_mhz: A target clock that the board produces. None lets the style choose.
        calibrate: The pictures on which the activation ranges are measured; the embedded samples if none are given. A
            ``Calibration`` also sets the number of bits.
        progress: Receives the current step.
        options: Options of the style: fields of ``SystolicOptions`` or ``StreamingOptions``.

    Raises:
        SystolicError: One of the errors of these steps.
    """
    target = Target(board_of(board), clock_mhz, style or default_style())
    style_options = _style_options(target.style, options)
    return make(network, target, calibration_of(calibrate), style_options, progress)


def _style_options(style: str, options: dict[str, Any]) -> Any:
    kind = style_named(style).options
    known = list(signature(kind).parameters)
    unknown = [name for name in options if name not in known]
    if unknown:
        foreign = "".join(
            elsewhere_reasons(other.arguments, unknown[:1]) for name, other in STYLES.items() if name != style
        )
        where = f"the options of the {style} style"
        raise UnknownKeyError(unknown, known, where=where, remedy=foreign.removeprefix("; "))
    return kind(**options)


@dataclass(frozen=True)
class Target:
    """The board, the clock and the style that a design is generated for.

    Attributes:
        board: The board.
        clock_mhz: The target clock. None lets the style choose.
        style: The name of the style.
    """

    board: Board
    clock_mhz: float | None
    style: str


def make(
    network: Model, target: Target, calibration: Calibration, options: Any, progress: Progress = silent
) -> GeneratedDesign:
    """Generate a design, as ``design`` does, from arguments that are already converted, such as a ``Target``.

    Args:
        network: The model.
        target: The board, clock and style.
        calibration: The calibration.
        options: The options of the target's style, such as ``SystolicOptions``.
        progress: Receives the current step.
    """
    style = style_named(target.style)
    network = style.prepared(network, options)
    style.check_layers(network.known)
    calibration = style.calibration_for(calibration, target.board, target.clock_mhz, options)
    progress("quantising")
    quantised = quantise_model(network, calibration, progress)
    mapping = style.map(quantised, target.board, target.clock_mhz, options, progress)
    plan = style.generate(mapping, inputs_of(network, calibration), options, progress)
    return GeneratedDesign(plan, (network, calibration))


def open_folder(folder: Path | str) -> Design:
    """Open the design in a folder, or the design of that name that was installed from a wheel.

    Raises:
        SystolicError: One of the errors of ``design_folder`` if there is no design, or of
            ``systolic.styles.registry.open_design`` if it is incomplete.
    """
    return Design(open_design(design_folder(folder)))


def calibration_of(calibrate: Pictures) -> Calibration:
    """Return the given pictures as a ``Calibration``. If there are none, use the sample pictures of the package.

    Raises:
        FileAccessError: A folder has no pictures.
        ShapeError: An array is not a picture.
    """
    if isinstance(calibrate, Calibration):
        return calibrate
    one = isinstance(calibrate, (str, Path)) or (isinstance(calibrate, np.ndarray) and calibrate.ndim < 4)
    given: Any = [calibrate] if one else calibrate
    pictures: list[Path | Pixels] = []
    for picture in given:
        pictures += [checked_frame(picture)] if isinstance(picture, np.ndarray) else picture_files([picture])
    return Calibration(tuple(pictures) or sample_pictures())


def board_of(board: Board | str) -> Board:
    """Return a ``Board`` unchanged, or load the board of that name. Raises the errors of ``boards.board.load``."""
    return board if isinstance(board, Board) else board_room.load(board)


def pixels_of(picture: Picture) -> Pixels:
    """Return a picture, a file or an array, as uint8 of shape (height, width, channels).

    Raises:
        SystolicError: One of the errors of ``load_frame`` and ``checked_frame``.
    """
    if isinstance(picture, (str, Path)):
        return load_frame(picture)
    return checked_frame(picture)

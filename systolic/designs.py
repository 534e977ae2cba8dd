"""Designs as a user of Python has them: made from a network, or opened from a folder."""

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
from host.vision.detection import OVERLAP, THRESHOLD
from host.vision.picture import Pixels
from host.whole_file import write_whole
from systolic.evaluation.fidelity import HeadFidelity, head_fidelity
from systolic.execution.build import Variant, build
from systolic.execution.result import SimulationResult, simulate
from systolic.execution.run import Run, fit_picture, run
from systolic.files import DesignFiles, OutputFolder, output_folder
from systolic.model import Calibration, Model, inputs_of, quantise_model, sample_pictures
from systolic.option import why_not
from systolic.package import package
from systolic.pictures import picture_files
from systolic.styles.registry import STYLES, default_style, open_design, style_named, style_of
from systolic.styles.style import Counts, DesignTrace, NetworkMapping, OpenedDesign, Plan
from systolic.trace.report import CycleReport
from systolic.vendor.report import VendorReport
from systolic.vendor.settle import VendorOptions, settle

Picture = str | Path | Pixels
"""A file, or uint8 [height, width, 3]."""

Pictures = Calibration | Path | str | Pixels | Sequence[Path | str | Pixels]
"""What to calibrate on: a file, a folder or uint8 [height, width, channels], several of them, or a ``Calibration``."""


class Design:
    """A generated design: what its code computes, how long it takes, and what it sees on a picture."""

    def __init__(self, opened: OpenedDesign) -> None:
        self._design = opened

    @property
    def opened(self) -> OpenedDesign:
        """The folder as the other parts of the project have it: path, manifest, network."""
        return self._design

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self.opened.path

    @property
    def name(self) -> str:
        """Of its network."""
        return self.opened.manifest.network

    @property
    def labels(self) -> tuple[str, ...]:
        """What its detections are called."""
        return tuple(self.opened.manifest.labels)

    @property
    def batch(self) -> int:
        """Pictures that one start takes."""
        return self.opened.manifest.batch

    def simulate(
        self, *pictures: Picture, ap_int: bool = False, golden: bool = False, progress: Progress = silent
    ) -> SimulationResult:
        """The generated code, executed: every integer of every layer against the golden model.

        The last picture fills a batch. ap_int: with the vendor's types and packed products. golden: also compile and
        run the standalone C++ golden program. ToolError if the code does not compile or stops.
        """
        pixels = [self.pixels(picture) for picture in pictures]
        return simulate(self.opened, pixels, Variant(ap_int=ap_int), golden, progress)

    def trace(self, picture: Picture, progress: Progress = silent) -> DesignTrace:
        """One execution with every process's clock recorded, to be solved for other clocks, memories and FIFO depths
        without a second one."""
        return style_of(self.opened).trace(self.opened, self.pixels(picture), progress)

    def cycles(
        self,
        picture: Picture,
        clock_mhz: float | None = None,
        ddr_efficiency: float | None = None,
        progress: Progress = silent,
        ddr_gbps: float | None = None,
    ) -> CycleReport:
        """Cycles, stalls and frames a second of the generated code, traced.

        clock_mhz: another than the design's target. ddr_gbps, ddr_efficiency: another memory than it was made for, its
        peak and the share of it that carries data.
        """
        return self.trace(picture, progress).report(clock_mhz, ddr_efficiency, ddr_gbps=ddr_gbps)

    def counted(self, picture: Picture, hls: bool = False, progress: Progress = silent) -> Counts:
        """Count the cycles of an engine in SystemVerilog, layer by layer, while it executes, compared with the model.
        hls: also trace the C++ engine of the same schedule. UnsupportedError if the design is in C++."""
        return style_of(self.opened).count(self.opened, self.pixels(picture), hls, progress)

    def run(
        self,
        picture: Picture,
        threshold: float = THRESHOLD,
        overlap: float = OVERLAP,
        progress: Progress = silent,
    ) -> Run:
        """What the accelerator sees: ``detections``, ``draw()``, ``save(FILE)``.

        threshold: least probability. overlap: greatest IoU of two boxes of a class. Raises the errors of
        ``open_detector``.
        """
        return run(self.opened, pixels_of(picture), threshold, overlap, progress=progress)

    def package(self, folder: Path | str = ".", without_bitstream: bool = False) -> Path:
        """Write one wheel for the board into ``folder`` and return its path; FileAccessError if there is no bitstream.

        without_bitstream: with the simulation library instead, for this machine and those like it.
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
        """What Vitis HLS and Vivado say beside what the design claims: loops, memories, resources, clock.

        reports: their folder, else the design's. only: one function. csynth: first run Vitis HLS. derived: also what
        ``systolic check`` derives. Raises the errors of ``systolic.vendor.settle.settle``.
        """
        place = None if reports is None else Path(reports)
        return settle(self.folder, VendorOptions(place, only, csynth, derived), progress)

    def pixels(self, picture: Picture) -> Pixels:
        """uint8 [channels, height, width], as the design takes it."""
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
    """A design that was made here. Its files are in memory; to be executed they go to a temporary folder, unless
    ``write`` has put them into one."""

    def __init__(self, plan: Plan, source: tuple[Model, Calibration] | None = None) -> None:
        self.plan = plan
        self._source = source
        self._written: OpenedDesign | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @property
    def mapping(self) -> NetworkMapping:
        """The schedule or the folding, priced."""
        return self.plan.mapping

    @property
    def files(self) -> DesignFiles:
        """Every file, and the digest of all."""
        return self.plan.files

    @cached_property
    def fidelity(self) -> HeadFidelity | None:
        """How far its heads are from the float network, on calibration pictures, by the golden model. None of a network
        that was quantised by training."""
        return head_fidelity(self._source[0], self.mapping.network, self._source[1]) if self._source else None

    @property
    def opened(self) -> OpenedDesign:
        """Of the folder it was written to last, or of a temporary one."""
        if self._written is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="systolic-")
            self.write(Path(self._temporary.name) / "design")
        assert self._written is not None
        return self._written

    def report(self) -> Report:
        """What it is, modelled: as text, as a page, and in a notebook."""
        return Report(self.plan)

    def write(self, folder: Path | str, replace: bool = False) -> Design:
        """Write the whole folder or nothing, and open it. FileAccessError if the folder is not to be replaced."""
        with output_folder(Path(folder), replace) as output:
            return self.write_to(output)

    def write_to(self, output: OutputFolder) -> Design:
        """``write`` into a folder that was asked for before the design was made."""
        output.write(self.files)
        self._written = open_design(output.folder)
        return Design(self._written)

    def __repr__(self) -> str:
        mapping = self.mapping
        return f"<{mapping.network.name} on {mapping.board.name}, {self.files.digest[:16]}>"

    def _repr_html_(self) -> str:
        return self.plan._repr_html_()


class Report:
    """Of a plan: ``print`` shows the text, a notebook the tables and pictures, ``save`` writes one HTML file."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def values(self) -> dict[str, Any]:
        """One JSON object."""
        return self._plan.values()

    def save(self, path: Path | str) -> None:
        """One self-contained HTML file, whole or not at all. OSError where it cannot be written."""
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
    """Everything between a network and the files of its accelerator.

    board: one of ``boards()``, or its name. style: "systolic", the default, or "streaming". clock_mhz: a target that
    the board makes; the style chooses where it is None. calibrate: pictures that activation ranges are measured on,
    files and folders, the embedded samples where there are none; or a ``Calibration``, which also says the bits.
    options: of the style, fields of ``SystolicOptions`` or ``StreamingOptions``. Errors are those of each step, all
    SystolicError.
    """
    target = Target(board_of(board), clock_mhz, style or default_style())
    style_options = _style_options(target.style, options)
    return make(network, target, calibration_of(calibrate), style_options, progress)


def _style_options(style: str, options: dict[str, Any]) -> Any:
    kind = style_named(style).options
    known = list(signature(kind).parameters)
    unknown = [name for name in options if name not in known]
    if unknown:
        foreign = "".join(why_not(other.arguments, unknown[:1]) for name, other in STYLES.items() if name != style)
        where = f"the options of the {style} style"
        raise UnknownKeyError(unknown, known, where=where, remedy=foreign.removeprefix("; "))
    return kind(**options)


@dataclass(frozen=True)
class Target:
    """What a network is built for. clock_mhz: the style chooses where it is None."""

    board: Board
    clock_mhz: float | None
    style: str


def make(
    network: Model, target: Target, calibration: Calibration, options: Any, progress: Progress = silent
) -> GeneratedDesign:
    """``design`` with everything spelt out. options: of the target's style."""
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
    """Open the design in ``folder``, or the installed one of that name. Raises the errors of ``design_folder`` if there
    is none, and those of ``systolic.styles.registry.open_design`` if it is not whole."""
    return Design(open_design(design_folder(folder)))


def calibration_of(calibrate: Pictures) -> Calibration:
    """Return the calibration, with the embedded samples if nothing else is given; FileAccessError for a folder without
    pictures, ShapeError for an array that is none."""
    if isinstance(calibrate, Calibration):
        return calibrate
    one = isinstance(calibrate, (str, Path)) or (isinstance(calibrate, np.ndarray) and calibrate.ndim < 4)
    given: Any = [calibrate] if one else calibrate
    pictures: list[Path | Pixels] = []
    for picture in given:
        pictures += [checked_frame(picture)] if isinstance(picture, np.ndarray) else picture_files([picture])
    return Calibration(tuple(pictures) or sample_pictures())


def board_of(board: Board | str) -> Board:
    """Return the board, or the one of that name; see ``boards.board.load``."""
    return board if isinstance(board, Board) else board_room.load(board)


def pixels_of(picture: Picture) -> Pixels:
    """Return uint8 [height, width, channels]. Raises the errors of ``load_frame`` and ``checked_frame``."""
    if isinstance(picture, (str, Path)):
        return load_frame(picture)
    return checked_frame(picture)

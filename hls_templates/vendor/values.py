"""The values from which the vendor's files are written, and the checks of these values."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from boards.errors import ChoiceError, InvalidValueError, MissingValueError, RangeError
from boards.templates import comment
from hls_templates.vendor.board_facts import BoardFacts, ClockFacts
from hls_templates.vendor.floorplan import Chain
from hls_templates.vendor.ports import Ports

SEGMENT_BYTES = 0x10000
"""Bytes of the address map per slave with registers: first the accelerator, then the DMA or interrupt controller."""

PS_KINDS = ("processing_system7", "zynq_ultra_ps_e")
"""Vivado's IP of the processing system: for a Zynq-7000, and for a Zynq UltraScale+."""

DSP_CLOCKS = (1, 2)
"""The possible ratios of the DSPs' clock to the fabric's clock."""

SOURCES_OF_FIGURES = ("executed", "traced", "computed", "estimate", "target")
"""The ways in which a figure of the README can be obtained."""

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+ -]{0,199}\Z")
_PATH = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/)*[A-Za-z0-9_][A-Za-z0-9_.-]*\.(?:cpp|h|sv|v)\Z")


@dataclass(frozen=True)
class Figure:
    """A row of the README's table of figures: a quantity, its value, and how it was obtained (SOURCES_OF_FIGURES)."""

    quantity: str
    value: str
    source: str


@dataclass(frozen=True)
class VendorValues:
    """The values of one design from which the files for the vendor's tools are written.

    Attributes:
        title: The design's title, any text.
        board: The board.
        clock: The clock of the PL.
        ports: The arguments of the top function.
        sources: The C++ files and headers or the modules of the design, relative to its folder, with '/'.
        design: The stem of the .bit and .hwh files.
        simulation: The folder with the project's own hls_stream.h and hls_burst_maxi.h.
        figures: The rows of the README's table of figures.
        dsp_clock: 2 if the IP has a second clock of twice the rate, ``ap_clk_2x``; else 1.
        chains: The DSP cascades of an IP in SystemVerilog, for a floorplan. Vitis HLS chooses its own cascades.
        argument_cells: The registers of the arguments of an IP in SystemVerilog, as patterns of get_cells.
    """

    title: str
    board: BoardFacts
    clock: ClockFacts
    ports: Ports
    sources: tuple[str, ...]
    design: str = "systolic"
    simulation: str = "simulation"
    figures: tuple[Figure, ...] = ()
    dsp_clock: int = 1
    chains: tuple[Chain, ...] = ()
    argument_cells: tuple[str, ...] = ()


def word(text: str, title: str) -> str:
    """Return ``text`` as one Tcl word in braces.

    Raises:
        InvalidValueError: A character of the text could have a meaning to Tcl. ``title`` names the value.
    """
    if not _WORD.match(text):
        required = "made of letters, digits, spaces and '_.:/+-' (200 at most), because it is pasted into Tcl"
        raise InvalidValueError(title, text, required)
    return "{" + text + "}"


def megahertz(mhz: float) -> str:
    """Return a frequency in MHz as text, rounded to 1 kHz: 300 for the 299.999997 MHz from a crystal of 33.333333
    MHz."""
    return f"{mhz:.3f}".rstrip("0").rstrip(".")


def check_values(values: VendorValues) -> None:
    """Raise an error that names the value if a value for the vendor's files is not possible."""
    if values.board.ps.ip not in PS_KINDS:
        raise ChoiceError("the PS", values.board.ps.ip, PS_KINDS)
    if not (math.isfinite(values.clock.mhz) and 1 <= values.clock.mhz <= 1000):
        raise RangeError("the clock in MHz", values.clock.mhz, 1, 1000)
    if values.board.control.bytes < 2 * SEGMENT_BYTES:
        raise RangeError(
            f"the number of bytes of the control window {values.board.control.name}, which holds two segments,",
            values.board.control.bytes,
            2 * SEGMENT_BYTES,
        )
    if values.dsp_clock not in DSP_CLOCKS:
        raise ChoiceError("the clock of the DSPs, as a multiple of the clock,", values.dsp_clock, DSP_CLOCKS)
    _check_sources(values.sources)
    values.ports.check()
    values.ports.check_names()
    _check_figures(values.figures)


def _check_sources(sources: Sequence[str]) -> None:
    for path in sources:
        if not _PATH.match(path):
            required = "a .cpp, .h, .sv or .v file below the folder, named with letters, digits and '_.-'"
            raise InvalidValueError("a source", path, required)
    if not any(path.endswith((".cpp", ".sv")) for path in sources):
        raise MissingValueError("a .cpp or .sv file among the sources", "synthesis needs at least one")


def _check_figures(figures: Sequence[Figure]) -> None:
    for figure in figures:
        if figure.source not in SOURCES_OF_FIGURES:
            raise ChoiceError(f"the source of {comment(figure.quantity)!r}", figure.source, SOURCES_OF_FIGURES)

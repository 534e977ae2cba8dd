"""What the files for the vendor's tools are made of, and which values are refused."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from boards.errors import ChoiceError, InvalidValueError, MissingValueError, RangeError
from boards.templates import comment
from hls_templates.vendor.board_facts import BoardFacts, ClockFacts
from hls_templates.vendor.ports import Ports

SEGMENT_BYTES = 0x10000
"""Of the address map, for each slave with registers: the accelerator, then the cell beside it."""

PS_KINDS = ("processing_system7", "zynq_ultra_ps_e")
"""Vivado's IP of the processing system: of a Zynq-7000, and of a Zynq UltraScale+."""

DSP_CLOCKS = (1, 2)
"""Clocks of the DSPs, in multiples of the fabric's."""

SOURCES_OF_FIGURES = ("executed", "traced", "computed", "estimate", "target")

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+ -]{0,199}\Z")
_PATH = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/)*[A-Za-z0-9_][A-Za-z0-9_.-]*\.(?:cpp|h|sv|v)\Z")


@dataclass(frozen=True)
class Figure:
    """A line of the README's table of figures. source: one of SOURCES_OF_FIGURES."""

    quantity: str
    value: str
    source: str


@dataclass(frozen=True)
class VendorValues:
    """What the files for the vendor's tools are made of.

    title: of the design, any text. ports: of the top function. sources: its C++ files and headers, or its modules,
    relative to the design's folder, with '/'. design: stem of the .bit and .hwh. simulation: the folder with the
    project's own hls_stream.h and hls_burst_maxi.h. figures: lines of the README's table. dsp_clock: 2 where the IP has
    a second clock of twice the rate, ``ap_clk_2x``.
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


def word(text: str, title: str) -> str:
    """Return ``text`` as one Tcl word in braces; raise InvalidValueError if a character of it could do harm."""
    if not _WORD.match(text):
        required = "made of letters, digits, spaces and '_.:/+-' (200 at most), because it is pasted into Tcl"
        raise InvalidValueError(title, text, required)
    return "{" + text + "}"


def megahertz(mhz: float) -> str:
    """To 1 kHz, as a person would ask for it: 300 where a crystal of 33.333333 MHz gives 299.999997."""
    return f"{mhz:.3f}".rstrip("0").rstrip(".")


def check_values(values: VendorValues) -> None:
    """Raise an error if a value cannot be what its name says."""
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

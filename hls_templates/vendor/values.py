"""What the files for the vendor's tools are made of, and which values are refused."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from boards.errors import GenerateError
from hls_templates.render import comment
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
    """``text`` as one Tcl word in braces, where every character of it is harmless; GenerateError else."""
    if not _WORD.match(text):
        raise GenerateError(
            f"{title} goes into Tcl and is made of letters, digits, spaces and '_.:/+-' (200 at most), not {text!r}"
        )
    return "{" + text + "}"


def megahertz(mhz: float) -> str:
    """To 1 kHz, as a person would ask for it: 300 where a crystal of 33.333333 MHz gives 299.999997."""
    return f"{mhz:.3f}".rstrip("0").rstrip(".")


def check_values(values: VendorValues) -> None:
    """GenerateError where a value cannot be what its name says."""
    if values.board.ps.ip not in PS_KINDS:
        raise GenerateError(f"the PS must be {' or '.join(PS_KINDS)}, not {values.board.ps.ip!r}")
    if not (math.isfinite(values.clock.mhz) and 1 <= values.clock.mhz <= 1000):
        raise GenerateError(f"the clock must be 1 to 1000 MHz, not {values.clock.mhz}")
    if values.board.control.bytes < 2 * SEGMENT_BYTES:
        raise GenerateError(
            f"the control window must hold two segments of {SEGMENT_BYTES} bytes, "
            f"but {values.board.control.name} has {values.board.control.bytes}"
        )
    if values.dsp_clock not in DSP_CLOCKS:
        raise GenerateError(
            f"the DSPs run at 1 or 2 times the clock, not {values.dsp_clock}: the block design makes one further clock"
        )
    _check_sources(values.sources)
    values.ports.check()
    values.ports.check_names()
    _check_figures(values.figures)


def _check_sources(sources: Sequence[str]) -> None:
    for path in sources:
        if not _PATH.match(path):
            raise GenerateError(
                "a source is a .cpp, .h, .sv or .v file below the folder, named with letters, digits and '_.-', "
                f"not {path!r}"
            )
    if not any(path.endswith((".cpp", ".sv")) for path in sources):
        raise GenerateError("the sources must hold at least one .cpp or .sv file for synthesis, there is none")


def _check_figures(figures: Sequence[Figure]) -> None:
    for figure in figures:
        if figure.source not in SOURCES_OF_FIGURES:
            raise GenerateError(
                f"the source of {comment(figure.quantity)!r} must be one of {', '.join(SOURCES_OF_FIGURES)}, "
                f"not {figure.source!r}"
            )

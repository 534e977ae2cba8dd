"""What a user may ask of a schedule."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from types import MappingProxyType

from boards.board import Board
from boards.errors import ChoiceError, ConflictError, InvalidValueError, UnknownKeyError
from scheduler.systolic.array import ENGINES, HLS, RTL
from scheduler.systolic.layers import check_batch
from scheduler.systolic.search.space import TOLERANCE, Goal
from systolic.styles.options import Argument, HardwareOptions, budget_from

PINS: Mapping[str, str] = MappingProxyType(
    {
        "save_rows": "rows of a position that the Saver requantises a cycle",
        "chunk": "columns that the Saver arranges before they are written",
        "map_ports": "AXI ports for maps",
        "weight_ports": "AXI ports for weights",
        "row_depth": "words of a row-buffer bank",
        "weight_depth": "steps of the weight buffer",
        "map_depth": "words of a map-buffer bank; with 0 no map stays on chip",
        "added_maps": "1: the Saver adds maps where it can; with 0 every addition is a layer of its own",
        "dsp_clock": "cycles of the DSPs' clock in one of the array's: 1, or 2, which --engine rtl alone has",
        "dsp_products": "products of a DSP: 6, of --bits 4 alone; with 0 as many as the format has",
    }
)
"""Numbers of the array that a user may pin, and what they are."""

SEARCHED_ENGINE = Argument(
    "--engine",
    "language of the engine that is searched: hls, C++ for Vitis HLS, or rtl, SystemVerilog (default: rtl where "
    "--dsp-clock is 2, else hls)",
    settings={"choices": ENGINES},
)
"""``--engine`` of the commands that search and do not generate."""

DSP_ARGUMENTS = (
    Argument(
        "--dsp-clock",
        "cycles of the DSPs' clock in one of the fabric's, 1 or 2: with 2, of --engine rtl alone, a DSP does two's "
        "work (default: that of the saved schedule, or 1)",
        settings={"type": int, "metavar": "N"},
    ),
    Argument(
        "--dsp-products",
        "products of a DSP in a cycle of its clock: 6, of --bits 4 on a DSP48E2 alone, or 0, four at 4 bits, two at 8, "
        "one at 16 (default: those of the saved schedule, or 0)",
        settings={"type": int, "metavar": "N"},
    ),
)
"""What the DSPs of an engine do."""

ARGUMENTS = (
    Argument(
        "--engine",
        "language of the engine: hls, C++ for Vitis HLS, or rtl, SystemVerilog (default: %(default)s)",
        HLS,
        {"choices": ENGINES},
    ),
    *DSP_ARGUMENTS,
    Argument(
        "--schedule",
        "a schedule saved by systolic schedule --save",
        settings={"type": Path, "metavar": "FILE"},
    ),
    Argument(
        "--batch",
        "frames computed with one passage of the weights, in layers where that stays exact (default: 1)",
        settings={"type": int, "metavar": "B"},
    ),
)
"""The options of ``systolic generate`` that are of this style."""


@dataclass(frozen=True)
class SystolicOptions(HardwareOptions):
    """What is wanted of a schedule, beside the ``HardwareOptions``.

    schedule: a saved one, as a file or as its JSON, instead of a search. batch: frames that
    share the weights' passage; where it is None, that of the saved schedule, or 1. objective: fps, latency, ddr or
    resources. fps: frames a second that the last two must hold. array: rows × columns × lanes to be pinned, "13x16x16".
    order: a loop order to be pinned. pins: other numbers of the array, by the names of PINS.
    engine: one of ENGINES.
    """

    schedule: Path | str | None = None
    batch: int | None = None
    objective: str = "fps"
    fps: float = 0.0
    array: str | None = None
    order: str | None = None
    pins: Mapping[str, int | None] = field(default_factory=dict)
    engine: str = HLS

    def __post_init__(self) -> None:
        unknown = sorted(set(self.pins) - {*PINS, "rows", "columns", "lanes"})
        if unknown:
            raise UnknownKeyError(unknown, (*PINS, "rows", "columns", "lanes"), where="the pinned numbers of the array")

    @property
    def frames(self) -> int:
        """Of a batch, where the schedule is searched."""
        return 1 if self.batch is None else self.batch

    @property
    def goal(self) -> Goal:
        """The goal of the search. Raises the errors of ``Goal`` for an unknown objective, and for one without the rate
        that it is to hold."""
        return Goal(self.objective, self.fps, TOLERANCE)

    @property
    def pinned(self) -> dict[str, int | str | None]:
        """Everything that is pinned except ``fused``, by the name of its number; InvalidValueError for an array that is
        not ROWSxCOLUMNSxLANES."""
        geometry = geometry_pins(self.array) if self.array else {}
        pins = {name: number for name, number in self.pins.items() if name != "added_maps"}
        facts: dict[str, int | str | None] = {"dsp_registers": self.dsp_registers, "engine": self.engine}
        return {**pins, **geometry, **facts, "order": self.order}

    @property
    def dsp_clock(self) -> int:
        """1 where nothing is asked for."""
        pinned = self.pins.get("dsp_clock")
        return 1 if pinned is None else pinned

    @property
    def dsp_products(self) -> int:
        """0, those of the format, where nothing is asked for."""
        return self.pins.get("dsp_products") or 0

    @property
    def dsp_registers(self) -> int:
        """1 where the engine in SystemVerilog multiplies six times in a DSP."""
        return int(self.engine == RTL and self.dsp_products > 0)

    @property
    def fused(self) -> tuple[bool, ...]:
        """Whether the Saver adds maps where it can: the values that are tried, in this order. ChoiceError for a pin
        that is neither 0 nor 1."""
        pinned = self.pins.get("added_maps")
        if pinned not in (None, 0, 1):
            raise ChoiceError("added_maps", pinned, (0, 1), remedy="or leave it out, and the search decides")
        return (True, False) if pinned is None else (pinned == 1,)


@dataclass(frozen=True)
class Alternatives:
    """What is to be compared: every board × array × batch × clock × DDR × what its DSPs do. arrays: "13x16x16"; none
    searches the geometry. batches: frames that share the weights' passage. clocks_mhz, ddr_gbps: None for the best, and
    for what the board has. dsp_clocks, dsp_products: as in PINS, None for those of the options. engine: one of ENGINES;
    where it is None, the one that has the clock."""

    boards: tuple[Board, ...]
    arrays: tuple[str, ...] = ()
    batches: tuple[int, ...] = (1,)
    clocks_mhz: tuple[float | None, ...] = (None,)
    ddr_gbps: tuple[float | None, ...] = (None,)
    dsp_clocks: tuple[int | None, ...] = (None,)
    dsp_products: tuple[int | None, ...] = (None,)
    engine: str | None = None

    def __post_init__(self) -> None:
        for batch in self.batches:
            check_batch(batch)
        for array in self.arrays:
            geometry_pins(array)

    @property
    def dsps(self) -> tuple[dict[str, int], ...]:
        """Pins, by their names."""
        choices = product(self.dsp_clocks, self.dsp_products)
        names = ("dsp_clock", "dsp_products")
        return tuple({n: pin for n, pin in zip(names, pins, strict=True) if pin is not None} for pins in choices)


def words_of_pins(pins: Mapping[str, int]) -> tuple[str, ...]:
    """What is pinned, as a row of a comparison says it."""
    return tuple(f"{name} {number}" for name, number in pins.items())


def engine_for(engine: str | None, dsp_clock: int | None) -> str:
    """Return the engine that is asked for; if none is, the one that has such a clock. ConflictError if the one that is
    asked for has no such clock."""
    chosen = engine or (RTL if dsp_clock is not None and dsp_clock > 1 else HLS)
    check_engine(chosen, dsp_clock or 1)
    return chosen


def with_dsps(options: SystolicOptions, engine: str | None, pins: Mapping[str, int]) -> SystolicOptions:
    """Return the options with ``pins``, of the engine that is asked for here or there, or that they need. Raises
    ConflictError as ``check_engine`` does."""
    asked = engine or (RTL if options.engine == RTL else None)
    merged = {**options.pins, **pins}
    return replace(options, pins=merged, engine=engine_for(asked, merged.get("dsp_clock")))


def check_engine(engine: str, dsp_clock: int) -> None:
    """Raise ConflictError if the engine cannot clock its DSPs as fast as the schedule asks."""
    if engine != RTL and dsp_clock > 1:
        raise ConflictError(
            (f"--engine {engine}", f"--dsp-clock {dsp_clock}"),
            "only the engine in SystemVerilog clocks its DSPs faster than the logic around them",
            remedy="add --engine rtl, or leave --dsp-clock out",
        )


def geometry_pins(text: str) -> dict[str, int]:
    """Return {rows, columns, lanes} of "13x16x16"; InvalidValueError for another form."""
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        raise InvalidValueError("an array", text, "ROWSxCOLUMNSxLANES, such as 13x16x16")
    return dict(zip(("rows", "columns", "lanes"), map(int, parts), strict=True))


def options_from(options: argparse.Namespace) -> SystolicOptions:
    """Of ``systolic generate``."""
    return SystolicOptions(
        engine=options.engine,
        schedule=options.schedule,
        batch=options.batch,
        pins={"dsp_clock": options.dsp_clock, "dsp_products": options.dsp_products},
        ddr_gbps=options.ddr_gbps,
        ddr_efficiency=options.ddr_efficiency,
        budget=budget_from(options),
    )

"""The requests that a user may make of a schedule."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from boards.board import Board
from boards.errors import ChoiceError, ConflictError, InvalidValueError, UnknownKeyError
from scheduler.systolic.engines.language import LANGUAGES, language_named
from scheduler.systolic.layers import check_batch
from scheduler.systolic.search.space import TOLERANCE, Goal
from systolic.styles.options import HardwareOptions, budget_from
from systolic.styles.systolic.arguments import PINS

DEFAULT_ENGINE = next(iter(LANGUAGES))
"""The engine that is generated if none is asked for."""


@dataclass(frozen=True)
class SystolicOptions(HardwareOptions):
    """Requests about a schedule.

    Attributes:
        schedule: A saved schedule, as a file or as its JSON, instead of a search.
        batch: Frames that share each load of the weights; None for the saved schedule's, or 1.
        objective: fps, ddr or resources.
        fps: Frames per second that the objectives ddr and resources must hold.
        array: Pinned rows × columns × lanes, such as "13x16x16".
        order: A pinned loop order.
        pins: Other pinned numbers of the array, by the names of PINS.
        engine: hls or rtl.
    """

    schedule: Path | str | None = None
    batch: int | None = None
    objective: str = "fps"
    fps: float = 0.0
    array: str | None = None
    order: str | None = None
    pins: Mapping[str, int | None] = field(default_factory=dict)
    engine: str = DEFAULT_ENGINE

    def __post_init__(self) -> None:
        unknown = sorted(set(self.pins) - {*PINS, "rows", "columns", "lanes"})
        if unknown:
            raise UnknownKeyError(unknown, (*PINS, "rows", "columns", "lanes"), where="the pinned numbers of the array")

    @property
    def frames(self) -> int:
        """Frames per batch of a schedule that is searched."""
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
        """Cycles of the DSP clock per cycle of the array's clock."""
        pinned = self.pins.get("dsp_clock")
        return 1 if pinned is None else pinned

    @property
    def dsp_products(self) -> int:
        """Products per DSP; 0 for as many as the format has."""
        return self.pins.get("dsp_products") or 0

    @property
    def dsp_registers(self) -> bool:
        """Whether the engine multiplies six times per DSP and hands weights on in registers."""
        return language_named(self.engine).dsp_registers(self.dsp_products)

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
    """Designs to compare: every board × array × batch × clock × DDR × DSP clock × DSP products.

    Attributes:
        boards: The boards.
        arrays: Pinned arrays, such as "13x16x16"; the geometry is searched if there is none.
        batches: Frames that share each load of the weights.
        clocks_mhz: Clocks; None for the best one.
        ddr_gbps: Peak rates of the DDR; None for the board's.
        dsp_clocks: As in PINS; None for the options' own.
        dsp_products: As in PINS; None for the options' own.
        engine: hls or rtl; None for the engine that has the DSP clock.
    """

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
            check_geometry(array)

    @property
    def dsps(self) -> tuple[dict[str, int], ...]:
        """The pins of each pair of DSP clock and products, by their names."""
        choices = product(self.dsp_clocks, self.dsp_products)
        names = ("dsp_clock", "dsp_products")
        return tuple({n: pin for n, pin in zip(names, pins, strict=True) if pin is not None} for pins in choices)


def words_of_pins(pins: Mapping[str, int]) -> tuple[str, ...]:
    """Return the pins as a row of a comparison shows them."""
    return tuple(f"{name} {number}" for name, number in pins.items())


def engine_for(engine: str | None, dsp_clock: int | None) -> str:
    """Return the engine that is asked for; if none is, the one that has such a clock. ConflictError if the one that is
    asked for has no such clock."""
    clock = dsp_clock or 1
    chosen = engine or next(name for name, language in LANGUAGES.items() if clock <= 1 or language.fast_dsps)
    check_engine(chosen, clock)
    return chosen


def with_dsps(options: SystolicOptions, engine: str | None, pins: Mapping[str, int]) -> SystolicOptions:
    """Return the options with ``pins``, of the engine that is asked for here or there, or that they need. Raises
    ConflictError as ``check_engine`` does."""
    asked = engine or (options.engine if options.engine != DEFAULT_ENGINE else None)
    merged = {**options.pins, **pins}
    return replace(options, pins=merged, engine=engine_for(asked, merged.get("dsp_clock")))


def check_engine(engine: str, dsp_clock: int) -> None:
    """Raise ConflictError if the engine cannot clock its DSPs as fast as the schedule asks."""
    if dsp_clock > 1 and not language_named(engine).fast_dsps:
        raise ConflictError(
            (f"--engine {engine}", f"--dsp-clock {dsp_clock}"),
            "only the engine in SystemVerilog clocks its DSPs faster than the logic around them",
            remedy="add --engine rtl, or leave --dsp-clock out",
        )


def check_geometry(text: str) -> None:
    """Raise InvalidValueError if ``text`` is not of the form "13x16x16"."""
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        raise InvalidValueError("an array", text, "ROWSxCOLUMNSxLANES, such as 13x16x16")


def geometry_pins(text: str) -> dict[str, int]:
    """Return {rows, columns, lanes} of "13x16x16"; InvalidValueError for another form."""
    check_geometry(text)
    parts = text.lower().replace("×", "x").split("x")
    return dict(zip(("rows", "columns", "lanes"), map(int, parts), strict=True))


def options_from(options: argparse.Namespace) -> SystolicOptions:
    """Return the options of a ``systolic generate`` command line."""
    return SystolicOptions(
        engine=options.engine,
        schedule=options.schedule,
        batch=options.batch,
        pins={"dsp_clock": options.dsp_clock, "dsp_products": options.dsp_products},
        ddr_gbps=options.ddr_gbps,
        ddr_efficiency=options.ddr_efficiency,
        budget=budget_from(options),
    )

"""The options of the systolic style."""

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
"""The engine that is generated if the user names none."""


@dataclass(frozen=True)
class SystolicOptions(HardwareOptions):
    """The options of the systolic style: they choose a schedule. A pin fixes a parameter before the search.

    Attributes:
        schedule: A saved schedule to use instead of a search, as a file or as its JSON; None to search.
        batch: Number of frames that share each load of the weights; None for the saved schedule's batch, or 1.
        objective: The objective of the search: "fps", "ddr" or "resources".
        fps: Frames per second that the schedule must reach for the objectives "ddr" and "resources".
        array: The pinned rows × columns × lanes, such as "13x16x16"; None to search for them.
        order: The pinned loop order of all layers; None to search for the order of each layer.
        pins: Other pinned parameters of the array, by their names in PINS.
        engine: The engine: "hls" or "rtl".
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
        """The frames per batch of a searched schedule: ``batch``, or 1 without one."""
        return 1 if self.batch is None else self.batch

    @property
    def goal(self) -> Goal:
        """The objective of the search and its required rate. Raises the errors of ``Goal``."""
        return Goal(self.objective, self.fps, TOLERANCE)

    @property
    def pinned(self) -> dict[str, int | str | None]:
        """{parameter: fixed value or None} of the array and the loop order, except ``added_maps``.

        Raises:
            InvalidValueError: ``array`` is not of the form ROWSxCOLUMNSxLANES.
        """
        geometry = geometry_pins(self.array) if self.array else {}
        pins = {name: number for name, number in self.pins.items() if name != "added_maps"}
        facts: dict[str, int | str | None] = {"dsp_registers": self.dsp_registers, "engine": self.engine}
        return {**pins, **geometry, **facts, "order": self.order}

    @property
    def dsp_clock(self) -> int:
        """Cycles of the DSP clock per cycle of the array's clock: 1 or 2."""
        pinned = self.pins.get("dsp_clock")
        return 1 if pinned is None else pinned

    @property
    def dsp_products(self) -> int:
        """Products per DSP: 6, or 0 for the default of the number of bits."""
        return self.pins.get("dsp_products") or 0

    @property
    def dsp_registers(self) -> bool:
        """Return whether DSPs pass weights on in their registers, as in an RTL engine with six products per DSP."""
        return language_named(self.engine).dsp_registers(self.dsp_products)

    @property
    def fused(self) -> tuple[bool, ...]:
        """The ways to compute residual adds, in the order tried: True in the output stage, False as layers.

        Raises:
            ChoiceError: The pin ``added_maps`` is neither 0 nor 1.
        """
        pinned = self.pins.get("added_maps")
        if pinned not in (None, 0, 1):
            raise ChoiceError("added_maps", pinned, (0, 1), remedy="or leave it out, so that the search decides")
        return (True, False) if pinned is None else (pinned == 1,)


@dataclass(frozen=True)
class Alternatives:
    """The values to compare: all combinations of board, array, batch, clock, DDR rate, DSP clock and products.

    Attributes:
        boards: The boards.
        arrays: Pinned arrays, such as "13x16x16". If empty, the geometry is searched.
        batches: Numbers of frames that share each load of the weights.
        clocks_mhz: Target clocks; None for the clock with the least time per frame.
        ddr_gbps: Peak rates of the DDR in GB/s; None for the board's.
        dsp_clocks: DSP clocks per clock of the array, as in PINS; None for the options' value.
        dsp_products: Products per DSP, as in PINS; None for the options' value.
        engine: The engine, "hls" or "rtl"; None for the first engine that supports the DSP clock.
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
        """{"dsp_clock", "dsp_products": value} of each combination of these two; a value of None is left out."""
        choices = product(self.dsp_clocks, self.dsp_products)
        names = ("dsp_clock", "dsp_products")
        return tuple({n: pin for n, pin in zip(names, pins, strict=True) if pin is not None} for pins in choices)


def words_of_pins(pins: Mapping[str, int]) -> tuple[str, ...]:
    """Return fixed array parameters as phrases such as "dsp_clock 2", for a row of a comparison."""
    return tuple(f"{name} {number}" for name, number in pins.items())


def engine_for(engine: str | None, dsp_clock: int | None) -> str:
    """Return the requested engine, "hls" or "rtl"; without a request, the first that supports the DSP clock.

    Raises:
        ConflictError: The requested engine does not support the DSP clock.
    """
    clock = dsp_clock or 1
    chosen = engine or next(name for name, language in LANGUAGES.items() if clock <= 1 or language.fast_dsps)
    check_engine(chosen, clock)
    return chosen


def with_dsps(options: SystolicOptions, engine: str | None, pins: Mapping[str, int]) -> SystolicOptions:
    """Return the options with this DSP clock and these DSP products, and an engine that supports them.

    Args:
        options: The options.
        engine: The requested engine. None means the options' engine, or the engine that the pins need.
        pins: DSP clock and DSP products, by their names in PINS.

    Raises:
        ConflictError: The requested engine does not support the DSP clock.
    """
    asked = engine or (options.engine if options.engine != DEFAULT_ENGINE else None)
    merged = {**options.pins, **pins}
    return replace(options, pins=merged, engine=engine_for(asked, merged.get("dsp_clock")))


def check_engine(engine: str, dsp_clock: int) -> None:
    """Raise ConflictError if the engine cannot clock its DSPs ``dsp_clock`` times as fast as the array."""
    if dsp_clock > 1 and not language_named(engine).fast_dsps:
        raise ConflictError(
            (f"--engine {engine}", f"--dsp-clock {dsp_clock}"),
            "only the engine in SystemVerilog clocks its DSPs faster than the logic around them",
            remedy="add --engine rtl, or remove --dsp-clock",
        )


def check_geometry(text: str) -> None:
    """Raise InvalidValueError if ``text`` is not ROWSxCOLUMNSxLANES, such as "13x16x16"."""
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        raise InvalidValueError("an array", text, "ROWSxCOLUMNSxLANES, such as 13x16x16")


def geometry_pins(text: str) -> dict[str, int]:
    """Return {"rows": 13, "columns": 16, "lanes": 16} for "13x16x16"; InvalidValueError for another form."""
    check_geometry(text)
    parts = text.lower().replace("×", "x").split("x")
    return dict(zip(("rows", "columns", "lanes"), map(int, parts), strict=True))


def options_from(options: argparse.Namespace) -> SystolicOptions:
    """Return the systolic style's options of a ``systolic generate`` command line."""
    return SystolicOptions(
        engine=options.engine,
        schedule=options.schedule,
        batch=options.batch,
        pins={"dsp_clock": options.dsp_clock, "dsp_products": options.dsp_products},
        ddr_gbps=options.ddr_gbps,
        ddr_efficiency=options.ddr_efficiency,
        ddr_profile=options.ddr_profile,
        budget=budget_from(options),
    )

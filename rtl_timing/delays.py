"""The delay table: times of primitives and wires for one speed grade."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from boards.errors import ChoiceError
from rtl_timing.synthesis import Cell

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

TABLE = Path(__file__).with_name("delays.toml")

Pin = tuple[str, int]
"""A pin of a primitive: its name, and the bit."""


@dataclass(frozen=True)
class Arcs:
    """The timing arcs of one FPGA primitive, in nanoseconds.

    Attributes:
        clocks: The clock pins.
        through: Input pin, output pin, and the delay between them.
        launches: Output pin, and its delay after the clock's edge.
        captures: Input pin, and the time before the clock's edge at which it must be stable.
        inside: The longest delay between two registers inside the primitive. It is 0 if only the data sheet's highest
            clock limits that delay.
    """

    clocks: frozenset[str]
    through: tuple[tuple[Pin, Pin, float], ...]
    launches: tuple[tuple[Pin, float], ...]
    captures: tuple[tuple[Pin, float], ...]
    inside: float = 0.0


@dataclass(frozen=True)
class _Local:
    """A row of the delay table for a short wire with one load: patterns of driver, load and load pin, and its delay."""

    driver: re.Pattern[str]
    load: re.Pattern[str]
    pin: re.Pattern[str]
    ns: float


class DelayTable:
    """The delays of primitives and wires for one speed grade and core voltage.

    Attributes:
        grade: The speed grade and core voltage, such as ``-2 0.85``.
        clock_overhead_ns: The part of a clock period that skew and jitter take.
        p90: The 90th percentile of the ratio of routed to modelled path delays in the validation.
    """

    def __init__(self, stored: Mapping[str, Any], grade: str) -> None:
        grades: Mapping[str, float] = stored["grades"]
        if grade not in grades:
            raise ChoiceError("a speed grade with known delays", grade, sorted(grades), where=TABLE.name)
        self.grade = grade
        self._scales = {name: grades[grade] / factor for name, factor in grades.items()}
        self._cells = [(re.compile(row["kinds"]), row) for row in stored["cells"]]
        self._dsp = {
            key: value * self._scales[stored["dsp"]["grade"]]
            for key, value in stored["dsp"].items()
            if isinstance(value, float)
        }
        nets = stored["nets"]
        scale = self._scales[nets["grade"]]
        self._base, self._slope = nets["base"] * scale, nets["slope"] * scale
        self._local = [
            _Local(re.compile(driver), re.compile(load), re.compile(pin), ns * scale)
            for driver, load, pin, ns in nets["local"]
        ]
        self.clock_overhead_ns: float = stored["clock"]["overhead"] * self._scales[stored["clock"]["grade"]]
        self.p90: float = stored["error"]["p90"]
        self._known_locals: dict[tuple[str, str, str], float | None] = {}

    def wire_ns(self, driver: str, load: str, pin: str, loads: int) -> float:
        """Return the delay in nanoseconds of the wire from a primitive to one of its loads.

        Args:
            driver: The kind of the primitive that drives it.
            load: The kind of the primitive at its end.
            pin: The pin at its end.
            loads: How many pins the wire drives.
        """
        key = (driver, load, pin)
        if key not in self._known_locals:
            self._known_locals[key] = next(
                (
                    row.ns
                    for row in self._local
                    if row.driver.fullmatch(driver) and row.load.fullmatch(load) and row.pin.fullmatch(pin)
                ),
                None,
            )
        local = self._known_locals[key]
        if local is not None and (loads == 1 or pin == "CI"):
            return local
        fanned: float = self._base + self._slope * math.log2(max(loads, 1))
        return fanned

    def dsp_stage_ns(self, stage: str) -> float:
        """Return the delay in nanoseconds of a stage inside a DSP48E2, named as in the section ``dsp`` of the table."""
        return self._dsp[stage]

    def arcs(self, cell: Cell) -> Arcs:
        """Return the timing arcs of a primitive: its delays and set-up times in nanoseconds.

        Raises:
            ChoiceError: The table does not have the primitive.
        """
        if cell.kind == "DSP48E2":
            return self._dsp_arcs(cell)
        for kinds, row in self._cells:
            if kinds.fullmatch(cell.kind):
                return self._row_arcs(cell, row)
        raise ChoiceError("a primitive with known delays", cell.kind, [kinds.pattern for kinds, _ in self._cells])

    def _row_arcs(self, cell: Cell, row: Mapping[str, Any]) -> Arcs:
        scale = self._scales[row["grade"]]
        ripple = row.get("ripple", False)
        inputs = [pin for pin in cell.pins if pin not in cell.outputs]
        through = tuple(
            ((pin, bit), (output, position), ns * scale)
            for pattern, result, ns in row.get("through", ())
            for pin in inputs
            if (matched := re.fullmatch(pattern, pin))
            for output in cell.outputs
            if re.fullmatch(_filled(result, matched), output)
            for bit in range(len(cell.pins[pin]))
            for position in range(len(cell.pins[output]))
            if not ripple or position >= bit
        )
        launch: list[Sequence[Any]] = list(row.get("launch", ()))
        for parameter, rows in row.get("unregistered", {}).items():
            if not _is_set(cell.parameters.get(parameter, "0")):
                launch = [*rows, *launch]
        launches = []
        for output in sorted(cell.outputs):
            found = next((ns for pattern, ns in launch if re.fullmatch(pattern, output)), None)
            if found is not None:
                launches += [((output, bit), found * scale) for bit in range(len(cell.pins[output]))]
        captures = tuple(
            ((pin, bit), ns * scale)
            for pin in inputs
            for pattern, ns in row.get("capture", ())
            if re.fullmatch(pattern, pin)
            for bit in range(len(cell.pins[pin]))
        )
        clock = row.get("clock")
        clocks = frozenset(pin for pin in inputs if clock and re.fullmatch(clock, pin))
        return Arcs(clocks, through, tuple(launches), captures)

    def _dsp_arcs(self, cell: Cell) -> Arcs:
        """Return the timing arcs of a DSP48E2, which depend on the registers that its parameters enable."""
        ns = self._dsp

        def enabled(register: str) -> bool:
            return _is_set(cell.parameters.get(register, "1"))

        multiplies = cell.parameters.get("USE_MULT", "MULTIPLY").strip() != "NONE"
        to_alu = ns["multiplier"] + ns["product"] if multiplies and not enabled("MREG") else 0.0
        if multiplies and not enabled("MREG") and not enabled("ADREG"):
            to_alu += ns["preadder"]
        to_output = 0.0 if enabled("PREG") else ns["alu"] + ns["output"]
        outputs = [pin for pin in ("P", "PCOUT", "CARRYOUT", "CARRYCASCOUT") if pin in cell.outputs]
        results = [(pin, bit) for pin in outputs for bit in range(len(cell.pins[pin]))]
        through: list[tuple[Pin, Pin, float]] = []
        captures: list[tuple[Pin, float]] = []
        for pin in cell.pins:
            if pin in cell.outputs or pin == "CLK":
                continue
            register = {"ACIN": "AREG", "BCIN": "BREG"}.get(pin, f"{pin}REG")
            bits = [(pin, bit) for bit in range(len(cell.pins[pin]))]
            registered = pin not in ("A", "B", "C", "D", "ACIN", "BCIN", "PCIN") or enabled(register)
            if pin == "PCIN":
                registered = False
            if registered:
                captures += [(bit, ns["setup"]) for bit in bits]
                continue
            inside = 0.0 if pin in ("C", "PCIN") or not multiplies else to_alu
            first = 0.0 if pin in ("C", "PCIN") else ns["bypass"]
            if pin not in ("C", "PCIN") and multiplies and enabled("MREG"):
                captures += [(bit, first + ns["preadder"] + ns["multiplier"]) for bit in bits]
            elif enabled("PREG"):
                captures += [(bit, first + inside + ns["alu"]) for bit in bits]
            else:
                through += [(bit, result, first + inside + to_output) for bit in bits for result in results]
        if enabled("PREG"):
            launch = ns["clock_to_output"]
        elif multiplies and enabled("MREG"):
            launch = ns["input"] + to_output
        else:
            launch = ns["input"] + to_alu + to_output
        return Arcs(
            frozenset({"CLK"} & cell.pins.keys()),
            tuple(through),
            tuple((result, launch) for result in results),
            tuple(captures),
            self._dsp_inside(enabled, multiplies),
        )

    def _dsp_inside(self, enabled: Callable[[str], bool], multiplies: bool) -> float:
        """Return the delay of a DSP48E2 from its input registers to the next register, or 0 if every register is on.

        With all registers on, the data sheet's highest clock is the limit.
        """
        ns = self._dsp
        if not multiplies or not enabled("AREG") or not enabled("BREG"):
            return 0.0
        first = ns["input"] + ns["multiplier"] + (0.0 if enabled("ADREG") else ns["preadder"])
        if enabled("MREG"):
            return 0.0 if enabled("ADREG") else first
        return first + ns["product"] + ns["alu"] if enabled("PREG") else 0.0


def _filled(pattern: str, matched: re.Match[str]) -> str:
    """Return a pattern with ``{1}`` replaced by the first group of a match."""
    return pattern.replace("{1}", matched[1]) if matched.groups() and "{1}" in pattern else pattern


def _is_set(value: str) -> bool:
    """Return whether the value of a primitive's parameter enables a register. Yosys writes numbers in binary, words as
    they are."""
    return value.strip().upper() == "TRUE" or (bool(re.fullmatch(r"[01]+", value.strip())) and int(value, 2) > 0)


@cache
def delay_table(grade: str) -> DelayTable:
    """Return the delays of ``delays.toml`` for a speed grade and core voltage, such as ``-2 0.85``.

    Raises:
        ChoiceError: The table does not have the speed grade.
    """
    return DelayTable(tomllib.loads(TABLE.read_text("utf-8")), grade)

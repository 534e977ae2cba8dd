"""The engine in SystemVerilog counts instead of multiplying: DSPs are for the array and the requantisers only."""

from __future__ import annotations

import re

import pytest

from rtl_templates.sources import fixed_modules, geometry_package
from scheduler.systolic.array import COUNT_BITS
from tests.support.cases import cases
from tests.support.rtl.bench import NUMBERS, values

SOURCES = {**fixed_modules(), "systolic_geometry.sv": geometry_package(values())}
DSPS = {"mac_chain.sv": ["ad * b2"], "requantise_sum.sv": ["biased * factor"]}
"""The products that may take DSPs, by file."""
POWERS_OF_TWO = frozenset(["MAP_PORTS", "SAVE_ROWS", "ROW_BANKS", "LANES", "POSITIONS", "RESULT_WORDS", "STEP"])
"""Powers of two by the rules of scheduler/systolic/array.py, which need no arithmetic. STEP is 1 or MAP_PORTS."""
CONSTANT = re.compile(r"(?:[A-Z][A-Z_0-9]*|\d+|block|lane|chain|bank|port|place|fours|ones|part|l|n|m|p|r|s|c|f|h|i)\Z")
"""Constants of a module, and the variables of its unrolled loops."""


def products(text: str) -> list[str]:
    """Return every ``a * b``, ``a / b`` and ``a % b`` with a variable operand and without a power of two."""
    code = re.sub(r"//[^\n]*|\(\*.*?\*\)", "", text)
    found = re.findall(r"([\w.]+(?:'\(\w+\))?\)?) ([*/%]) \(?(?=([\w.']+))", code)
    return [
        f"{a} {operator} {b}"
        for a, operator, b in found
        if not (CONSTANT.match(a.rstrip(")")) and CONSTANT.match(b))
        and b not in POWERS_OF_TWO
        and not (operator == "*" and (a in POWERS_OF_TWO or a == "2" or b == "2"))
    ]


@cases("name", sorted(SOURCES))
def test_module_products_are_only_in_dsps(name: str) -> None:
    assert products(SOURCES[name]) == DSPS.get(name, [])


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("x <= pass.in_row_pitch * skip;", ["pass.in_row_pitch * skip"]),
        ("x <= a * ROWS + b / ROWS; // c * d", ["a * ROWS", "b / ROWS"]),
        ("(* use_dsp *) x <= group * SAVE_ROWS + 2 * row + LANES * COLUMNS;", []),
    ],
)
def test_products_of_a_line_are_found(line: str, found: list[str]) -> None:
    assert products(line) == found


def test_times_calls_equal_the_counted_calls() -> None:
    """Count the calls of ``address_product``, whose LUTs Yosys has counted (scheduler/systolic/engines/rtl/fabric.py).

    With one more call the modules must be counted again. The product in arrange is a short address. The product in
    read_program has a constant factor.
    """
    calls = {name: len(re.findall(r"\baddress_product\(", text)) for name, text in SOURCES.items()}
    assert {name: count for name, count in calls.items() if count} == {
        "load.sv": 7,  # one of them for rows that are read more than two apart
        "read_rows.sv": 4,
        "plan_chunks.sv": 3,
        "chunk_rows.sv": 1,
        "arrange.sv": 1,
        "read_program.sv": 1,
        "systolic_geometry.sv": 1,  # the function itself
    }
    assert NUMBERS["COUNT_BITS"] == COUNT_BITS

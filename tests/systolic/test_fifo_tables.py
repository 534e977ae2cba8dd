"""Test the tables of FIFOs in reports and JSON against the FIFOs that the generated sources declare."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from scheduler.systolic.area.resources import fifo_table
from scheduler.systolic.array import Array
from tests.support.accelerators import GEOMETRIES, design_of, networks

DECLARED = re.compile(r"SYSTOLIC_FIFO\((\w+), (\d+), (\d+), (\w+)\);")


def declared(source: str) -> dict[str, tuple[int, int, str]]:
    """Return bits, depth and kind of every FIFO that a generated top function declares, by its stream."""
    return {name: (int(bits), int(depth), kind) for name, bits, depth, kind in DECLARED.findall(source)}


def test_fifo_table_of_array_is_what_its_sources_declare() -> None:
    for array in GEOMETRIES.values():
        files = design_of(networks()["pools"], array).files
        rows = fifo_table(array)
        assert {row.name: (row.bits, row.depth, row.kind) for row in rows} == declared(files["src/top.cpp"].decode())
        assert all(row.reason and row.latency == 1 for row in rows)
        (activations,) = (row for row in rows if row.name == "activations")
        assert (activations.count, activations.depth) == (array.rows, 3 * (array.rows - 1) + 4)


def test_fifo_table_of_rtl_engine_has_memories_in_luts() -> None:
    array: Array = replace(GEOMETRIES["odd rows"], engine="rtl")
    kinds = {row.name: (row.count, row.kind, row.latency) for row in fifo_table(array)}
    assert kinds["passes"] == (1, "lutram", 1)
    assert "added" not in kinds


def test_fifo_table_of_pipeline_is_what_its_sources_declare() -> None:
    folder = Path(__file__).parents[1] / "golden" / "streaming"
    table = json.loads((folder / "generate.json").read_text())["fifos"]["table"]
    sources = declared((folder / "design" / "src" / "top.cpp").read_text())
    assert {row["name"]: (row["bits"], row["depth"], row["kind"]) for row in table} == sources
    assert {row["latency"] for row in table} == {1}

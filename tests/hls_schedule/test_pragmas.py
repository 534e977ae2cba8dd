"""Tests of which arrays in compiled code are registers, according to the pragmas and the debug information."""

from __future__ import annotations

from hls_schedule.pragmas import Directives, Pragma
from hls_schedule.reading.llvm_text import Module

RECORDS = {
    1: ("DILocalVariable", 'name: "word", type: !4'),
    2: ("DILocalVariable", 'name: "other", type: !5'),
    3: ("DILocalVariable", 'name: "list", type: !6'),
    4: ("DICompositeType", 'tag: DW_TAG_structure_type, name: "lanes_t"'),
    5: ("DIDerivedType", 'tag: DW_TAG_typedef, name: "named_t", baseType: !4'),
    6: ("DICompositeType", "tag: DW_TAG_array_type"),
}


def test_structs_are_registers_and_arrays_only_if_fully_partitioned() -> None:
    variables = {"%word": {1}, "%other": {1, 2}, "%list": {3}, "%both": {1, 3}, "%unnamed": set[int]()}
    module = Module(records=RECORDS, variables={("top", name): numbers for name, numbers in variables.items()})
    assert Directives(module, ()).registers == {("top", "%word"), ("top", "%other")}
    whole = Pragma("", 0, "ARRAY_PARTITION variable = list complete")
    assert Directives(module, (whole,)).registers == {("top", f"%{name}") for name in ("word", "other", "list", "both")}
    cyclic = Pragma("", 0, "ARRAY_PARTITION variable = list cyclic factor = 2")
    assert len(Directives(module, (cyclic,)).registers) == 2

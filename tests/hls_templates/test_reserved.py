"""Names that hardware languages reserve are refused where they become modules, ports or cells."""

from __future__ import annotations

import re
from pathlib import Path

from boards.errors import InvalidValueError
from hls_templates.reserved import hardware_name, languages_of
from hls_templates.streaming.sources import Packet, WeightPort
from hls_templates.vendor.block_design import BLOCK_DESIGN
from hls_templates.vendor.ports import RENAMED, Output, StreamingPorts, SystolicPorts
from tests.support.cases import cases
from tests.support.errors import raises

ROOT = Path(__file__).resolve().parents[2]


@cases(
    "name, languages",
    [
        ("design", ("Verilog",)),
        ("program", ("SystemVerilog",)),
        ("in", ("VHDL",)),
        ("Signal", ("VHDL",)),
        ("Design", ()),
        ("wait", ("Verilog", "VHDL")),
        ("source", ("Tcl",)),
        ("package", ("SystemVerilog", "VHDL", "Tcl")),
        ("systolic_top", ()),
    ],
)
def test_languages_of_a_word_are_those_that_reserve_it(name: str, languages: tuple[str, ...]) -> None:
    assert languages_of(name) == languages


def test_hardware_name_reserved_word_is_refused_with_its_language() -> None:
    with raises(InvalidValueError, what="the cell", got="design") as caught:
        hardware_name("design", "the cell")
    assert "Verilog" in caught.value.required


def test_check_names_weight_port_with_a_reserved_word_is_refused() -> None:
    ports = StreamingPorts(Packet(9, 8), Packet(4, 2), (WeightPort("buffer", "char", 8),))
    with raises(InvalidValueError, what="argument 'buffer' of the top function", got="buffer") as caught:
        ports.check_names()
    assert "VHDL" in caught.value.required


def test_design_names_are_free_or_renamed_by_the_tool() -> None:
    systolic = SystolicPorts(4, 4, 8, (Output("y", 0, 8),))
    streaming = StreamingPorts(Packet(9, 8), Packet(4, 2), (WeightPort("weights_conv1", "char", 8),))
    for ports in (systolic, streaming):
        ports.check_names()
    names = {argument.name for ports in (systolic, streaming) for argument in ports.arguments}
    assert {name for name in names if languages_of(name)} == RENAMED


def test_cells_and_modules_of_the_block_design_are_free() -> None:
    text = (ROOT / "hls_templates/templates/vendor/build_vivado.tcl.j2").read_text("utf-8")
    cells = set(re.findall(r"create_bd_cell .* (\w+)$", text, re.M)) | {BLOCK_DESIGN, f"{BLOCK_DESIGN}_wrapper"}
    assert {name for name in cells if languages_of(name)} == set()

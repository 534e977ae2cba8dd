"""Modelled delays of small netlists, whose slowest path is added up by hand from the delay table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from boards.errors import ChoiceError, UnsupportedError
from rtl_timing.covering import covered
from rtl_timing.delays import DelayTable, delay_table
from rtl_timing.netlist import flattened, with_port_registers
from rtl_timing.paths import TimingGraph, TimingPath
from rtl_timing.synthesis import Bit, Cell, Module
from tests.support.errors import raises

CLOCK, RESET = 1, 2
LAUNCH, LUT, SETUP = 0.096, 0.106, -0.027
LOCAL_D, LOCAL_CARRY = 0.058, 0.014


@pytest.fixture(scope="module")
def delays() -> DelayTable:
    return delay_table("-1 0.85")


def cell(name: str, kind: str, inputs: Mapping[str, Bit], outputs: Mapping[str, Bit], source: str = "") -> Cell:
    pins = {pin: (bit,) for pin, bit in {**inputs, **outputs}.items()}
    return Cell(name, kind, source, {}, pins, frozenset(outputs))


def register(name: str, data: Bit, output: Bit, clock: Bit = CLOCK) -> Cell:
    return cell(name, "FDRE", {"C": clock, "D": data, "CE": "1", "R": "0"}, {"Q": output}, f"{name}.sv:1")


def lut(output: int, *inputs: Bit) -> Cell:
    return cell(f"lut{output}", f"LUT{len(inputs)}", {f"I{i}": bit for i, bit in enumerate(inputs)}, {"O": output})


def module(*cells: Cell, name: str = "top", **ports: tuple[Bit, ...]) -> Module:
    return Module(name, cells, frozenset({"clk"} | ports.keys()), {"clk": (CLOCK,), **ports}, {})


def slowest(design: Module, delays: DelayTable, below: Mapping[str, Module] | None = None) -> TimingPath:
    return TimingGraph(flattened({"top": design, **(below or {})}, "top"), delays).slowest(1)[0]


def wire(loads: int) -> float:
    return 0.163 + 0.057 * math.log2(loads)


def test_path_between_registers_adds_launch_wires_luts_and_setup(delays: DelayTable) -> None:
    design = module(register("first", "0", 10), lut(11, 10), lut(12, 11, 10), register("last", 12, 13))
    path = slowest(design, delays)
    assert path.ns == pytest.approx(LAUNCH + wire(2) + LUT + wire(1) + LUT + LOCAL_D + SETUP)
    assert [step.kind for step in path.steps] == ["FDRE", "LUT1", "LUT2", "FDRE"]
    assert (path.steps[0].source, path.steps[-1].source) == ("first.sv:1", "last.sv:1")
    assert (path.launch_clock, path.capture_clock, path.levels) == ("clk", "clk", 2)


def test_path_through_modules_is_found_with_all_loads(delays: DelayTable) -> None:
    inner = Module("inner", (lut(5, 3), lut(6, 3, 4)), frozenset({"a", "b"}), {"a": (3,), "b": (4,), "y": (6,)}, {})
    instance = Cell("below", "inner", "", {}, {"a": (10,), "b": ("0",), "y": (11,)}, frozenset({"y"}))
    path = slowest(module(register("first", "0", 10), instance, register("last", 11, 12)), delays, {"inner": inner})
    assert path.ns == pytest.approx(LAUNCH + wire(2) + LUT + LOCAL_D + SETUP)


def test_module_that_passes_an_input_on_joins_its_nets(delays: DelayTable) -> None:
    inner = Module("inner", (), frozenset({"a"}), {"a": (3,), "y": (3,)}, {})
    instance = Cell("below", "inner", "", {}, {"a": (10,), "y": (11,)}, frozenset({"y"}))
    path = slowest(
        module(register("first", "0", 10), instance, lut(12, 11), register("last", 12, 13)), delays, {"inner": inner}
    )
    assert path.ns == pytest.approx(LAUNCH + wire(1) + LUT + LOCAL_D + SETUP)


def test_carry_output_depends_on_its_own_and_lower_positions_only(delays: DelayTable) -> None:
    carry = Cell(
        "carry",
        "CARRY4",
        "",
        {},
        {"S": (20, 21, 22, 23), "DI": ("0",) * 4, "CI": ("0",), "O": (30, 31, 32, 33), "CO": (40, 41, 42, 43)},
        frozenset({"O", "CO"}),
    )
    arcs = delays.arcs(carry)
    reached = {target for source, target, _ in arcs.through if source == ("S", 2)}
    assert reached == {("O", 2), ("O", 3), ("CO", 2), ("CO", 3)}
    assert delays.wire_ns("CARRY4", "CARRY4", "CI", 1) == pytest.approx(LOCAL_CARRY)


def test_chain_of_small_luts_is_one_level_after_mapping_for_depth(delays: DelayTable) -> None:
    chain = module(
        *(register(f"in{bit}", "0", bit) for bit in range(10, 16)),
        lut(20, 10, 11), lut(21, 20, 12), lut(22, 21, 13), lut(23, 22, 14), lut(24, 23, 15),
        register("last", 24, 30),
    )  # fmt: skip
    assert slowest(chain, delays).levels == 5
    mapped = covered(chain, delays)
    assert slowest(mapped, delays).levels == 1
    (left,) = [one for one in mapped.cells if one.kind.startswith("LUT")]
    assert sorted(bits[0] for pin, bits in left.pins.items() if pin != "O") == list(range(10, 16))


def test_chain_of_seven_inputs_has_two_levels_after_mapping_for_depth(delays: DelayTable) -> None:
    chain = module(
        *(register(f"in{bit}", "0", bit) for bit in range(10, 17)),
        lut(20, 10, 11), lut(21, 20, 12), lut(22, 21, 13), lut(23, 22, 14), lut(24, 23, 15), lut(25, 24, 16),
        register("last", 25, 30),
    )  # fmt: skip
    assert slowest(covered(chain, delays), delays).levels == 2


def test_covered_lut_with_an_input_of_many_cuts_keeps_its_own_inputs(delays: DelayTable) -> None:
    """Each kept cut of net 37 has two nets or more, and does not fit into a LUT together with five further inputs."""
    tree = module(
        *(register(f"in{bit}", "0", bit) for bit in range(10, 23)),
        lut(31, 10, 11), lut(32, 12, 13), lut(33, 14, 15), lut(34, 16, 17),
        lut(35, 31, 32), lut(36, 33, 34), lut(37, 35, 36),
        lut(40, 37, 18, 19, 20, 21, 22),
        register("last", 40, 50),
    )  # fmt: skip
    path = slowest(covered(tree, delays), delays)
    assert path.levels == 3
    assert path.steps[-2].kind == "LUT6"


def test_crossing_between_clocks_is_reported_with_both(delays: DelayTable) -> None:
    crossing = module(register("slow", "0", 10), lut(11, 10), register("fast", 11, 12, clock=9), clk2=(9,))
    path = slowest(crossing, delays)
    assert (path.launch_clock, path.capture_clock) == ("clk", "clk2")


def test_combinational_loop_is_refused(delays: DelayTable) -> None:
    looped = module(register("first", "0", 10), lut(11, 10, 12), lut(12, 11), register("last", 12, 13))
    with pytest.raises(UnsupportedError, match="combinational loop"):
        slowest(looped, delays)


def test_equal_registers_of_two_instances_are_one_place(delays: DelayTable) -> None:
    cells = [register("first", "0", 10)]
    for index in range(3):
        cells += [lut(20 + index, 10), register("last", 20 + index, 30 + index)]
    graph = TimingGraph(flattened({"top": module(*cells)}, "top"), delays)
    (path,) = graph.slowest(20)
    assert path.similar == 3
    assert graph.loads[graph.netlist.primitives[0].nets["Q"][0] or 0] == 3


def test_slowest_of_files_of_two_ends_in_a_file_returns_the_longer(delays: DelayTable) -> None:
    design = module(
        register("first", "0", 10), lut(11, 10), lut(12, 11), lut(13, 10),
        replace(register("near", 13, 20), source="short.sv:5"),
        replace(register("far", 12, 21), source="short.sv:6"),
        replace(register("unknown", 12, 22), source=""),
    )  # fmt: skip
    paths = TimingGraph(flattened({"top": design}, "top"), delays).slowest_of_files()
    assert [(path.steps[-1].source, path.levels) for path in paths] == [("short.sv:6", 2)]


def test_port_with_a_register_of_its_neighbour_starts_and_ends_paths(delays: DelayTable) -> None:
    design = Module(
        "top", (lut(12, 10, 11), register("last", 12, 13), register("first", "0", 11), lut(14, 13)),
        frozenset({"clk", "clk2", "in"}), {"clk": (CLOCK,), "clk2": (9,), "in": (10,), "out": (14,)}, {},
    )  # fmt: skip
    netlist = flattened({"top": design}, "top")
    assert [path.steps[0].source for path in TimingGraph(netlist, delays).slowest(9)] == ["first.sv:1"]
    paths = TimingGraph(with_port_registers(netlist, "clk", ("clk2",)), delays).slowest(9)
    assert [path.steps[-1].source for path in paths] == ["port:out", "last.sv:1"]
    assert paths[0].ns == pytest.approx(LAUNCH + wire(1) + LUT + wire(1) + SETUP)
    assert paths[1].ns == pytest.approx(LAUNCH + wire(1) + LUT + LOCAL_D + SETUP)
    assert {path.steps[0].source for path in paths} <= {"port:in", "first.sv:1", "last.sv:1"}


def test_dsp_without_registers_adds_its_stages(delays: DelayTable) -> None:
    registers = dict.fromkeys(("AREG", "BREG", "CREG", "DREG", "ADREG", "MREG", "PREG"), "0")
    pins: dict[str, tuple[Bit, ...]] = {"A": (10,), "CLK": (CLOCK,), "P": (11,)}
    loose = Cell("dsp", "DSP48E2", "", registers, pins, frozenset({"P"}))
    ((_, _, ns),) = delays.arcs(loose).through
    assert ns == pytest.approx(0.195 + 0.092 + 0.737 + 0.059 + 0.699 + 0.159)
    full = Cell("dsp", "DSP48E2", "", {}, pins, frozenset({"P"}))
    assert not delays.arcs(full).through
    assert [ns for _, ns in delays.arcs(full).captures] == [pytest.approx(0.15)]


def test_dsp_without_a_register_in_its_middle_is_a_path(delays: DelayTable) -> None:
    pins: dict[str, tuple[Bit, ...]] = {"A": (10,), "CLK": (CLOCK,), "P": (11,)}

    def paths(**registers: str) -> list[float]:
        dsp = Cell("dsp", "DSP48E2", "mac.sv:7", registers, pins, frozenset({"P"}))
        return [path.ns for path in TimingGraph(flattened({"top": module(dsp)}, "top"), delays).slowest(1)]

    assert paths() == []
    assert paths(MREG="0") == [pytest.approx(0.263 + 0.737 + 0.059 + 0.699)]
    assert paths(ADREG="0") == [pytest.approx(0.263 + 0.092 + 0.737)]
    assert paths(MREG="0", ADREG="0") == [pytest.approx(0.263 + 0.092 + 0.737 + 0.059 + 0.699)]
    assert paths(MREG="0", AREG="0", PREG="0") == []


def test_faster_grade_scales_every_delay() -> None:
    design = module(register("first", "0", 10), lut(11, 10), register("last", 11, 12))
    slow, fast = (slowest(design, delay_table(grade)).ns for grade in ("-1 0.85", "-2 0.85"))
    assert slow == pytest.approx(1.213 * fast)


def test_unknown_primitive_and_grade_are_refused(delays: DelayTable) -> None:
    with raises(ChoiceError, got="GTYE4_CHANNEL"):
        delays.arcs(cell("x", "GTYE4_CHANNEL", {}, {}))
    with raises(ChoiceError, got="-4 0.85"):
        delay_table("-4 0.85")

"""DSPs and memories that Yosys makes of the engine in SystemVerilog, compared with the scheduler's estimate."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.counts import (
    Counts,
    chosen,
    compared,
    counts_of,
    elaborated,
    main,
    recorded,
    synthesised,
    units,
    whole,
)
from boards.board import load
from boards.errors import ChoiceError, FileAccessError, MissingToolError, ToolError, UnsupportedError
from contract.geometry import RTL
from rtl_templates.sources import fixed_modules
from rtl_timing import yosys
from rtl_timing.elaboration import Unit
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.area.logic import Fabric
from scheduler.systolic.area.resources import PRODUCTS, used_by
from scheduler.systolic.array import TABLE_VALUES, Array
from scheduler.systolic.engines.rtl.fabric import ADDED_HALVES, HALVES, LINE
from systolic.files import write
from systolic.model import DesignInputs
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from systolic.styles.systolic.simulate import SystolicDesign, open_design
from tests.support.accelerators import picture_for, start
from tests.support.errors import raises
from tests.support.rtl.bench import NUMBERS, files
from tests.support.schedules import first_fit

pytestmark = pytest.mark.proof

ARRAY = Array(
    2,
    4,
    4,
    save_rows=1,
    map_ports=1,
    weight_ports=1,
    row_depth=256,
    weight_depth=4096,
    kept_depth=600,
    channel_tiles=32,
)
PLACED = {"rows": "lutram", "weights": "uram", "kept sums": "bram", PRODUCTS.name: "dsp"}
MEMORIES = ("sdp_ram",)


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> SystolicDesign:
    """Return a design that has every kind of primitive."""
    network, board = start(3, 8, 8).convolution(8).network(), load("zcu104")
    mapping = price(first_fit(network, replace(ARRAY, engine=RTL)), board, ddr_timing(board, board.clocks()[-1].mhz))
    mapping = replace(mapping, placement={**mapping.placement, **PLACED})
    folder = tmp_path_factory.mktemp("counts") / "design"
    write(generate(mapping, DesignInputs({}, picture_for(network, 5))), folder)
    return open_design(folder)


@pytest.fixture(scope="module")
def instances(design: SystolicDesign) -> str:
    pytest.importorskip("pyosys", reason="counting needs Yosys: pip install 'systolic-cnn[proof]'")
    return elaborated(design.path)


def test_dsps_and_memories_equal_the_estimate_of_the_scheduler(design: SystolicDesign, instances: str) -> None:
    """Only modules that should have DSPs or memories are counted; test_products.py tests the other modules."""
    every = units(instances)
    holding = chosen(every, ("mac_chain", "requantise_sum", *MEMORIES))
    lines = {str(line[0]): line for line in compared(design, every, synthesised(every, holding, "xcup", print))}
    assert [line[1:] for line in (lines["PEs"], lines[PRODUCTS.name], lines["weights"], lines["kept sums"])] == [
        ["dsp", 16, 16, "equal"],
        ["dsp", 8, 8, "equal"],
        ["uram", 4, 4, "equal"],
        ["bram", 4, 4, "equal"],
    ]
    _, impl, ours, theirs, _ = lines["rows"]
    assert impl == "lutram"
    assert int(theirs or 0) == pytest.approx(int(ours or 0), rel=0.15), "64 words in 8 LUTs, and Yosys' multiplexers"
    assert lines["ports of maps"][2:4] == [2, 0], "m_axi adapters are of Vitis HLS"


def test_module_counts_add_up_to_the_counts_of_the_engine(design: SystolicDesign, instances: str) -> None:
    """DSPs and memories: what is counted module by module, as often as it is there, is what the engine has as one."""
    every = units(instances)
    counted = synthesised(every, chosen(every, ("mac_chain", "requantise_sum", "fifo", *MEMORIES)), "xcup", print)
    total = sum((counted[unit.name].times(len(unit.paths)) for unit in every if unit.name in counted), Counts())
    engine = whole(instances, "xcup")
    assert (engine.dsp, engine.ram18, engine.uram) == (total.dsp, total.ram18, total.uram) == (24, 8, 4)


CHAIN = """module four_products (
    input logic clk, input logic signed [3:0][7:0] w1, w0, v, output logic signed [47:0] sum);
    logic signed [3:0][26:0] high, low;
    logic signed [3:0][17:0] value;
    always_comb
        for (int l = 0; l < 4; l++) begin
            high[l] = 27'(signed'(w1[l])) <<< 17;
            low[l] = 27'(signed'(w0[l]));
            value[l] = 18'(signed'(v[l]));
        end
    mac_chain #(.LENGTH(4), .INSTANTIATED(0)) chain (.clk, .high, .low, .value, .sum);
endmodule
"""
"""A chain as a row of PEs feeds it at 8 bits."""


def test_mac_chain_products_of_25_by_18_bits_are_one_dsp48e1_each(tmp_path: Path) -> None:
    """25 × 18 bits: of a bit more it would be two, with adders and registers between them."""
    pytest.importorskip("pyosys", reason="counting needs Yosys: pip install 'systolic-cnn[proof]'")
    texts = {"mac_chain.sv": fixed_modules()["mac_chain.sv"], "four_products.sv": CHAIN}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    options = "--keep-hierarchy --blackboxed-module DSP48E2"
    yosys.run(
        [
            yosys.read([tmp_path / name for name in texts], "four_products", tmp_path, options),
            "synth_xilinx -family xc7 -top four_products -noiopad -noclkbuf",
            f"tee -q -o {tmp_path}/stat.json stat -json",
        ]
    )
    cells = json.loads((tmp_path / "stat.json").read_text())["modules"]["\\mac_chain$four_products.chain"]
    assert cells["num_cells_by_type"] == {"DSP48E1": 4}


def test_lut_product_has_the_estimated_luts_and_no_dsp(tmp_path: Path) -> None:
    """The requantisers of such an engine use no DSP, because the array needs all of them."""
    pytest.importorskip("pyosys", reason="counting needs Yosys: pip install 'systolic-cnn[proof]'")
    module = tmp_path / "lut_product.sv"
    module.write_text(fixed_modules()[module.name])
    yosys.run(
        [
            yosys.read([module], "lut_product", tmp_path),
            "synth_xilinx -family xcup -top lut_product -noiopad -noclkbuf",
            f"tee -q -o {tmp_path}/stat.json stat -json",
        ]
    )
    counted = counts_of(
        json.loads((tmp_path / "stat.json").read_text())["modules"]["\\lut_product"]["num_cells_by_type"]
    )
    assert (counted.dsp, counted.lutram) == (0, 0)
    products = replace(ARRAY, engine=RTL)
    estimated = used_by(PRODUCTS, products, "fabric", load("zcu104")).lut / (products.save_rows * products.columns)
    assert estimated == pytest.approx(counted.lut, rel=0.05)


def module_counts(top: str, names: Sequence[str], numbers: Mapping[str, int], work: Path, text: str = "") -> Counts:
    """Return the primitives that Yosys makes of the module ``top``.

    Args:
        top: The module's name.
        names: The files of the modules that it instantiates.
        numbers: The engine's parameters that differ from NUMBERS.
        work: A folder for the files.
        text: The source of ``top`` if no file of the engine has it.
    """
    pytest.importorskip("pyosys", reason="counting needs Yosys: pip install 'systolic-cnn[proof]'")
    texts = {name.rsplit("/", 1)[-1]: text for name, text in files({**NUMBERS, **numbers}, {}).items()}
    paths = [work / name for name in ("systolic_geometry.sv", *names, *([f"{top}.sv"] if text else []))]
    for path in paths:
        path.write_text(texts.get(path.name, text))
    yosys.run(
        [
            yosys.read(paths, top, work),
            f"synth_xilinx -family xcup -flatten -top {top} -noiopad -noclkbuf",
            f"tee -q -o {work}/stat.json stat -json",
        ]
    )
    cells = json.loads((work / "stat.json").read_text())["modules"][f"\\{top}"]["num_cells_by_type"]
    return counts_of(cells)


ADDITION = """module addition import systolic_geometry::*; (
    input logic clk, input pass_t pass, input word_t result, other, output word_t sum);
    addition_t by;
    always_ff @(posedge clk) by <= addition_of(pass);
    add_words words (.clk, .by, .result, .other, .sum);
endmodule
"""


@pytest.mark.parametrize(
    ("top", "names", "text", "estimated", "lanes"),
    [
        ("shift_and_saturate", ("shift_and_saturate.sv",), "", HALVES, 1),
        ("addition", ("add_words.sv",), ADDITION, ADDED_HALVES, NUMBERS["LANES"]),
    ],
)
def test_halves_to_even_have_the_estimated_luts_and_registers(
    top: str, names: Sequence[str], text: str, estimated: Fabric, lanes: int, tmp_path: Path
) -> None:
    """An engine without them takes nothing for them. Yosys needs up to 6 % more LUTs under other names of signals."""
    numbers = {"ADDED_MAPS": 1, "VALUE_BITS": 4}
    up, even = (module_counts(top, names, {**numbers, "LATE_OFFSETS": late}, tmp_path, text) for late in (1, 2))
    assert (even.lut - up.lut) / lanes == pytest.approx(estimated.lut, abs=4, rel=0.1)
    assert (even.ff - up.ff) / lanes == pytest.approx(estimated.ff, abs=1)


def test_look_up_segment_has_the_estimated_luts_and_registers(tmp_path: Path) -> None:
    """look_up_segment without its memory, which is counted as LUTRAM by itself."""
    numbers = {"TABLE_DEPTH": TABLE_VALUES, "TABLE_SLOPES": 1}
    files = ("look_up_segment.sv", "lut_product.sv", "sdp_ram.sv")
    counted = module_counts("look_up_segment", files, numbers, tmp_path)
    assert (counted.dsp, counted.ram18) == (0, 1), "start and slope of 256 pieces are one memory"
    assert LINE.lut == pytest.approx(counted.lut, rel=0.05)
    assert LINE.ff == pytest.approx(counted.ff, rel=0.05)


def test_compared_memory_of_another_size_is_not_explained(
    design: SystolicDesign, tmp_path: Path, instances: str
) -> None:
    write_to = tmp_path / "src"
    write_to.mkdir()
    (tmp_path / "simulation").symlink_to(design.path / "simulation")
    for path in (design.path / "src").glob("*.sv"):
        text = path.read_text().replace(".DEPTH(WEIGHT_DEPTH)", ".DEPTH(3 * WEIGHT_DEPTH)")
        (write_to / path.name).write_text(text)
    every = units(elaborated(tmp_path))
    weights = [unit for unit in every if any(".feeder.banks" in path for path in unit.paths)]
    lines = compared(design, every, synthesised(every, weights, "xcup", print))
    assert ["weights", "uram", 4, 8, "NOT EXPLAINED"] in lines


def test_units_modules_of_equal_text_are_one_unit() -> None:
    leaf = '  attribute \\src "a.sv:{0}"\n  wire input 1 \\a\n  cell $not $not$a.sv${0}\n    connect \\A \\a\n  end\n'
    text = "".join(
        f"module \\{name}\n{body}end\n"
        for name, body in (
            ("systolic_top", "  cell \\part$systolic_top.x \\x\n  end\n  cell \\part$systolic_top.y \\y\n  end\n"),
            ("part$systolic_top.x", leaf.format(17)),
            ("part$systolic_top.y", leaf.format(18)),
        )
    )
    part, top = units(text)
    assert (part.name, part.paths) == ("part__0", ("systolic_top.x", "systolic_top.y"))
    assert top.body.count("cell \\part__0 ") == 2
    assert len(units(text.replace("$not $not$a.sv$18", "$neg $not$a.sv$18"))) == 3


def test_units_memories_of_different_primitives_are_separate() -> None:
    memory = '  attribute \\src "a.sv:1"\n  attribute \\ram_style "{0}"\n  memory width 8 size 64 \\words\n'
    text = "".join(
        f"module \\{name}\n{body}end\n"
        for name, body in (
            ("systolic_top", "  cell \\ram$systolic_top.x \\x\n  end\n  cell \\ram$systolic_top.y \\y\n  end\n"),
            ("ram$systolic_top.x", memory.format("block")),
            ("ram$systolic_top.y", memory.format("ultra")),
        )
    )
    assert [unit.paths for unit in units(text)[:-1]] == [("systolic_top.x",), ("systolic_top.y",)]
    assert len(units(text.replace("ultra", "block"))) == 2


def test_counts_of_cells_adds_them_up_per_resource() -> None:
    cells = {"RAMB18E2": 1, "RAMB36E2": 2, "URAM288": 3, "LUT6": 4, "RAM64M8": 1, "DSP48E1": 5, "FDRE": 6, "CARRY4": 7}
    assert counts_of(cells) == Counts(dsp=5, ram18=5, uram=3, lut=12, lutram=8, ff=6)
    assert (counts_of(cells) + counts_of(cells)) == counts_of(cells).times(2)
    with raises(UnsupportedError, subject="the memory RAM9X9"):
        counts_of({"RAM9X9": 1})


def test_recorded_counts_include_all_instances_of_a_module(design: SystolicDesign) -> None:
    """Two units of one module were counted, with two instances and with one."""
    every = (
        Unit("fifo__0", "fifo", "", ("a", "b")),
        Unit("fifo__1", "fifo", "", ("c",)),
        Unit("pool__0", "pool", "", ("d",)),
    )
    record = recorded(design, every, {"fifo__0": Counts(lut=5, ff=1), "fifo__1": Counts(lut=7, lutram=4)})
    assert record["modules"] == {"fifo": {"instances": 3, **vars(Counts(lut=17, lutram=4, ff=2))}}
    assert (record["board"], record["array"]["rows"]) == ("zcu104", 2)
    assert json.loads(json.dumps(record)) == record


def test_missing_source_module_or_tool_is_refused(
    design: SystolicDesign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instances: str
) -> None:
    with raises(FileAccessError, path=str(tmp_path / "src/systolic_top.sv")):
        elaborated(tmp_path)
    with raises(ChoiceError, what="--module", got="sdp"):
        main([str(design.path), "--module", "sdp"])
    with raises(ToolError, tool="Yosys") as caught:
        yosys.run(["nothing"])
    assert "No such command: nothing" in caught.value.output
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with raises(MissingToolError, tool="Yosys"):
        elaborated(design.path)

"""Test ``systolic check``: it finds defects planted into generated sources, with their lines."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.cases import cases
from tests.support.traced_cycles import traced_cycles

pytest.importorskip("ziglang", reason="check compiles the sources with the clang of the package ziglang")

from boards.board import load
from boards.errors import DamagedFileError
from hls_schedule.check import CheckedLoop, read_sources
from scheduler.hardware.primitives import product_dsps
from systolic.checking.derived import with_derived_loops, write_marks
from systolic.checking.design import DesignCheck, GeneratedClock, check_design, generated_clock
from systolic.checking.dsp_table import ALL, dsp_rows
from systolic.checking.part_speed import part_speed
from systolic.cli.main import main
from systolic.files import write
from systolic.styles.registry import open_design, style_of
from tests.support.accelerators import GEOMETRIES, design_of, networks
from tests.support.errors import raises

MHZ = 300.0
MARK = re.compile(r"^\s*SYSTOLIC_PIPELINE\(.*\);$", re.MULTILINE)

LONG_PATH = """
extern int from_elsewhere;
static inline int planted(int value) {
    value = value > 77 ? value * 5 + 13 : value - 5;
    return value < 1000 ? (value ^ 21) + 3 : value - (value >> 3);
}
"""
TWO_STORES = """
extern int from_elsewhere, planted_bank, to_elsewhere;
static int banks[64][4];
static inline int planted(int value) {
#pragma HLS INLINE
    banks[value & 63][planted_bank & 3] = value;
    banks[value & 63][(planted_bank + 1) & 3] = value + 1;
    return banks[(value >> 6) & 63][2];
}
"""
STRUCT_OF_ARRAYS = """
extern int from_elsewhere, to_elsewhere;
struct planted_t {
    int lane[8];
};
static planted_t words[64];
static inline int planted(int value) {
#pragma HLS INLINE
    planted_t word;
    for (int l = 0; l < 8; ++l) word.lane[l] = value + l * value;
    words[value & 63] = word;
    int sum = 0;
    for (int l = 0; l < 8; ++l) sum += words[(value >> 6) & 63].lane[l];
    return sum;
}
"""
BOUND = """
#pragma HLS BIND_STORAGE variable = {name} type = ram_s2p impl = lutram
#pragma HLS DEPENDENCE variable = {name} type = inter false
        to_elsewhere = planted(from_elsewhere);
"""
PARTITION = "\n#pragma HLS ARRAY_PARTITION variable = banks complete dim = 2"
PRODUCT = """
extern int from_elsewhere, to_elsewhere;
static inline int planted(int value) {
#pragma HLS INLINE
    return value * (value >> 3);
}
"""
DEFECTS = {
    "a long carried path": (LONG_PATH, "\n        from_elsewhere = planted(from_elsewhere);", "carried path"),
    "two stores per cycle into a bank chosen at run time": (
        TWO_STORES,
        PARTITION + BOUND.format(name="banks"),
        "ports of banks",
    ),
    "a struct of arrays that is not aggregated": (STRUCT_OF_ARRAYS, BOUND.format(name="words"), "ports of words"),
}


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a generated design, to be read only."""
    folder = tmp_path_factory.mktemp("check") / "design"
    write(design_of(networks()["pools"], GEOMETRIES["narrow"]), folder)
    return folder


@pytest.fixture(scope="module")
def report(design: Path) -> DesignCheck:
    """Return the result of ``systolic check`` for the design."""
    return check_design(design, MHZ)


def with_planted(design: Path, folder: Path, code: str, call: str) -> tuple[Path, str]:
    """Write the sources with a defect in the reader's first loop, and return the top file and the place of its
    pragma."""
    folder.mkdir()
    for path in (design / "src").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    header = folder / "read.h"
    text = header.read_text("utf-8")
    mark = MARK.search(text)
    assert mark is not None
    text = text[: mark.end()] + call + text[mark.end() :]
    first = text.index("#include")
    line = text[:first].count("\n") + code.count("\n") + text[first : mark.end()].count("\n") + 1
    header.write_text(text[:first] + code + text[first:], "utf-8")
    return folder / "top.cpp", f"read.h:{line}"


@pytest.mark.engine
@pytest.mark.parametrize("defect", DEFECTS)
def test_check_finds_planted_defect_at_its_line(design: Path, tmp_path: Path, defect: str) -> None:
    code, call, reason = DEFECTS[defect]
    source, place = with_planted(design, tmp_path / "src", code, call)
    loops: dict[str, CheckedLoop] = {loop.source: loop for loop in read_sources(source).check(MHZ)}
    loop = loops[place]
    assert not loop.holds
    assert reason in loop.reason
    if reason == "carried path":
        text = (source.parent / "read.h").read_text("utf-8").splitlines()
        lines = [text[int(step.source.partition(":")[2]) - 1] for step in loop.path if step.source.startswith("read.h")]
        assert any("value * 5 + 13" in line or "value < 1000" in line for line in lines)


@pytest.mark.engine
def test_check_covers_every_loop(design: Path, report: DesignCheck) -> None:
    """Except one loop, which has no iterations because this array has no table."""
    marks = {
        f"{path.name}:{text[: mark.end()].count(chr(10)) + 1}"
        for path in (design / "src").iterdir()
        if path.name != "instrument.h"
        for text in [path.read_text("utf-8")]
        for mark in MARK.finditer(text)
        if not text[: mark.start()].endswith("i < TABLE_DEPTH; ++i) {\n")
    }
    assert marks == {loop.source for loop in report.loops}


def test_check_command_returns_status_and_json(
    design: Path, report: DesignCheck, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["check", str(design), "--clock", "300", "--json", "-"])
    values = json.loads(capsys.readouterr().out)
    assert code == (0 if report.holds else 1)
    assert {"clock_mhz", "holds", "highest_clock_mhz", "loops", "memories", "dsps"} <= set(values)
    keys = {
        "process",
        "source",
        "declared_ii",
        "derived_ii",
        "declared_depth",
        "derived_depth",
        "path_ns",
        "budget_ns",
        "path",
    }
    assert all(keys <= set(loop) for loop in values["loops"])
    printed = [line.split() for line in report.text().split("\n\n")[0].splitlines()[1:]]
    told = {(row[1], f"{float(row[7]):.2f}") for row in printed}
    assert told == {(loop["source"], f"{loop['budget_ns']:.2f}") for loop in values["loops"]}
    assert values["holds"] == report.holds


def test_check_compares_memories_with_their_estimate(report: DesignCheck) -> None:
    rows = {memory.source.partition(":")[0]: memory for memory in report.memories}
    assert {"pool.h", "top.cpp"} <= set(rows)
    assert {"weight_buffer", "stored_sums"} <= {memory.name for memory in report.memories}
    for memory in rows.values():
        assert memory.primitive in ("bram", "uram", "lutram")
        assert memory.estimated is not None
        assert memory.derived is not None
        assert memory.derived >= memory.estimated > 0


def test_check_derives_the_estimated_dsps(design: Path, report: DesignCheck) -> None:
    rows = {row.process: row for row in report.dsps}
    assert {"pe_row", "last_pe_row", ALL} <= set(rows)
    assert all(row.derived == row.estimated for row in report.dsps), report.text()
    assert rows[ALL].estimated == open_design(design).manifest.estimate.dsp
    array = GEOMETRIES["narrow"]
    assert rows["pe_row"].derived + rows["last_pe_row"].derived == array.mac_dsps
    values = report.values()["dsps"]
    assert [value["derived"] for value in values] == [row.derived for row in report.dsps]
    assert all(value["products"] for value in values if value["process"] != ALL)


NARROW = GEOMETRIES["narrow"]


@pytest.mark.engine
@pytest.mark.parametrize(
    "numbers",
    [
        {"late_offsets": 1},
        {"map_products": 1},
        {"added_maps": 1},
        {"map_depth": 256, "map_stride": 2},
        {"table_depth": 256, "table_slopes": 1},
    ],
    ids=lambda numbers: ", ".join(numbers),
)
def test_optional_units_take_no_more_dsps(numbers: dict[str, int], tmp_path: Path, report: DesignCheck) -> None:
    array = replace(NARROW, **numbers)  # type: ignore[arg-type]
    write(design_of(networks()["pools"], array), tmp_path / "design")
    larger = check_design(tmp_path / "design", MHZ)
    assert larger.holds, larger.text()
    assert [row.derived for row in larger.dsps] == [row.derived for row in report.dsps]


@pytest.mark.engine
def test_check_finds_planted_multiplier_at_its_line(design: Path, tmp_path: Path) -> None:
    source, _ = with_planted(design, tmp_path / "src", PRODUCT, "\n        to_elsewhere = planted(from_elsewhere);")
    opened = open_design(design)
    estimates = style_of(opened).estimates(opened)
    rows = dsp_rows(read_sources(source).multipliers(), estimates.dsps, opened.manifest.estimate.dsp, "DSP48E1")
    text = (source.parent / "read.h").read_text("utf-8").splitlines()
    line = next(number for number, words in enumerate(text, 1) if "value * (value >> 3)" in words)
    larger = {row.process: row for row in rows if not row.holds}
    assert ALL in larger
    (product,) = next(row for process, row in larger.items() if process.startswith("read_rows")).products
    assert (product.source, product.dsps) == (f"read.h:{line}", product_dsps(32, 29, "DSP48E1"))


@pytest.mark.engine
def test_check_finds_products_that_do_not_share_a_dsp(design: Path, tmp_path: Path) -> None:
    """Multiply each weight of a packed word alone, so that a row needs one DSP per column that should share one."""
    sources = tmp_path / "src"
    shutil.copytree(design / "src", sources)
    text, packed = (sources / "packed.h").read_text("utf-8"), "chain += chain_t(weight) * value;"
    assert packed in text
    alone = "for (int c = 0; c < PACK_COLUMNS; ++c) chain += chain_t(w[c][l]) * value * (1LL << (c * WEIGHT_SHIFT));"
    (sources / "packed.h").write_text(text.replace(packed, alone), "utf-8")
    opened = open_design(design)
    estimates = style_of(opened).estimates(opened)
    total = opened.manifest.estimate.dsp
    rows = {
        row.process: row
        for row in dsp_rows(read_sources(sources / "top.cpp").multipliers(), estimates.dsps, total, "DSP48E1")
    }
    columns = GEOMETRIES["narrow"].packing.columns
    assert rows["pe_row"].derived == columns * rows["pe_row"].estimated
    assert rows["pe_row"].note == rows[ALL].note == "more than estimated"


@pytest.mark.engine
def test_check_finds_unprotected_sum_chain_at_its_line(design: Path, tmp_path: Path) -> None:
    sources = tmp_path / "src"
    shutil.copytree(design / "src", sources)
    text, off = (sources / "pe_array.h").read_text("utf-8"), "#pragma HLS EXPRESSION_BALANCE off\n"
    assert off in text
    (sources / "pe_array.h").write_text(text.replace(off, "", 1), "utf-8")  # in pe_row, not in last_pe_row
    opened = open_design(design)
    estimates = style_of(opened).estimates(opened)
    built = read_sources(sources / "top.cpp").multipliers()
    rows = dsp_rows(built, estimates.dsps, opened.manifest.estimate.dsp, "DSP48E1", estimates.cascaded)
    (broken,) = (row for row in rows if not row.holds)
    packed = (sources / "packed.h").read_text("utf-8").splitlines()
    line = next(number for number, words in enumerate(packed, 1) if "chain += chain_t(weight) * value;" in words)
    assert (broken.process, broken.balanced) == ("pe_row", (f"packed.h:{line}",))
    assert broken.note == f"sums at packed.h:{line} may become trees: EXPRESSION_BALANCE off is missing"


WHOLE_ARRAY = """
inline void pe_rows(pass_t pass, hls::stream<row_activations_t> activations[ROWS], hls::stream<weights_t> &weights,
                    hls::stream<positions_t> sums[ROWS]) {
#pragma HLS EXPRESSION_BALANCE off
    sum_t accumulator[ROWS][POSITIONS][COLUMNS];
#pragma HLS ARRAY_PARTITION variable = accumulator complete dim = 0
    int step = 0;
    for (int i = 0; i < pass.array_steps; ++i) {
        SYSTOLIC_PIPELINE(1, 16);
        const weights_t weight = weights.read();
        int next = step;
        for (int m = 0; m < ROWS; ++m) {
#pragma HLS UNROLL
            next = step;
            row_step(activations[m].read(), weight, has_nibbles(pass), pass.steps - 1, next, accumulator[m], sums[m]);
        }
        step = next;
    }
}
"""


@pytest.mark.engine
def test_check_finds_whole_array_in_one_loop(
    design: Path, report: DesignCheck, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, rows = tmp_path / "src", GEOMETRIES["narrow"].rows
    shutil.copytree(design / "src", sources)
    header, top = sources / "pe_array.h", sources / "top.cpp"
    text, calls = header.read_text("utf-8"), top.read_text("utf-8")
    end = text.rindex("#endif")
    header.write_text(text[:end] + WHOLE_ARRAY + text[end:], "utf-8")
    calls = re.sub(r"    pe_row\(.*\);\n", "", calls)
    top.write_text(
        re.sub(r"    last_pe_row\(.*\);", "    pe_rows(pass, activations, weights[0], sums);", calls), "utf-8"
    )
    whole = next(loop for loop in read_sources(top).check(MHZ) if loop.process == "pe_rows")
    row = next(loop for loop in report.loops if loop.process == "last_pe_row")
    assert (whole.products, whole.streams) == (rows * row.products, 2 * rows + 1)
    assert whole.operations > (rows - 1) * row.operations
    monkeypatch.setattr("hls_schedule.check.MAX_PRODUCTS", row.products)
    assert (whole.broad, row.broad) == (True, False)
    line = text[:end].count("\n") + WHOLE_ARRAY[: WHOLE_ARRAY.index("SYSTOLIC_PIPELINE")].count("\n") + 1
    assert whole.source == f"pe_array.h:{line}"
    spoken = replace(report, loops=(*report.loops, whole)).text()
    drives = f"drives {whole.operations:,} operations and {whole.products:,} products"
    assert f"pe_rows, pe_array.h:{line}: one enable signal {drives}" in spoken
    assert "last_pe_row, " not in spoken


@pytest.mark.engine
def test_trace_uses_derived_intervals_and_depths(design: Path, report: DesignCheck, tmp_path: Path) -> None:
    folder = tmp_path / "design"
    shutil.copytree(design, folder)
    opened = open_design(folder)
    derived = with_derived_loops(opened, MHZ)
    pool = next(loop for loop in report.loops if loop.process == "pool")
    file, _, line = pool.source.partition(":")
    text = (derived.path / "src" / file).read_text("utf-8").splitlines()[int(line) - 1]
    assert text.strip() == f"SYSTOLIC_PIPELINE({pool.derived_ii}, {pool.derived_depth});"
    assert (folder / "src" / file).read_bytes() == (design / "src" / file).read_bytes()
    cycles = traced_cycles(derived)
    assert cycles <= traced_cycles(opened)
    deeper = replace(pool, derived_depth=pool.derived_depth + 100)
    write_marks(derived.path / "src", [deeper if loop is pool else loop for loop in report.loops])
    assert traced_cycles(derived) > cycles


def test_write_marks_without_pragma_raises_damaged_file_error(report: DesignCheck, tmp_path: Path) -> None:
    loop = report.loops[0]
    (tmp_path / loop.source.partition(":")[0]).write_text("\n" * int(loop.source.partition(":")[2]))
    with raises(DamagedFileError, place=f"line {loop.source.partition(':')[2]}"):
        write_marks(tmp_path, [loop])


@pytest.mark.engine
def test_generate_reports_the_derived_clock(design: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert generated_clock(design) == GeneratedClock(None, "")
    monkeypatch.delenv("SYSTOLIC_CHECK")
    sentence = generated_clock(design).sentence
    own = check_design(design, None).clock_sentence()
    assert sentence == f"derived from the sources: {own}"
    assert "hold up to" in own or "not all of them hold at any clock, because of memory ports in" in own


@pytest.mark.engine
def test_check_reports_progress_in_percent(design: Path) -> None:
    told: list[str] = []
    check_design(design, MHZ, told.append)
    loops = [text for text in told if text.startswith("scheduling the loops, ")]
    assert [text.split(",")[1] for text in loops] == [f" {number} of {len(loops)}" for number in range(len(loops))]
    shares = [int(text.split()[-1].rstrip("%")) for text in loops]
    assert shares[0] == 0
    assert shares == sorted(shares)  # the percentage counts the operations of finished loops
    assert 50 < shares[-1] <= 100  # after rounding
    assert len(loops) > 10


def test_generated_clock_survives_bad_sources(design: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYSTOLIC_CHECK")
    folder = tmp_path / "design"
    shutil.copytree(design, folder)
    (folder / "src" / "top.cpp").write_text("int main( {\n")
    assert generated_clock(folder).sentence.startswith("no clock is derived from the sources: ")


@cases(
    "board, clock, words",
    [
        ("zcu104", 341, ""),
        ("ultra96-v2", 281, "about 281 MHz on the board's part (-1I, VCCINT 0.85 V), whose DSPs are 1.21 times slower"),
        ("kv260", 268, "about 268 MHz on the board's part (-2LV, VCCINT 0.72 V)"),
        ("pynq-z2", None, "no delay of the board's part (-1C) is known"),
    ],
)
def test_slower_part_lowers_the_clock(board: str, clock: float | None, words: str) -> None:
    speed = part_speed(load(board))
    assert speed.values(341.0)["highest_clock_mhz"] == clock
    assert words in speed.text(341.0)
    assert bool(speed.text(341.0)) == bool(words)


def test_check_clock_must_be_positive(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(design), "--clock", "-1"]) == 2
    assert re.search(r"--clock in MHz .*-1", capsys.readouterr().err)

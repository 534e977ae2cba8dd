"""Tests of the facts of every board, and of the errors of a wrong board file."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from boards import board as boards
from boards.errors import (
    ChoiceError,
    ConflictError,
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MissingValueError,
    RangeError,
    SystolicError,
    UnknownKeyError,
)
from boards.facts import Resources
from tests.support.errors import raises

FOLDER = Path(boards.__file__).parent
ZCU104 = (FOLDER / "zcu104.toml").read_text(encoding="utf-8")


def refusal(text: str, tmp_path: Path) -> SystolicError:
    """Return the error of reading a board file with this text. Its message must name the file."""
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SystolicError) as caught:
        boards.read_board(path)
    assert f"{path}" in str(caught.value)
    return caught.value


def changed(old: str, new: str) -> str:
    assert ZCU104.count(old) >= 1
    return ZCU104.replace(old, new, 1)


def test_board_files_are_all_listed_and_loaded() -> None:
    assert boards.names() == tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))
    assert "zcu104" in boards.names()
    for name in boards.names():
        assert boards.load(name).name == name


def test_zcu104_facts_equal_the_data_sheet() -> None:
    board = boards.load("ZCU104")
    assert board.part == "xczu7ev-ffvc1156-2-e"
    assert board.resources == Resources(lut=230_400, lutram=101_760, ff=460_800, bram36=312, uram=96, dsp=1728)
    assert (board.dsp.kind, board.dsp.a_bits, board.dsp.b_bits) == ("DSP48E2", 27, 18)
    assert board.ddr.peak_gbps == pytest.approx(19.2)
    assert board.ddr.preset_gbps == pytest.approx(17.064)
    assert (board.ddr.share(), board.ddr.share("optimistic")) == (0.75, 0.85)
    assert [port.bits for port in board.ports if not port.coherent] == [128] * 4
    assert board.control.base == 0xA000_0000


FACTS = {
    "zcu102": (2520, 912, 0, 274_080, 17.064, 0.75),
    "ultra96-v2": (360, 216, 0, 70_560, 4.264, 0.925),
    "aup-zu3": (360, 216, 0, 70_560, 9.6, 0.75),
    "kr260": (1248, 144, 64, 117_120, 19.2, 0.75),
    "kv260": (1248, 144, 64, 117_120, 19.2, 0.75),
    "pynq-z2": (220, 140, 0, 53_200, 2.1, 0.79),
}
"""Numbers of DSPs, BRAM36, URAMs and LUTs, the preset's DDR rate in GB/s, and the measured share of it, from the data
sheets and docs/reference/boards.md."""


def test_board_resources_and_ddr_rates_equal_the_data_sheets() -> None:
    for name, (dsp, bram36, uram, lut, gbps, measured) in FACTS.items():
        board = boards.load(name)
        resources = board.resources
        assert (resources.dsp, resources.bram36, resources.uram, resources.lut) == (dsp, bram36, uram, lut), name
        assert board.ddr.preset_gbps == pytest.approx(gbps), name
        assert board.ddr.share() == measured, name


def test_boards_have_two_flip_flops_per_lut() -> None:
    for board in map(boards.load, boards.names()):  # both 7-series and UltraScale+ have two
        assert board.resources.ff == 2 * board.resources.lut, board.name


def test_vendor_names_match_the_board_family() -> None:
    for board in map(boards.load, boards.names()):
        new = board.family == "zynq-ultrascale+"
        assert board.ps.ip == ("zynq_ultra_ps_e" if new else "processing_system7"), board.name
        assert board.dsp.kind == ("DSP48E2" if new else "DSP48E1"), board.name
        assert {port.bits for port in board.ports} == ({128} if new else {64}), board.name
        keys = [board.ps.interrupt_key, board.control.enable, board.ps.clock_mhz_key]
        keys += [key for port in board.ports for key in (port.enable, port.width)]
        assert all(key.startswith("PSU__" if new else "PCW_") for key in keys), board.name


def test_board_file_groups_each_name_a_source() -> None:
    for path in FOLDER.glob("*.toml"):
        lines = path.read_text(encoding="utf-8").splitlines()
        seen: set[str] = set()
        sourced = False
        for line in lines:
            sourced |= line.startswith("# Source: ")
            heading = re.match(r"\[+(\w+)\]+$", line)
            if heading and heading[1] not in seen:
                assert sourced, f"{path.name}: [{heading[1]}] names no source"
                seen.add(heading[1])
                sourced = False
        assert seen - {"floorplan"} == {"resources", "dsp", "ddr", "port", "control", "ps", "pll", "target", "fmax"}


def test_load_unknown_board_is_refused_with_the_nearest_name() -> None:
    with raises(ChoiceError, what="the board", got="zcu14", choices=boards.names()) as caught:
        boards.load("zcu14")
    assert caught.value.nearest() == "zcu104"
    assert caught.value.remedy == "or give a file of your own that ends in .toml"
    for name in ("../zcu104", "zcu105"):
        with raises(ChoiceError, got=name):
            boards.load(name)


WRONG: list[tuple[str, str, type[SystolicError], dict[str, object]]] = [
    ("dsp = 1728\n", "", MissingValueError, {"what": "resources.dsp", "reason": "it must be a whole number"}),
    ("[ddr]", "[dddr]", MissingValueError, {"what": "ddr"}),
    ("dsp = 1728", "dsp = 1728\ndps = 1", UnknownKeyError, {"keys": ["resources.dps"]}),
    ("dsp = 1728", "dsp = 1728\n" + "y." * 20 + "y = 1", UnknownKeyError, {"keys": ["resources.y"]}),
    ('title = "ZCU104"', 'z = 1\ntitle = "ZCU104"\ncolour = "red"', UnknownKeyError, {"keys": ["colour", "z"]}),
    ("dsp = 1728", 'dsp = "many"', InvalidValueError, {"what": "resources.dsp", "got": "many"}),
    ("dsp = 1728", "dsp = true", InvalidValueError, {"what": "resources.dsp", "got": True}),
    ("dsp = 1728", "dsp = -1", RangeError, {"what": "resources.dsp", "got": -1, "low": 1, "high": 50_000}),
    ("dsp = 1728", f"dsp = {10**30}", RangeError, {"got": 10**30}),
    ("dsp = 1728", f"dsp = {10**400}", RangeError, {"got": 10**400}),
    ("dsp = 1728", f"dsp = {'9' * 5000}", DamagedFileError, {}),
    ("dsp = 775", "dsp = inf", RangeError, {"what": "fmax.dsp", "got": float("inf")}),
    ("dsp = 775", "dsp = -inf", RangeError, {"what": "fmax.dsp", "got": float("-inf")}),
    ("dsp = 775", f"dsp = {10**400}", RangeError, {"what": "fmax.dsp", "got": 10**400}),
    ("dsp = 775", "dsp = nan", RangeError, {"what": "fmax.dsp"}),
    ("dsp = 775", 'dsp = "775"', InvalidValueError, {"what": "fmax.dsp", "got": "775", "required": "a number"}),
    ("dsp = 775", "dsp = true", InvalidValueError, {"what": "fmax.dsp", "got": True, "required": "a number"}),
    ('kind = "DSP48E2"', 'kind = "DSP58"', ChoiceError, {"got": "DSP58", "choices": ("DSP48E1", "DSP48E2")}),
    ("coherent = false", "coherent = 0", InvalidValueError, {"what": "port[0].coherent", "got": 0}),
    ("preset_mts = 2133", "preset_mts = 2666", RangeError, {"got": 2666, "high": 2400}),
    ("measured_share = 0.75", "measured_share = 0.9", RangeError, {"got": 0.9, "high": 0.85}),
    ("lutram = 101760", "lutram = 300000", RangeError, {"got": 300_000, "high": 230_400}),
    ("uram = 96", "uram = 0", ConflictError, {"subjects": ("resources.uram = 0", "fmax.uram = 600")}),
    ("S_AXI_HP1_FPD", "S_AXI_HP0_FPD", InvalidValueError, {"what": "port.name", "got": "S_AXI_HP0_FPD"}),
    ('title = "ZCU104"', 'title = ""', InvalidValueError, {"what": "title", "got": ""}),
    ('image = "ZCU104"', 'image = "a\\nb"', InvalidValueError, {"what": "image", "got": "a\nb"}),
    ("[[pll]]", "[pll]", InvalidValueError, {"what": "pll", "required": "a list of at least one table"}),
    ("dsp = 1728", "dsp = 1728\n" + "y." * 101 + "y = 1", RangeError, {"got": 101, "high": 100}),
]


def test_read_board_wrong_file_is_refused_with_its_key_and_place(tmp_path: Path) -> None:
    for old, new, kind, fields in WRONG:
        error = refusal(changed(old, new), tmp_path)
        assert type(error) is kind, f"{new[:60]}: {error}"
        assert {name: getattr(error, name) for name in fields} == fields, new[:60]
        if not isinstance(error, DamagedFileError):
            assert error.where.partition(":")[0] == str(tmp_path / "mine.toml"), new[:60]


def test_read_board_unknown_key_error_lists_the_known_keys(tmp_path: Path) -> None:
    error = refusal(changed("dsp = 1728", "dsp = 1728\ndps = 1"), tmp_path)
    assert isinstance(error, UnknownKeyError)
    assert "resources.dsp" in error.known


def test_error_of_a_huge_board_file_stays_short(tmp_path: Path) -> None:
    """Long keys are refused before parsing: the TOML parser takes seconds for a key of 10,000 parts, and hours for
    the longest key that a file can hold."""
    for key in ("x" * 100_000, "y." * 20_000 + "y"):
        for value in (1, "[" * 300 + "]" * 300, f'"{"z" * 100_000}"'):
            assert len(str(refusal(changed("dsp = 1728", f"dsp = {value}\n{key} = {value}"), tmp_path))) < 3000
    for text in ("a = " + "[" * 100_000, "a = " + "9" * 10_000, "a." * 50_000 + "b = 1", "\x00", "x" * (1 << 21)):
        assert len(str(refusal(text, tmp_path))) < 1000, text[:10]


def test_read_board_key_with_too_many_parts_error_names_the_line(tmp_path: Path) -> None:
    error = refusal(f"a = 1\n{'a.' * 200}b = 1\n", tmp_path)
    assert error.where == f"{tmp_path / 'mine.toml'}:2"


def test_read_board_file_that_is_not_toml_is_refused_as_damaged(tmp_path: Path) -> None:
    for text in ("title = ", "\x00"):
        error = refusal(text, tmp_path)
        assert isinstance(error, DamagedFileError)
        assert error.reason.startswith("is not valid TOML: ")


def test_read_board_missing_file_raises_file_access_error(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    for read in (boards.read_board, lambda path: boards.load(str(path))):
        with raises(FileAccessError, path=str(path), reason="cannot be read: No such file or directory"):
            read(path)


RANGES = [
    ("resources", "lut", 1, 10_000_000),
    ("resources", "lutram", 0, 10_000_000),
    ("resources", "ff", 1, 20_000_000),
    ("resources", "bram36", 1, 10_000),
    ("resources", "uram", 0, 10_000),
    ("resources", "dsp", 1, 50_000),
    ("dsp", "a_bits", 8, 64),
    ("dsp", "b_bits", 8, 64),
    ("ddr", "bits", 8, 128),
    ("ddr", "rated_mts", 100, 10_000),
    ("ddr", "preset_mts", 100, 10_000),
    ("ddr", "mib", 64, 1_048_576),
    ("ddr", "measured_share", 0.01, 1),
    ("ddr", "optimistic_share", 0.01, 1),
    ("port", "bits", 32, 1024),
    ("port", "controller_port", 0, 15),
    ("control", "base", 0, 1 << 40),
    ("control", "bytes", 4096, 1 << 40),
    ("pll", "reference_mhz", 1, 200),
    ("pll", "multiplier", 1, 200),
    ("pll", "post_divider", 1, 63),
    ("fmax", "dsp", 1, 2000),
    ("fmax", "bram", 1, 2000),
    ("fmax", "uram", 0, 2000),
    ("fmax", "global_clock", 1, 2000),
    ("fmax", "axi", 1, 2000),
    ("target", "clock_mhz", 1, 2000),
]
"""Table, key, lowest and highest allowed value of each number in a board file."""


def with_value(text: str, table: str, key: str, value: float) -> str:
    """Return the text with the key's value replaced in the first table of this name."""
    changed, count = re.subn(rf"(?s)(\[{table}\]+\n(?:.*?\n)?{key} = )[^\n]*", rf"\g<1>{value}", text, count=1)
    assert count == 1
    return changed


def with_edge(table: str, key: str, value: float) -> str:
    """Return a board file with one value at the edge of its range. Keys compared with the value are adjusted to it."""
    text = with_value(ZCU104, table, key, value)
    if key in ("lut", "lutram"):
        text = with_value(text, "resources", "lutram", min(value, 101_760) if key == "lut" else value)
        text = with_value(text, "resources", "lut", value or 1)
    if key in ("rated_mts", "preset_mts"):
        text = with_value(with_value(text, "ddr", "rated_mts", value), "ddr", "preset_mts", value)
    if key in ("measured_share", "optimistic_share"):
        text = with_value(with_value(text, "ddr", "measured_share", value), "ddr", "optimistic_share", value)
    if table == "resources" and key == "dsp":
        text = re.sub(r"(?s)\[floorplan\].*?(?=# Source)", "", text)
    if key == "uram" and value == 0:
        text = with_value(with_value(text, "resources", "uram", 0), "fmax", "uram", 0)
    return text


def test_read_board_number_at_the_range_ends_is_accepted_and_beyond_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    for table, key, low, high in RANGES:
        for value in (low, high):
            path.write_text(with_edge(table, key, value), encoding="utf-8")
            board = boards.read_board(path)
            facts = {"port": board.ports[0], "pll": board.plls[0]}.get(table) or getattr(board, table)
            assert getattr(facts, key) == value, (table, key)
        for value in (low - 1, high + 1):
            error = refusal(with_value(ZCU104, table, key, value), tmp_path)
            assert isinstance(error, RangeError), (table, key)
            assert error.what.endswith(f".{key}"), (table, key)
            assert (error.got, error.low, error.high) == (value, low, high), (table, key)


def test_lowest_fmax_ignores_missing_ultraram() -> None:
    for name in boards.names():
        fmax = boards.load(name).fmax
        rates = [mhz for mhz in (fmax.dsp, fmax.bram, fmax.uram, fmax.global_clock, fmax.axi) if mhz]
        assert fmax.lowest == min(rates), name


def test_target_clock_is_the_highest_up_to_the_target(tmp_path: Path) -> None:
    assert [boards.load(name).target_clocks()[-1].mhz for name in ("pynq-z2", "ultra96-v2", "zcu104")] == pytest.approx(
        [1000 / 7, 1500 / 7, 300]
    )
    ultra96 = boards.load("ultra96-v2")
    assert ultra96.target_clocks(200)[-1].mhz == pytest.approx(187.5)
    assert ultra96.nearest_clock(300).mhz == pytest.approx(300)
    without = ZCU104.replace("[target]\nclock_mhz = 300\n", "")
    path = tmp_path / "mine.toml"
    path.write_text(without, encoding="utf-8")
    assert boards.read_board(path).target.clock_mhz == boards.load("zcu104").fmax.lowest


def test_target_below_every_clock_is_refused(tmp_path: Path) -> None:
    error = refusal(with_value(with_value(ZCU104, "pll", "reference_mhz", 200), "target", "clock_mhz", 1), tmp_path)
    assert isinstance(error, InvalidValueError)
    assert (error.what, error.required) == (
        "pll",
        "a multiplier and dividers that make a clock up to 1 MHz (target.clock_mhz and fmax)",
    )


def test_fmax_lowest_is_the_limit_of_the_slowest_block(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(with_value(ZCU104, "fmax", "axi", 1), encoding="utf-8")
    fmax = boards.read_board(path).fmax
    assert (fmax.slowest, fmax.lowest) == ("AXI", 1)


def test_read_board_pll_list_without_tables_is_refused(tmp_path: Path) -> None:
    plls = ZCU104[: ZCU104.index("[[pll]]")] + ZCU104[ZCU104.index("[fmax]") :]
    for text, got in (("[]", []), ("[1, 2]", [1, 2]), ("[{}, 2]", [{}, 2])):
        error = refusal(f"pll = {text}\n{plls}", tmp_path)
        assert isinstance(error, InvalidValueError), text
        assert (error.what, error.got, error.required) == ("pll", got, "a list of at least one table")


def test_read_board_file_of_1_mib_is_read_and_a_larger_one_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    padding = (1 << 20) - len(ZCU104.encode())
    path.write_text(ZCU104 + "#" * (padding - 1) + "\n", encoding="utf-8")
    assert path.stat().st_size == 1 << 20
    assert boards.read_board(path).title == "ZCU104"
    path.write_text(ZCU104 + "#" * padding + "\n", encoding="utf-8")
    with raises(RangeError, got=(1 << 20) + 1, high=1 << 20, where=str(path)):
        boards.read_board(path)


def test_load_custom_board_file_is_read_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "My-board_2.toml"
    path.write_text(changed("dsp = 1728", "dsp = 900"))
    board = boards.load(str(path))
    assert (board.name, board.resources.dsp) == ("My-board_2", 900)


def test_board_of_a_design_is_its_own_file_or_a_built_in(tmp_path: Path) -> None:
    design = tmp_path / "design"
    design.mkdir()
    assert boards.of_design(design, "zcu104") == boards.load("zcu104")
    (design / "mine.toml").write_text(ZCU104, encoding="utf-8")
    mine = boards.of_design(design, "mine")
    assert (mine.name, mine.resources, mine.declaration) == ("mine", boards.load("zcu104").resources, ZCU104)
    (tmp_path / "outside.toml").write_text(ZCU104, encoding="utf-8")
    with raises(ChoiceError, got="../outside"):
        boards.of_design(design, "../outside")


def test_load_board_with_extends_changes_only_the_given_keys(tmp_path: Path) -> None:
    """Read the example in docs/how-to/add_a_board.md."""
    page = (Path(__file__).parents[2] / "docs/how-to/add_a_board.md").read_text("utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "mine.toml"
    path.write_text(example, "utf-8")
    base, mine = boards.load("zcu104"), boards.load(str(path))
    assert mine.resources == replace(base.resources, lut=153600, lutram=67840, ff=307200, uram=32)
    assert mine.ddr == replace(base.ddr, preset_mts=2400)
    assert replace(mine, name=base.name, title=base.title, resources=base.resources, ddr=base.ddr) == base
    path.write_text(example.replace("uram", "urams"), "utf-8")
    with raises(UnknownKeyError, where=str(path)):
        boards.load(str(path))
    for other in ('"zcu105"', '"../boards/zcu104"', "3", "[]"):
        path.write_text(example.replace('"zcu104"', other), "utf-8")
        with raises(ChoiceError, what="extends", choices=boards.names(), where=str(path)):
            boards.load(str(path))


def test_load_board_file_name_unsafe_in_scripts_is_refused(tmp_path: Path) -> None:
    for stem in ("a b", "-x", "x;rm", "x" * 65, "é"):
        path = tmp_path / f"{stem}.toml"
        path.write_text(ZCU104)
        with raises(InvalidValueError, what="the name of a board file", got=stem, where=str(path)):
            boards.load(str(path))

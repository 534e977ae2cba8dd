"""The facts of every board, and what a wrong board file says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from boards import board as boards
from boards.errors import BoardError
from boards.facts import Resources

FOLDER = Path(boards.__file__).parent
ZCU104 = (FOLDER / "zcu104.toml").read_text(encoding="utf-8")


def message(text: str, tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BoardError) as caught:
        boards.read_board(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path)), sentence
    return sentence.removeprefix(f"{path}: ")


def changed(old: str, new: str) -> str:
    assert ZCU104.count(old) >= 1
    return ZCU104.replace(old, new, 1)


def test_the_boards_are_there() -> None:
    assert boards.names() == ("aup-zu3", "kr260", "kv260", "pynq-z2", "ultra96-v2", "zcu102", "zcu104")


def test_zcu104_is_what_its_data_sheet_says() -> None:
    board = boards.load("ZCU104")
    assert board.part == "xczu7ev-ffvc1156-2-e"
    assert board.resources == Resources(lut=230_400, lutram=101_760, ff=460_800, bram36=312, uram=96, dsp=1728)
    assert (board.dsp.kind, board.dsp.a_bits, board.dsp.b_bits) == ("DSP48E2", 27, 18)
    assert board.ddr.peak_gbps == pytest.approx(19.2)
    assert board.ddr.preset_gbps == pytest.approx(17.064)
    assert [port.bits for port in board.ports if not port.coherent] == [128] * 4
    assert board.control.base == 0xA000_0000


@pytest.mark.parametrize(
    ("name", "dsp", "bram36", "uram", "lut", "gbps"),
    [
        ("zcu102", 2520, 912, 0, 274_080, 17.064),
        ("ultra96-v2", 360, 216, 0, 70_560, 4.264),
        ("aup-zu3", 360, 216, 0, 70_560, 9.6),
        ("kr260", 1248, 144, 64, 117_120, 19.2),
        ("kv260", 1248, 144, 64, 117_120, 19.2),
        ("pynq-z2", 220, 140, 0, 53_200, 2.1),
    ],
)
def test_other_boards(name: str, dsp: int, bram36: int, uram: int, lut: int, gbps: float) -> None:
    board = boards.load(name)
    resources = board.resources
    assert (resources.dsp, resources.bram36, resources.uram, resources.lut) == (dsp, bram36, uram, lut)
    assert board.ddr.preset_gbps == pytest.approx(gbps)


def test_two_flip_flops_a_lut(any_board: boards.Board) -> None:
    assert any_board.resources.ff == 2 * any_board.resources.lut  # true of 7-series and UltraScale+ alike


def test_names_follow_the_family(any_board: boards.Board) -> None:
    new = any_board.family == "zynq-ultrascale+"
    assert any_board.ps.ip == ("zynq_ultra_ps_e" if new else "processing_system7")
    assert any_board.dsp.kind == ("DSP48E2" if new else "DSP48E1")
    assert {port.bits for port in any_board.ports} == ({128} if new else {64})
    prefix = "PSU__" if new else "PCW_"
    keys = [any_board.ps.interrupt_key, any_board.control.enable, any_board.ps.clock_mhz_key]
    keys += [key for port in any_board.ports for key in (port.enable, port.width)]
    assert all(key.startswith(prefix) for key in keys)


def test_every_group_of_facts_names_its_source() -> None:
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
        assert seen == {"resources", "dsp", "ddr", "port", "control", "ps", "pll", "fmax"}


def test_an_unknown_board_names_close_ones() -> None:
    with pytest.raises(BoardError) as caught:
        boards.load("zcu14")
    assert str(caught.value) == (
        "no board is called 'zcu14': did you mean zcu104 or zcu102? "
        "known boards are aup-zu3, kr260, kv260, pynq-z2, ultra96-v2, zcu102, zcu104, "
        "or give a file of your own that ends in .toml"
    )
    with pytest.raises(BoardError, match=r"no board is called '\.\./zcu104': .*known boards are"):
        boards.load("../zcu104")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("dsp = 1728\n", "", "resources.dsp is missing, it must be a whole number"),
        ("dsp = 1728", "dsp = 1728\ndps = 1", "resources.dps is no key of a board file; check its spelling"),
        (
            'title = "ZCU104"',
            'title = "ZCU104"\ncolour = "red"',
            "colour is no key of a board file; check its spelling",
        ),
        ("dsp = 1728", 'dsp = "many"', "resources.dsp must be a whole number, not 'many'"),
        ("dsp = 1728", "dsp = true", "resources.dsp must be a whole number, not True"),
        ("dsp = 1728", "dsp = -1", "resources.dsp must be in 1…50000, not -1"),
        ("lut = 230400", "lut = 10_000_000_000", "resources.lut must be in 1…10000000, not 10000000000"),
        ("dsp = 775", "dsp = nan", "fmax.dsp must be in 1…2000, not nan"),
        ("dsp = 775", 'dsp = "775"', "fmax.dsp must be a number, not '775'"),
        ('kind = "DSP48E2"', 'kind = "DSP58"', "dsp.kind must be 'DSP48E1' or 'DSP48E2', not 'DSP58'"),
        ("coherent = false", "coherent = 0", "port[0].coherent must be true or false, not 0"),
        (
            "preset_mts = 2133",
            "preset_mts = 2666",
            "ddr.preset_mts (2666) must not exceed ddr.rated_mts (2400)",
        ),
        (
            "lutram = 101760",
            "lutram = 300000",
            "resources.lutram (300000) must not exceed resources.lut (230400)",
        ),
        (
            "uram = 96",
            "uram = 0",
            "resources.uram (0) and fmax.uram (600) must both be zero or both be positive",
        ),
        (
            "S_AXI_HP1_FPD",
            "S_AXI_HP0_FPD",
            "port.name must differ from entry to entry, 'S_AXI_HP0_FPD' comes twice",
        ),
        ('title = "ZCU104"', 'title = ""', "title must be a text of printable characters, not ''"),
        ('image = "ZCU104"', 'image = "a\\nb"', "image must be a text of printable characters, not 'a\\nb'"),
        ("[[pll]]", "[pll]", "pll must be a list of tables, not {"),
        ("[ddr]", "[dddr]", "ddr is missing, it must be a table"),
        ("dsp = 1728", f"dsp = {10**30}", "resources.dsp must be in 1…50000, not 1000000000000000000000000000000"),
        ("dsp = 1728", f"dsp = {10**400}", "resources.dsp must be in 1…50000, not an integer of 1,329 bits"),
        ("dsp = 775", f"dsp = {10**400}", "fmax.dsp must be in 1…2000, not an integer of 1,329 bits"),
        ("dsp = 1728", f"dsp = {'9' * 5000}", "the board file is not valid TOML: Exceeds the limit (4300 digits)"),
    ],
)
def test_a_wrong_file_names_file_and_key(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    assert message(changed(old, new), tmp_path).startswith(sentence)


@pytest.mark.parametrize("key", ["x" * 100_000, "y." * 20_000 + "y"])
@pytest.mark.parametrize("value", [1, "[" * 300 + "]" * 300, f'"{"z" * 100_000}"'])
def test_a_refusal_stays_a_sentence(key: str, value: object, tmp_path: Path) -> None:
    assert len(message(changed("dsp = 1728", f"dsp = {value}\n{key} = {value}"), tmp_path)) < 3000


def test_a_key_of_too_many_parts_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    """A parser takes seconds for one of ten thousand parts, and hours for one as long as a file may be."""
    said = message(changed("dsp = 1728", "y." * 101 + "y = 1"), tmp_path)
    assert re.fullmatch(r"line \d+ has more than 100 dots, which no board's key or value has", said)
    nested = message(changed("dsp = 1728", "dsp = 1728\n" + "y." * 20 + "y = 1"), tmp_path)
    assert nested == "resources.y is no key of a board file; check its spelling"


def test_its_line_and_the_first_of_unknown_keys_are_named(tmp_path: Path) -> None:
    assert message(f"a = 1\n{'a.' * 200}b = 1\n", tmp_path).startswith("line 2 has more than 100 dots")
    assert "a_key is no key of a board file" in message(f"z_key = 1\na_key = 2\n{ZCU104}", tmp_path)


def test_a_file_that_is_no_toml(tmp_path: Path) -> None:
    assert message("title = ", tmp_path).startswith("the board file is not valid TOML: ")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match=r"none\.toml: the board file cannot be read: No such file or directory"):
        boards.read_board(tmp_path / "none.toml")


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    assert message("# " + "x" * (1 << 20), tmp_path).startswith("a board file has at most 1048576 bytes")


# The least and the most of each number.
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
]


def with_value(text: str, table: str, key: str, value: float) -> str:
    """The first table of this name with another value of the key."""
    changed, count = re.subn(rf"(?s)(\[{table}\]+\n(?:.*?\n)?{key} = )[^\n]*", rf"\g<1>{value}", text, count=1)
    assert count == 1
    return changed


def with_edge(table: str, key: str, value: int) -> str:
    """The file with one value at the edge of its range; a key that is compared with it follows."""
    text = with_value(ZCU104, table, key, value)
    if key in ("lut", "lutram"):
        text = with_value(text, "resources", "lutram", min(value, 101_760) if key == "lut" else value)
        text = with_value(text, "resources", "lut", value or 1)
    if key in ("rated_mts", "preset_mts"):
        text = with_value(with_value(text, "ddr", "rated_mts", value), "ddr", "preset_mts", value)
    if key == "uram" and value == 0:
        text = with_value(with_value(text, "resources", "uram", 0), "fmax", "uram", 0)
    return text


@pytest.mark.parametrize(("table", "key", "low", "high"), RANGES)
def test_a_number_is_within_its_range_edges_included(table: str, key: str, low: int, high: int, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    for value in (low, high):
        path.write_text(with_edge(table, key, value), encoding="utf-8")
        board = boards.read_board(path)
        facts = {"port": board.ports[0], "pll": board.plls[0]}.get(table) or getattr(board, table)
        assert getattr(facts, key) == value
    for value in (low - 1, high + 1):
        sentence = message(with_value(ZCU104, table, key, value), tmp_path)
        assert sentence.endswith(f".{key} must be in {low:g}…{high:g}, not {value}") or (
            sentence.endswith(f".{key} must be in {low}…{high}, not {value}")
        )


def test_a_part_without_ultraram_is_not_limited_by_it(any_board: boards.Board) -> None:
    fmax = any_board.fmax
    rates = [mhz for mhz in (fmax.dsp, fmax.bram, fmax.uram, fmax.global_clock, fmax.axi) if mhz]
    assert fmax.lowest == min(rates)


def test_a_board_of_a_slow_part(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(with_value(ZCU104, "fmax", "axi", 1), encoding="utf-8")
    fmax = boards.read_board(path).fmax
    assert (fmax.slowest, fmax.lowest) == ("AXI", 1)


def test_an_infinite_or_missing_number_and_an_empty_list(tmp_path: Path) -> None:
    for value in ("inf", "-inf", "nan"):
        text = ZCU104.replace("dsp = 775", f"dsp = {value}")
        assert message(text, tmp_path) == f"fmax.dsp must be in 1…2000, not {value}"
    plls = ZCU104[: ZCU104.index("[[pll]]")] + ZCU104[ZCU104.index("[fmax]") :]
    for empty in ("pll = []", "pll = [1, 2]", "pll = [{}, 2]"):
        shown = empty.removeprefix("pll = ")
        sentence = f"pll must be a list of at least one table, not {shown}"
        assert message(f"{empty}\n{plls}", tmp_path) == sentence


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    padding = (1 << 20) - len(ZCU104.encode())
    path.write_text(ZCU104 + "#" * (padding - 1) + "\n", encoding="utf-8")
    assert path.stat().st_size == 1 << 20
    assert boards.read_board(path).title == "ZCU104"
    assert message(ZCU104 + "#" * padding + "\n", tmp_path) == (
        "a board file has at most 1048576 bytes, this one has more"
    )


def test_a_board_of_one_s_own_is_read_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "My-board_2.toml"
    path.write_text(changed("dsp = 1728", "dsp = 900"))
    board = boards.load(str(path))
    assert (board.name, board.resources.dsp) == ("My-board_2", 900)
    with pytest.raises(BoardError, match=r"cannot be read: No such file"):
        boards.load(str(tmp_path / "none.toml"))
    with pytest.raises(BoardError, match=r"or give a file of your own that ends in .toml"):
        boards.load("zcu105")


@pytest.mark.parametrize("stem", ["a b", "-x", "x;rm", "x" * 65, "é"])
def test_a_board_s_name_is_one_that_scripts_can_carry(stem: str, tmp_path: Path) -> None:
    path = tmp_path / f"{stem}.toml"
    path.write_text(ZCU104)
    with pytest.raises(BoardError, match="a board is named by its file, with 1 to 64 letters, digits"):
        boards.load(str(path))


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 100_000, "a = " + "9" * 10_000, "a." * 50_000 + "b = 1", "\x00", "x" * (1 << 21)]
)
def test_a_hostile_file_is_one_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.toml"
    path.write_text(text)
    with pytest.raises(BoardError) as caught:
        boards.load(str(path))
    assert len(str(caught.value)) < 1000

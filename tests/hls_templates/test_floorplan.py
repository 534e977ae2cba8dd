"""The floorplan of DSP chains: its geometry on every part, its constraints, and the step of build_vivado.tcl."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from boards.board import load, names
from boards.errors import ConflictError, DoesNotFitError
from boards.facts import Floorplan
from hls_templates.vendor.files import rtl_vendor_files
from hls_templates.vendor.floorplan import Chain, blocks, place
from hls_templates.vendor.values import VendorValues
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.tcl import rtl_vivado
from tests.support.vendor_values import rtl_values

KNOWN = [name for name in names() if name != "pynq-z2"]
REGION, HALF = 24, 12


def floorplan(board: str) -> Floorplan:
    facts = load(board).floorplan
    assert facts is not None
    return facts


def chains(count: int, length: int) -> list[Chain]:
    return [Chain(f"top/chain[{k}].products", length) for k in range(count)]


def capacity(board: str, length: int) -> int:
    low_voltage = "0.72" in load(board).speed_grade
    runs = load(board).resources.dsp // (HALF if low_voltage else REGION)
    return runs * ((HALF if low_voltage else REGION) // length)


@cases("board", KNOWN)
def test_place_chains_have_their_own_sites_within_a_clock_region(board: str) -> None:
    facts, low_voltage = floorplan(board), "0.72" in load(board).speed_grade
    there = {(column, row * REGION + at) for column, row in facts.region_columns for at in range(REGION)}
    assert len(there) == load(board).resources.dsp
    for length in range(1, (HALF if low_voltage else REGION) + 1):
        full = capacity(board, length)
        for count in {1, max(1, full // 2), full}:
            places = place(chains(count, length), facts)
            assert [one.chain.cell for one in places] == [chain.cell for chain in chains(count, length)]
            sites = [(one.column, one.first + at) for one in places for at in range(length)]
            assert len(set(sites)) == len(sites) == count * length
            assert set(sites) <= there
            for one in places:
                last = one.first + length - 1
                assert one.first // REGION == last // REGION
                assert not low_voltage or one.first // HALF == last // HALF
        with raises(DoesNotFitError, need=full + 1, have=full):
            place(chains(full + 1, length), facts)


@cases("board", KNOWN)
def test_blocks_have_disjoint_sites_for_all_their_chains(board: str) -> None:
    facts = floorplan(board)
    for length in (1, 4, 5, 8):
        count = capacity(board, length) - 1
        made = blocks(place(chains(count, length), facts), facts)
        assert Counter(cell for block in made for cell in block.cells) == Counter(c.cell for c in chains(count, length))
        sites = [(block.column, y) for block in made for y in range(block.first, block.last + 1)]
        assert len(set(sites)) == len(sites)
        assert all(len(block.cells) * length <= block.last - block.first + 1 for block in made)


def test_neighbours_of_the_array_are_neighbours_on_the_die() -> None:
    """The snake turns at the end of a row of regions: a chain is at most one region above the one before."""
    for board in KNOWN:
        places = place(chains(capacity(board, 8), 8), floorplan(board))
        for before, after in pairwise(places):
            assert abs(after.first // REGION - before.first // REGION) <= 1
            assert abs(after.column - before.column) <= (1 if after.first // REGION == before.first // REGION else 7)


def test_columns_that_do_not_add_up_to_the_part_are_refused(tmp_path: Path) -> None:
    text = Path("boards/zcu104.toml").read_text().replace("regions = 2\n", "regions = 1\n")
    (tmp_path / "mine.toml").write_text(text)
    with raises(ConflictError, subjects=("resources.dsp = 1728", "floorplan.columns have 1656 DSPs")):
        load(str(tmp_path / "mine.toml"))


def test_board_of_another_part_inherits_no_floorplan(tmp_path: Path) -> None:
    same, other = tmp_path / "same.toml", tmp_path / "other.toml"
    same.write_text('extends = "zcu104"\n[resources]\ndsp = 1000\n')
    other.write_text('extends = "zcu104"\npart = "xczu9eg-ffvb1156-2-e"\n[resources]\ndsp = 2520\n')
    assert load(str(same)).floorplan == load("zcu104").floorplan
    assert load(str(other)).floorplan is None


# --- the constraints and the script ------------------------------------------------------------------------


def planned(board: str = "zcu104", count: int = 208, length: int = 8) -> VendorValues:
    return replace(rtl_values(board), chains=tuple(chains(count, length)))


def test_floorplan_on_places_every_chain_in_one_pblock(tmp_path: Path) -> None:
    ran = rtl_vivado(tmp_path, planned(), "floorplan=on")
    assert ran.rc == 0, ran.out
    assert "WARNING" not in ran.out
    assert ["USED_IN", "implementation", "floorplan.xdc"] in ran.named("set_property")
    ranges = [re.findall(r"DSP48E2_X(\d+)Y(\d+)", call[-1]) for call in ran.named("resize_pblock")]
    sites = [(x, y) for (x, low), (right, high) in ranges for y in range(int(low), int(high) + 1) if x == right]
    assert len(set(sites)) == len(sites) == REGION * -(-208 // 3)
    text = rtl_vendor_files(planned())["floorplan.xdc"]
    cells = re.findall(r"^    \{(system_i/systolic_top_0/inst/\S+)\}", text, re.MULTILINE)
    assert cells == [f"system_i/systolic_top_0/inst/{chain.cell}" for chain in chains(208, 8)]


def test_floorplan_on_with_a_renamed_chain_warns(tmp_path: Path) -> None:
    renamed = "*chain\\[[012]\\].products"
    ran = rtl_vivado(tmp_path, planned(), "floorplan=on", STUB_RENAMED=renamed)
    assert ran.out.count("WARNING") == 1
    assert "the Pblock dsp_x3y0 of floorplan.xdc has no cells" in ran.out


def test_floorplan_without_the_argument_adds_no_constraints(tmp_path: Path) -> None:
    ran = rtl_vivado(tmp_path, planned())
    assert not [call for call in ran.named("add_files") if "floorplan" in " ".join(call)]
    assert "NOTE" not in ran.out
    kria = rtl_vivado(tmp_path, planned("kv260", 104))
    assert "NOTE: at 0.72 V a DSP cascade that crosses the centre of a clock region" in kria.out


def test_floorplan_on_without_room_or_known_sites_is_refused(tmp_path: Path) -> None:
    for of, sentence in (
        (
            planned("kv260", 140),
            "within half a clock region (12 DSPs of a column) does not fit: it needs 140 chains of 8 DSPs, ",
        ),
        (planned("pynq-z2"), "the places of the DSPs of xc7z020clg400-1 are not known"),
    ):
        assert "floorplan.xdc" not in rtl_vendor_files(of)
        ran = rtl_vivado(tmp_path, of, "floorplan=on")
        assert (ran.rc, ran.named("create_project")) == (1, [])
        assert sentence in ran.out
        assert rtl_vivado(tmp_path, of).rc == 0

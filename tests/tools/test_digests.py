"""Digests of small designs: the record, the report of a difference, and that sources are as recorded."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tools.digests import record as records
from tools.digests.design import generate
from tools.digests.record import Record, differences, grouped, source_digests
from tools.digests.table import DESIGNS

ROOT = Path(__file__).resolve().parents[2]
BY_NAME = {row.name: row for row in DESIGNS}

FEW = ("hls-seven-bits-chip-zcu104", "rtl-seven-bits-double-batch2-ddr-kr260", "streaming-four-bits-pynq-z2")
"""A design of each engine whose integers are in its file: no float arithmetic precedes its digests."""

FIXED = [
    path
    for room in ("hls_templates", "rtl_templates")
    for path in sorted((ROOT / room).rglob("*"))
    if path.suffix in {".h", ".cpp", ".sv"}
]
"""Sources that designs hold as they are."""

OF_WAVES = "waves"
"""Sources that record signals are in no design's folder."""


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.digests", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", FEW)
def test_sources_are_as_recorded(name: str) -> None:
    made = Record({name: source_digests(generate(BY_NAME[name]).sources)})
    assert not differences(records.read(), made)


def test_record_has_sources_and_execution_of_every_design() -> None:
    record = records.read()
    assert set(record.sources) == set(record.executed) == set(BY_NAME)


def test_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = records.read()
    records.write(record, tmp_path / "digests.json")
    assert (tmp_path / "digests.json").read_bytes() == records.RECORD.read_bytes()
    assert records.read(tmp_path / "digests.json") == record


def test_differences_name_file_designs_and_changes_of_comments_alone() -> None:
    row, other = FEW[:2]
    files = {"src/pass.h": b"int a; // one\n", "README.md": b"text\n"}
    before = Record({row: source_digests(files), other: source_digests(files)}, {row: {"cycles": 5, "integers": "a"}})

    def changed(**kept: bytes) -> list[str]:
        made = source_digests(
            {**files, **{name.replace("_", "/", 1).replace("_", "."): data for name, data in kept.items()}}
        )
        return [str(difference) for difference in differences(before, Record({row: made, other: made}))]

    names = ", ".join(sorted((row, other)))
    assert changed() == []
    assert changed(src_pass_h=b"int a; // two\n\n") == [f"src/pass.h: differs in comments only in {names}"]
    assert changed(src_pass_h=b"int b; // one\n") == [f"src/pass.h: differs in {names}"]
    assert changed(src_new_h=b"") == [f"src/new.h: is new in {names}"]
    made = Record({row: source_digests({"README.md": b"text\n"})}, {row: {"cycles": 6, "integers": "a"}})
    assert [str(difference) for difference in differences(before, made)] == [
        f"src/pass.h: is no longer generated in {row}",
        f"{row}: cycles was 5, is 6",
    ]
    assert [difference.comments_only for difference in differences(before, made)] == [False, False]


def test_grouped_names_of_all_designs_of_an_engine_are_one_word() -> None:
    rtl = [row.name for row in DESIGNS if row.engine == "rtl"]
    assert grouped(rtl) == ["rtl-*"]
    assert grouped([*rtl, FEW[0]]) == ["rtl-*", FEW[0]]
    assert grouped(rtl[1:]) == sorted(rtl[1:])


def test_with_new_replaces_only_the_designs_of_the_new_record() -> None:
    first, second = FEW[:2]
    old = Record({first: {"a": ("1", "1")}, second: {"a": ("1", "1")}, "gone": {}}, {first: {"cycles": 1}})
    new = old.with_new(Record({first: {"a": ("2", "2")}}))
    assert new.sources == {first: {"a": ("2", "2")}, second: {"a": ("1", "1")}}
    assert new.executed == {first: {"cycles": 1}}


def test_check_command_prints_a_difference_and_exits_with_1(tmp_path: Path) -> None:
    name = FEW[0]
    record = records.read()
    files = dict(record.sources[name])
    files["src/pass.h"] = "0" * 16, files["src/pass.h"][1]
    files["src/types.h"] = "0" * 16, "0" * 16
    records.write(replace(record, sources={**record.sources, name: files}), tmp_path / "other.json")
    done = check("check", "--sources", "--record", str(tmp_path / "other.json"), name)
    assert done.returncode == 1
    assert f"src/pass.h: differs in comments only in {name}\n" in done.stdout
    assert f"src/types.h: differs in {name}\n" in done.stdout
    assert "1 of 1" in done.stderr
    same = check("check", "--sources", name)
    assert (same.returncode, same.stdout) == (
        0,
        f"1 designs, {len(files)} files, 0 executions: every digest is the same\n",
    )


def test_check_command_of_an_unknown_design_exits_with_2() -> None:
    done = check("check", "--sources", "hls-nothing")
    assert done.returncode == 2
    assert "'hls-nothing'" in done.stderr


def test_record_covers_every_fixed_source() -> None:
    files = {path for design in records.read().sources.values() for path in design}
    names = {Path(path).name for path in files}
    absent = [path for path in FIXED if path.name not in names and OF_WAVES not in str(path)]
    assert not absent


@pytest.mark.engine
def test_check_command_of_all_designs_finds_no_difference() -> None:
    done = check("check", "-j", str(len(os.sched_getaffinity(0))))
    assert done.returncode == 0, done.stdout

"""Renames of the generated C++ and SystemVerilog: what a table replaces, and what it must not hide."""

from __future__ import annotations

import subprocess

import pytest

from tools.digests import renames
from tools.digests.renames import Rename, Renames, differences, renamed_path

TABLE = Renames(
    "0" * 40,
    (
        Rename(("pool.h",), "kept", "stored_sums"),
        Rename(("pool.h",), "tile.kept", "tile.stored_rows"),
        Rename(("*.sv",), "times", "address_product"),
        Rename((renames.FILES,), "halves.sv", "clock_half.sv"),
    ),
)
OLD = b'int f() { return kept + tile.kept; }  // kept\nconst char *s = "kept";\n'
NEW = b'int f() {\n    return stored_sums + tile.stored_rows;\n}\nconst char *s = "kept";\n'


def found(old: bytes, new: bytes, path: str = "src/pool.h") -> list[str]:
    return list(differences({"one": {path: old}}, {"one": {path: new}}, TABLE))


def test_differences_of_renamed_code_is_empty() -> None:
    assert not found(OLD, NEW)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (b"stored_sums +", b"kept +"),  # a name that was not replaced
        (b"tile.stored_rows", b"tile.stored_sums"),  # the row of a shorter name
        (b'"kept"', b'"stored_sums"'),  # a string is not a name
        (b" + ", b" - "),  # more than names
    ],
)
def test_differences_of_other_changes_are_reported(right: bytes, wrong: bytes) -> None:
    assert found(OLD, NEW.replace(right, wrong)) == ["one: src/pool.h differs by more than the names of the table"]


def test_differences_outside_of_the_scope_are_reported() -> None:
    assert found(OLD, NEW, "src/save.h")


def test_renamed_path_replaces_the_name_of_the_file() -> None:
    assert renamed_path("src/halves.sv", TABLE) == "src/clock_half.sv"
    assert renamed_path("src/load.sv", TABLE) == "src/load.sv"


def test_table_is_read_with_its_base() -> None:
    table = renames.read(renames.TABLE.read_text("utf-8"))
    assert len(table.base) == 40
    assert all(row.scope and row.old and row.new and row.old != row.new for row in table.rows)


@pytest.mark.proof
def test_digests_before_the_renames_equal_those_after(capsys: pytest.CaptureFixture[str]) -> None:
    base = renames.read(renames.TABLE.read_text("utf-8")).base
    known = subprocess.run(["git", "cat-file", "-e", f"{base}^{{commit}}"], cwd=renames.ROOT, check=False)
    if known.returncode:
        pytest.skip("this clone does not have the commit before the renames")
    assert renames.check() == 0, capsys.readouterr().out

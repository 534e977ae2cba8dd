"""Tests of the table of a pass's words: its formulas, and the C++ header and SystemVerilog package with equal words."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from contract.geometry import Geometry
from contract.program import ADDED_FIELDS, FIELDS, PASS_FIELDS, PASS_WORDS, complete, fields_of, names_of, words_of
from hls_templates.headers import fixed_files, include_folders
from rtl_templates.sources import geometry_package
from tests.support.host.passes import ARRAYS, drawn
from tests.support.rtl.bench import NUMBERS, values
from tools import program

HEADER = fixed_files(*include_folders("systolic"))["pass.h"]
MACROS = {"SYSTOLIC_PASS_FIELDS": PASS_FIELDS, "SYSTOLIC_ADDED_FIELDS": ADDED_FIELDS}


def test_header_has_the_words_of_the_table() -> None:
    """Run ``python -m tools.program update`` to renew the header if this test fails."""
    assert program.renewed(HEADER) == HEADER
    for macro, names in MACROS.items():
        listing = HEADER.partition(f"#define {macro}(X)")[2].partition("// clang-format on")[0]
        assert tuple(re.findall(r"X\((\w+)\)", listing)) == names


def test_systemverilog_package_has_the_words_of_the_table() -> None:
    for added_maps, names in ((0, PASS_FIELDS), (1, PASS_FIELDS + ADDED_FIELDS)):
        package = geometry_package(values({**NUMBERS, "ADDED_MAPS": added_maps}))
        struct = package.partition("typedef struct packed {")[2].partition("} pass_t;")[0]
        assert tuple(re.findall(r"number_t (\w+);", struct)) == names
        assert f"localparam int PASS_WORDS = {len(names)};" in package


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("X(in_base) X(in_row_pitch)", "X(in_row_pitch) X(in_base)"),
        ("    X(bursts)        /* pieces of a row */", "    X(bursts)        /* rows */           "),
        ("    /* window */", "    /* kernel */"),
        ("PASS_WORDS = 64 ", "PASS_WORDS = 65 "),
        ("X(added_own) X(added_other)", "X(added_own)"),
    ],
)
def test_header_with_other_words_is_renewed(old: str, new: str) -> None:
    assert HEADER.count(old) == 1
    assert program.renewed(HEADER.replace(old, new)) == HEADER


def test_command_detects_and_renews_a_header_with_other_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pass.h"
    path.write_text(HEADER.replace("X(bursts) ", "X(burst) "), "utf-8")
    monkeypatch.setattr(program, "HEADER", path)
    assert program.main(["check"]) == 1
    assert program.main(["update"]) == 0
    assert path.read_text("utf-8") == HEADER
    assert program.main(["check"]) == 0


def test_table_lists_each_word_once() -> None:
    names = PASS_FIELDS + ADDED_FIELDS
    assert len(set(names)) == len(names)
    assert len(PASS_FIELDS) <= PASS_WORDS
    for added in (False, True):
        geometry = Geometry(2, 4, 4, added_maps=added)
        assert names_of(geometry) == tuple(field.name for field in fields_of(geometry))
        assert words_of(geometry) == 64 + 9 * added


def test_complete_computes_every_derived_word() -> None:
    for array in ARRAYS:
        primary = {field.name: getattr(drawn(array, 6), field.name) for field in FIELDS if field.primary}
        completed = complete(primary, array)
        assert tuple(completed) == PASS_FIELDS
        words = SimpleNamespace(**completed)
        for field in FIELDS:
            if field.formula is None or field.given:
                assert completed[field.name] is primary[field.name], field.name
            else:
                assert np.array_equal(completed[field.name], field.formula(words, array)), field.name


def test_complete_of_large_numbers_is_exact() -> None:
    array = ARRAYS[0]
    primary = {field.name: getattr(drawn(array, 6, 1), field.name) for field in FIELDS if field.primary}
    primary |= {"out_height": np.array([1 << 62]), "out_width": np.array([1 << 62])}
    numbers = complete({name: values.astype(object) for name, values in primary.items()}, array)
    assert numbers["array_steps"][0] > 1 << 100


def test_complete_without_a_primary_word_names_it() -> None:
    primary = {field.name: getattr(drawn(ARRAYS[0], 6), field.name) for field in FIELDS if field.primary}
    del primary["out_height"]
    with pytest.raises(AttributeError, match="out_height"):
        complete(primary, ARRAYS[0])

"""Test the text tables of reports: alignment, missing values and control characters."""

from __future__ import annotations

from systolic.report.tables import Cell, table


def test_table_aligns_numbers_right_and_text_left() -> None:
    rows: list[list[Cell]] = [["conv1", 12345, 1.5, "x"], ["a", 7, 10.256, ""]]
    assert table(("layer", "cycles", "share", ""), rows).splitlines() == [
        "layer  cycles  share",
        "conv1  12,345   1.50  x",
        "a           7  10.26",
    ]


def test_table_shows_none_as_a_dash() -> None:
    assert table(("name", "dB"), [["a", None], ["b", -3.0]]).splitlines() == [
        "name     dB",
        "a         –",
        "b     -3.00",
    ]


def test_table_column_with_a_text_is_text() -> None:
    assert table(("v",), [[1000], ["many"]]).splitlines() == ["v", "1,000", "many"]


def test_table_without_rows_is_the_head() -> None:
    assert table(("a", "b"), []) == "a  b"


def test_table_replaces_control_characters() -> None:
    assert table(("label",), [["\x1b[31mcat\tdog\n"]]).splitlines() == ["label", "?[31mcat?dog?"]

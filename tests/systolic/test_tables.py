from __future__ import annotations

from systolic.report.tables import Cell, table


def test_numbers_to_the_right_and_text_to_the_left() -> None:
    rows: list[list[Cell]] = [["conv1", 12345, 1.5, "x"], ["a", 7, 10.256, ""]]
    assert table(("layer", "cycles", "share", ""), rows).splitlines() == [
        "layer  cycles  share",
        "conv1  12,345   1.50  x",
        "a           7  10.26",
    ]


def test_nothing_is_a_dash_and_stays_with_the_numbers() -> None:
    assert table(("name", "dB"), [["a", None], ["b", -3.0]]).splitlines() == [
        "name     dB",
        "a         –",
        "b     -3.00",
    ]


def test_a_column_with_one_text_is_text() -> None:
    assert table(("v",), [[1000], ["many"]]).splitlines() == ["v", "1,000", "many"]


def test_no_rows() -> None:
    assert table(("a", "b"), []) == "a  b"


def test_no_label_steers_the_terminal() -> None:
    assert table(("label",), [["\x1b[31mcat\tdog\n"]]).splitlines() == ["label", "?[31mcat?dog?"]

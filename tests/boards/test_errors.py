"""boards/errors.py: a sentence stays a sentence, whatever came."""

from __future__ import annotations

import numpy as np
import pytest

from boards.errors import cut, faults, listed, shown


class Nasty:
    def __repr__(self) -> str:
        raise ValueError("no")


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        "x" * 100_000,
        b"x" * 100_000,
        10**5000,
        -(10**5000),
        nested(50_000),
        {str(key): {str(key): list(range(1000))} for key in range(1000)},
        [["word" * 100] * 100] * 100,
        np.zeros((100, 100, 100)),
        Nasty(),
        {10**5000: nested(900)},
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_came_is_shown_in_one_short_line(value: object) -> None:
    text = shown(value)
    assert 0 < len(text) <= 80
    assert "\n" not in text
    assert len(shown(value, 20)) <= 20


def test_what_is_short_is_shown_whole() -> None:
    for value in ("two  spaces", 17, -3.5, None, True, [1, [2, "three"]], {"key": (1, 2)}, "line\nbreak"):
        assert shown(value) == repr(value)
    assert shown(10**5000) == "an integer of 16,610 bits"


def test_of_a_long_text_its_beginning_and_its_end_are_kept() -> None:
    assert cut("a" * 80) == "a" * 80
    assert cut("/a/very/long/path/to/manifest.json", 20) == "/a/very/long/p….json"
    assert len(cut("a" * 1000, 20)) == 20


def test_a_list_is_cut_with_a_count() -> None:
    assert listed([]) == ""
    assert listed(["a", 2, "c"]) == "a, 2, c"
    assert listed(range(12)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"
    assert listed(range(1240), most=3) == "0, 1, 2 and 1,237 more"
    assert listed(name for name in "abcd") == "a, b, c, d"
    assert listed({"b": 1, "a": 2}) == "b, a"
    assert len(listed(["name" * 1000] * 1000)) <= 12 * 82 + 20


def test_faults_are_cut_with_a_count() -> None:
    assert faults([]) == ""
    assert faults(list("abcdefgh")) == "a; b; c; d; e; f; g; h"
    assert faults(list("abcdefghi"), ", ") == "a, b, c, d, e, f, g, h, and 1 more"
    assert faults([str(i) for i in range(2008)]).endswith("; 7; and 2,000 more")
    assert faults(["x" * 300, "y" * 301]) == f"{'x' * 300}; {cut('y' * 301, 300)}"


def test_how_deep_and_how_far_a_value_is_shown() -> None:
    assert shown([[[1]]]) == "[[[1]]]"
    assert shown([[[[1]]]]) == "[[[[...]]]]"
    assert shown((1 << 128) - 1) == repr((1 << 128) - 1)
    assert shown(1 << 128) == "an integer of 129 bits"

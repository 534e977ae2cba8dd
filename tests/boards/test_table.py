"""A table of a file: a value has the type and range of its key, a default stands for a missing key alone."""

from __future__ import annotations

from boards.errors import InvalidValueError, MissingValueError, RangeError, UnknownKeyError
from boards.table import Table
from tests.support.errors import raises


def test_default_is_taken_if_the_key_is_missing_alone() -> None:
    table = Table({"none": None, "some": 3}, "f")
    assert (table.integer("absent", 0, 9, 5), table.integer("some", 0, 9, 5)) == (5, 3)
    with raises(InvalidValueError, what="none", got=None, required="a whole number", where="f"):
        table.integer("none", 0, 9, 5)
    with raises(MissingValueError, what="other", reason="it must be a list or a table", where="f"):
        table.get("other", (list, dict))


def test_true_is_no_number_and_one_is_not_true() -> None:
    table = Table({"true": True, "one": 1, "large": 1e18}, "f")
    for read in (lambda: table.integer("true", 0, 9), lambda: table.number("true", 0, 9), lambda: table.boolean("one")):
        with raises(InvalidValueError):
            read()
    with raises(RangeError, what="large"):
        table.number("large", 0, 1e30)


def test_key_may_be_asked_for_twice_and_the_others_are_unknown() -> None:
    inner = Table({"a": {"b": 1, "c": 2, "d": 3}}, "f").table("a")
    assert inner.has("c")
    assert inner.integer("b", 0, 9) == inner.integer("b", 0, 9)
    with raises(UnknownKeyError, keys=["a.c", "a.d"], known=["a.b"], where="f"):
        inner.finish()


def test_text_has_at_most_200_printable_characters() -> None:
    table = Table({"longest": "x" * 200, "longer": "x" * 201, "blank": " ", "line": "a\n"}, "f")
    assert len(table.text("longest")) == 200
    for key in ("longer", "blank", "line"):
        with raises(InvalidValueError, what=key):
            table.text(key)

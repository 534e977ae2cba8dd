"""A table of a file: a value has the type and range of its key, a default stands for a missing key alone."""

from __future__ import annotations

from boards.errors import InvalidValueError, MissingValueError, RangeError, UnknownKeyError
from boards.table import Table
from tests.support.errors import raises


def test_table_default_is_used_only_if_the_key_is_missing() -> None:
    table = Table({"none": None, "some": 3}, "f")
    assert (table.integer("absent", 0, 9, 5), table.integer("some", 0, 9, 5)) == (5, 3)
    with raises(InvalidValueError, what="none", got=None, required="a whole number", where="f"):
        table.integer("none", 0, 9, 5)
    with raises(MissingValueError, what="other", reason="it must be a list or a table", where="f"):
        table.get("other", (list, dict))


def test_table_true_as_a_number_and_1_as_true_are_refused() -> None:
    table = Table({"true": True, "one": 1, "large": 1e18}, "f")
    for read in (lambda: table.integer("true", 0, 9), lambda: table.number("true", 0, 9), lambda: table.boolean("one")):
        with raises(InvalidValueError):
            read()
    with raises(RangeError, what="large"):
        table.number("large", 0, 1e30)


def test_table_finish_refuses_keys_that_were_not_read() -> None:
    inner = Table({"a": {"b": 1, "c": 2, "d": 3}}, "f").table("a")
    assert inner.has("c")
    assert inner.integer("b", 0, 9) == inner.integer("b", 0, 9)
    with raises(UnknownKeyError, keys=["a.c", "a.d"], known=["a.b"], where="f"):
        inner.finish()


def test_table_text_beyond_200_printable_characters_is_refused() -> None:
    table = Table({"longest": "x" * 200, "longer": "x" * 201, "blank": " ", "line": "a\n"}, "f")
    assert len(table.text("longest")) == 200
    for key in ("longer", "blank", "line"):
        with raises(InvalidValueError, what=key):
            table.text(key)

"""Assertions on an error's class and fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from boards.errors import SeveralFaultsError, SystolicError, shown

_Error = TypeVar("_Error", bound=SystolicError)

Refusal = tuple[Any, type[SystolicError], Mapping[str, object]]
"""The refused argument, the class of the error, and some of its fields."""


@contextmanager
def raises(kind: type[_Error], **fields: object) -> Iterator[pytest.ExceptionInfo[_Error]]:
    """Expect an error of exactly this class, and compare the given fields with ==."""
    with pytest.raises(kind) as caught:
        yield caught
    assert type(caught.value) is kind, f"{type(caught.value).__name__}: {caught.value}"
    got = {name: getattr(caught.value, name) for name in fields}
    assert got == fields, f"{got}: {caught.value}"


@contextmanager
def raises_among(kind: type[_Error], **fields: object) -> Iterator[pytest.ExceptionInfo[SeveralFaultsError]]:
    """Expect several faults, one of which is an error of exactly this class with the given fields."""
    with pytest.raises(SeveralFaultsError) as caught:
        yield caught
    assert faults_of(caught.value, kind, **fields), [repr(error) for error in caught.value.errors]


def faults_of(error: SystolicError | None, kind: type[_Error], **fields: object) -> list[_Error]:
    """Return the faults that are errors of exactly this class with the given fields."""
    assert isinstance(error, SeveralFaultsError)
    return [
        one for one in error.errors if type(one) is kind and {name: getattr(one, name) for name in fields} == fields
    ]


def check_refusals(call: Callable[[Any], object], refusals: Iterable[Refusal]) -> None:
    """Call with the first of each tuple, as ``raises`` does; the assertion lists every case that differs."""
    wrong = []
    for case, kind, fields in refusals:
        try:
            call(case)
        except SystolicError as error:
            got = {name: getattr(error, name, "no such field") for name in fields}
            if type(error) is not kind or got != dict(fields):
                wrong.append(f"{shown(case)}: {type(error).__name__} {got}: {error}")
        else:
            wrong.append(f"{shown(case)} is not refused")
    assert not wrong, "\n".join(wrong)


@contextmanager
def refused(*expected: SystolicError) -> Iterator[None]:
    """Expect these errors, equal in class and all fields: one that is raised, or all of a SeveralFaultsError.

    Floats may differ after the fifth digit, because a matrix product's sums depend on its number of threads.
    """
    with pytest.raises(SystolicError) as caught:
        yield
    error = caught.value
    errors = error.errors if isinstance(error, SeveralFaultsError) else [error]
    assert [_rounded(each) for each in errors] == [_rounded(each) for each in expected]


def _rounded(error: SystolicError) -> str:
    return re.sub(r"\d+\.\d{6,}", lambda number: f"{float(number[0]):.5g}", repr(error))

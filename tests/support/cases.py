"""Cheap cases that run as one test, which names those that fail."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest


def cases(
    names: str, values: Iterable[Any], ids: Sequence[str] | Callable[[Any], str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once per case, as one test. The arguments are the same as for ``pytest.mark.parametrize``.

    Cheap cases need no test each, because the message names those that failed. Every case runs, even after a failure.
    The first failure is the cause of the error. A test that takes ``tmp_path`` gets a new folder per case, and its
    changes by ``monkeypatch`` are undone after each case. The decorator can be applied several times.
    """
    arguments, every = [name.strip() for name in names.split(",")], list(values)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures: dict[str, BaseException] = {}
            for number, case in enumerate(every):
                given = dict(zip(arguments, [case] if len(arguments) == 1 else case, strict=True))
                try:
                    with _own_patch(fixtures) as patch:
                        test(**{**fixtures, **_own_folder(fixtures, number), **patch}, **given)
                except (Exception, pytest.fail.Exception) as error:  # an assertion, or an error of the tested code
                    failures[_label(ids, number, given)] = error
            if failures:
                first = next(iter(failures.values()))
                raise AssertionError(f"{len(failures)} of {len(every)} cases: {'; '.join(failures)}") from first

        left = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate


def by_default(count: int, values: Iterable[Any]) -> list[Any]:
    """Return values for ``pytest.mark.parametrize``. All values after the first ``count`` are marked ``engine``.

    This is for a test that builds or executes a design per value, if one value shows most faults.
    """
    return [
        value if number < count else pytest.param(*_arguments(value), marks=pytest.mark.engine)
        for number, value in enumerate(values)
    ]


def _arguments(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


@contextlib.contextmanager
def _own_patch(fixtures: dict[str, Any]) -> Iterator[dict[str, pytest.MonkeyPatch]]:
    if "monkeypatch" not in fixtures:
        yield {}
        return
    with pytest.MonkeyPatch.context() as patch:
        yield {"monkeypatch": patch}


def _own_folder(fixtures: dict[str, Any], number: int) -> dict[str, Path]:
    if "tmp_path" not in fixtures:
        return {}
    folder: Path = fixtures["tmp_path"] / f"case_{number}"
    folder.mkdir()
    return {"tmp_path": folder}


def _label(ids: Sequence[str] | Callable[[Any], str] | None, number: int, given: dict[str, Any]) -> str:
    if callable(ids):
        return ", ".join(ids(value) for value in given.values())
    return ids[number] if ids else ", ".join(f"{name}={value!r}" for name, value in given.items())[:200]

"""Mutants take the place of what is loaded: code, defaults, constants and fields of classes."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tools.mutation import forks
from tools.mutation.reasons import reasons
from tools.mutation.statements import readers, statement
from tools.mutation.swap import StillbornError, UnreachableError, apply_mutation

TEXT = """
from dataclasses import dataclass
from functools import cached_property, lru_cache

LIMIT = 10
TABLE = [LIMIT + 1 for _ in range(1)]


@dataclass(frozen=True)
class Tile:
    rows: int
    columns: int = 3

    @property
    def size(self):
        return self.rows * self.columns

    @cached_property
    def edge(self):
        return 2 * max(n for n in (self.rows, self.columns))


@lru_cache
def below(value, slack=0):
    return value < LIMIT + slack
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "mutated.py").write_text(TEXT)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("mutated")
    del sys.modules["mutated"]


def put(module: ModuleType, old: str, new: str) -> None:
    assert TEXT.count(old) == 1
    apply_mutation(module, TEXT, TEXT.replace(old, new))


Values = tuple[int, int, bool, int]


def values(module: ModuleType, tile: object) -> Values:
    """Return values of an existing tile of 4×3, of a function, and of a new tile."""
    return tile.size, tile.edge, module.below(10), module.Tile(1).columns  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("self.rows * self.columns", "self.rows + self.columns", (7, 8, False, 3)),
        ("2 * max", "3 * max", (12, 12, False, 3)),
        ("max(n for n in (self.rows, self.columns))", "max([0])", (12, 0, False, 3)),
        ("value < LIMIT", "value <= LIMIT", (12, 8, True, 3)),
        ("LIMIT = 10", "LIMIT = 11", (12, 8, True, 3)),
        ("slack=0", "slack=1", (12, 8, True, 3)),
        ("columns: int = 3", "columns: int = 4", (12, 8, False, 4)),
    ],
)
def test_put_in_changes_loaded_code_defaults_and_constants(
    module: ModuleType, old: str, new: str, expected: Values
) -> None:
    assert values(module, module.Tile(4)) == (12, 8, False, 3)
    tile = module.Tile(4)
    put(module, old, new)
    assert values(module, tile) == expected


def test_put_in_of_an_unreachable_or_broken_edit_raises(module: ModuleType) -> None:
    with pytest.raises(UnreachableError):
        apply_mutation(module, TEXT, TEXT + "\n")
    with pytest.raises(StillbornError):
        put(module, "LIMIT = 10", "LIMIT = (")
    with pytest.raises(StillbornError):
        put(module, "LIMIT = 10", "LIMIT = 1 / 0")


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        (1, None),
        (2, None),
        (3, range(3, 4)),
        (4, range(4, 6)),
        (5, range(4, 6)),
        (6, range(6, 8)),
        (7, range(6, 8)),
    ],
)
def test_statement_of_a_line_has_all_its_lines(line: int, lines: range | None, tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("x = 1\ndef f(a):\n    if a:\n        b = (a,\n            2)\n    return (\n        b)\n")
    assert statement(path, line) == lines


def test_forked_process_that_hangs_or_waits_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def works_for_ever() -> int:
        while True:
            pass

    def waits_for_ever() -> int:
        signal.pause()
        return 0

    assert forks.forked(lambda: 7, 100) == 7
    assert forks.forked(works_for_ever, 1) is None
    monkeypatch.setattr(forks, "IDLE", 0.5)
    assert forks.forked(waits_for_ever, 100) is None


def test_forked_trial_that_raises_is_reported_with_its_traceback(tmp_path: Path) -> None:
    """The runner failed, not a test, so the mutant is neither killed nor survived."""
    with (tmp_path / "told").open("w+", encoding="utf-8") as file:

        def tell(text: str) -> None:
            file.write(text)
            file.flush()

        def raises() -> int:
            raise LookupError("no such wrapper")

        assert forks.forked(raises, 100, tell) == forks.RAISED
        assert forks.forked(raises, 100) == forks.RAISED
        file.seek(0)
        told = file.read().splitlines()
    assert (told[0], told[-1]) == ("Traceback (most recent call last):", "LookupError: no such wrapper")


def test_report_counts_a_raised_trial_as_neither_killed_nor_survived(tmp_path: Path) -> None:
    pytest.importorskip("cosmic_ray", reason="mutants need Cosmic Ray: pip install -e '.[mutation]'")
    from tools.mutation.mutants import sample
    from tools.mutation.survivors import report
    from tools.mutation.trials import Outcome

    (tmp_path / "room.py").write_text("x = 1 + 2\n")
    mutants = sample(tmp_path, ["room.py"], None, 1)[0]
    outcomes = dict.fromkeys(mutants, Outcome.KILLED) | {mutants[0]: Outcome.RAISED}
    text, new = report(tmp_path, outcomes, len(mutants))
    assert f"{len(mutants) - 1} of {len(mutants) - 1} mutants killed, 100.0 %" in text
    assert "1 raised in trial" in text
    assert new == 1


def test_readers_of_a_line_are_the_lines_that_use_its_value(tmp_path: Path) -> None:
    """Tests of those lines come first: others may reach the file and never the constant."""
    path = tmp_path / "m.py"
    path.write_text("A, B = (\n    1, 2)\n\ndef f(x=3):\n    return A\n\ndef g():\n    y = 1\n    return B\n")
    assert [readers(path, line) - {1} for line in (1, 2)] == [{5, 9}, {5, 9}]
    assert readers(path, 4) == {5}
    assert readers(path, 3) == set()


def test_listed_survivors_are_lines_of_their_files() -> None:
    """Check that no entry is stale: one whose line was changed excuses nothing, and can be deleted."""
    root = Path(__file__).parents[2]
    for path, line in reasons():
        assert line in map(str.strip, (root / path).read_text("utf-8").splitlines()), f"{path}: {line}"


def test_sample_draws_only_mutants_that_can_be_made(tmp_path: Path) -> None:
    """Cosmic Ray fails if it exchanges an exception with a dot in its name, so no such mutant is drawn."""
    mutants = pytest.importorskip("tools.mutation.mutants", reason="mutants are Cosmic Ray's")
    text = "try:\n    pass\nexcept (asyncio.TimeoutError, ValueError):\n    pass\n"
    (tmp_path / "caught.py").write_text(text)
    drawn, _ = mutants.sample(tmp_path, ["caught.py"], None, 1)
    assert [mutant.column for mutant in drawn] == [text.splitlines()[2].index("ValueError")]
    assert all(mutant.source(tmp_path) != text for mutant in drawn)

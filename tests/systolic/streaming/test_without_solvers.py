"""If a solver is not installed, the error says what to install, and which option does without it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from boards.errors import MissingToolError
from tests.support.cases import cases
from tests.support.command_line import call, refused
from tests.support.small_network import write_small


@cases(
    "search, module, tool",
    [
        ("exact", "ortools.sat.python", "OR-tools"),
        ("exact", "scipy", "scipy"),
        ("annealing", "scipy.optimize", "scipy"),
    ],
)
def test_fold_without_a_solver_names_the_greedy_search(
    search: str, module: str, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    fold = ("fold", write_small(tmp_path), "--fps", 20000)
    done = call(*fold, "--folding", search)
    remedy = "pip install -e '.[solver]', or fold greedily (--folding greedy)"
    refused(done, MissingToolError, tool=tool, remedy=remedy)
    assert call(*fold, "--folding", "greedy").code == 0

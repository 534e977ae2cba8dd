"""Where a solver is not installed: the sentence says what to install, and which option does without."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.cases import cases
from tests.support.small_network import write_small
from tests.systolic.command_line import call, refused


@cases(
    "search, module, sentence",
    [
        ("exact", "ortools.sat.python", "OR-tools is not installed; it is needed to fold exactly"),
        ("exact", "scipy", "scipy is not installed; it is needed to fold exactly"),
        ("annealing", "scipy.optimize", "scipy is not installed; it is needed to fold by annealing"),
    ],
)
def test_the_sentence_names_the_option_that_needs_none(
    search: str, module: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    fold = ("fold", write_small(tmp_path), "--fps", 20000)
    refused(
        call(*fold, "--folding", search),
        rf"{sentence}; pip install -e '\.\[solver\]', or fold greedily \(--folding greedy\)$",
    )
    assert call(*fold, "--folding", "greedy").code == 0

"""The figures and pictures of the pages are those that the program gave."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.figures import command, rooms
from tools.figures.sentences import SENTENCES, Figures, differences, renewed, spans

ROOT = Path(__file__).resolve().parents[2]
FIGURES: Figures = {"example": {"cycles": 1234567, "share": 0.973}}


@pytest.fixture
def sentence(monkeypatch: pytest.MonkeyPatch) -> str:
    text = "takes {example.cycles:,} cycles, and {example.share:.1%} of all"
    monkeypatch.setitem(SENTENCES, "page.md", (text,))
    return text


def test_pages_and_pictures_are_as_recorded() -> None:
    assert [str(difference) for difference in command.page_differences()] == []
    assert command.picture_differences() == []


@pytest.mark.parametrize("page", sorted(SENTENCES))
def test_page_with_other_figures_differs_and_is_renewed(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    figures = command.read()["figures"]
    others = {
        example: {name: f"other-{value}" if isinstance(value, str) else value * 3 + 1 for name, value in values.items()}
        for example, values in figures.items()
    }
    other = renewed(page, text, others)
    assert len(list(differences(page, other, figures))) >= len(SENTENCES[page])
    assert renewed(page, other, figures) == text


def test_differences_finds_a_sentence_across_lines(sentence: str) -> None:
    assert list(differences("page.md", "It takes 1,234,567\ncycles, and 97.3 % of all.", FIGURES)) == []
    (difference,) = differences("page.md", "It takes 1,234,568 cycles, and 97.3 % of all.", FIGURES)
    assert (difference.said, difference.recorded) == ("1,234,568", "1,234,567")


@pytest.mark.parametrize(
    "text", ["", "takes 1,234,567 cycles, and 97.3 % of all; takes 1,234,567 cycles, and 97.3 % of all"]
)
def test_differences_reports_a_sentence_that_is_absent_or_repeated(sentence: str, text: str) -> None:
    (difference,) = differences("page.md", text, FIGURES)
    assert (difference.sentence, difference.said) == (sentence, None)


@pytest.mark.parametrize(
    "page",
    ["README.md", "docs/index.md", *(f"docs/tutorial/{name}.md" for name in ("first", "zcu104", "ultranet", "board"))],
)
def test_first_page_rates_are_all_recorded(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    covered = list(spans(page, text))
    for rate in re.finditer(r"[\d,.]+\d (?:frames/s|cycles)", text):
        recorded = any(start <= rate.start() and rate.end() <= end for start, end in covered)
        assert recorded, f"{page} says {rate.group()}, which tools/figures/sentences.py does not have"


def test_drawn_dashed_arrows_are_imports_of_the_errors_alone() -> None:
    imports = rooms.imported_rooms(ROOT)
    assert imports["scheduler"]["cnn"]
    assert imports["host"] == {"contract": True, "boards": False}
    drawn = rooms.drawn(ROOT)
    assert drawn.count("<path") - 1 == 15
    assert drawn.count("stroke-dasharray") == 4

"""Words at the foot of a report: those that it uses, with the meanings of the documentation's glossary."""

from __future__ import annotations

from pathlib import Path

from systolic.report.glossary import WORDS, glossary
from systolic.report.page import html_table, page

GLOSSARY = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text("utf-8")


def test_a_word_means_what_the_documentation_says() -> None:
    rows = [line.strip("| ").split(" | ") for line in GLOSSARY.splitlines() if line.startswith("| ")]
    documented = {row[0]: row[1].replace("`", "").replace('"', "'") for row in rows}
    assert {word: meaning for word, (_, meaning) in WORDS.items()} == {word: documented[word] for word in WORDS}


def test_a_page_explains_the_words_that_it_uses_and_no_others() -> None:
    text = page("a title", html_table(("layer", "bound by"), [["conv1", "saver"]]), "<p>in URAM &amp; more</p>")
    foot = text[text.index("<h2>Words</h2>") :]
    assert "<dt>URAM</dt><dd>Block memory of 288 Kib" in foot
    assert "<dt>bound by</dt>" in foot
    assert "<dt>drain</dt>" not in foot
    assert glossary("<p class='DSP'>nothing</p>") == ""

"""Words at the foot of a report: those that it uses, as the glossary explains them."""

from __future__ import annotations

from systolic.report.glossary import PATTERNS, glossary, meanings
from systolic.report.page import html_table, page


def test_every_word_that_reports_explain_is_in_the_glossary() -> None:
    assert PATTERNS.keys() <= meanings().keys()
    assert meanings()["streamed"] == "Neither stays: weights come once a row tile."


def test_a_page_explains_the_words_that_it_uses_and_no_others() -> None:
    text = page("a title", html_table(("layer", "bound by"), [["conv1", "saver"]]), "<p>in URAM &amp; more</p>")
    foot = text[text.index("<h2>Words</h2>") :]
    assert "<dt>URAM</dt><dd>Block memory of 288 Kib" in foot
    assert "<dt>bound by</dt>" in foot
    assert "<dt>drain</dt>" not in foot
    assert glossary("<p class='DSP'>nothing</p>") == ""

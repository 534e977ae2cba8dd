"""Test the glossary at the end of a report: the terms that the report uses, with their meanings from glossary.md."""

from __future__ import annotations

from systolic.report.glossary import PATTERNS, glossary, meanings
from systolic.report.page import html_table, page


def test_meanings_include_every_term_that_reports_explain() -> None:
    assert PATTERNS.keys() <= meanings().keys()
    streamed = "Neither weights nor rows stay in their buffers: the weights are read once per row tile."
    assert meanings()["streamed"] == streamed


def test_page_explains_only_the_terms_that_it_uses() -> None:
    text = page("a title", html_table(("layer", "bound by"), [["conv1", "saver"]]), "<p>in URAM &amp; more</p>")
    foot = text[text.index("<h2>Glossary</h2>") :]
    assert "<dt>URAM</dt><dd>Block memory of 288 Kib" in foot
    assert "<dt>bound by</dt>" in foot
    assert "<dt>drain</dt>" not in foot
    assert glossary("<p class='DSP'>nothing</p>") == ""

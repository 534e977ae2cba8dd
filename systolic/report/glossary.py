"""The glossary at the end of each HTML report: the terms that the report uses, with their meanings from glossary.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from html import escape, unescape
from pathlib import Path

PATTERNS: Mapping[str, str] = {
    "MAC": "MAC",
    "rows, M": "rows",
    "columns, N": "columns",
    "lane, L": "lanes?",
    "array": "array",
    "tiling": "tiling",
    "row tile": "row tile",
    "column tile": "column tile",
    "channel tile": "channel tile",
    "weight-stationary at the buffers": "weights-resident",
    "input-stationary at the buffers": "inputs-resident",
    "streamed": "streamed",
    "Saver": "Saver",
    "map buffer": "map buffer",
    "placement": "placement",
    "fill": "fill",
    "drain": "drain",
    "bound by": "bound by",
    "overhead": "overhead",
    "baseline": "baseline",
    "modelled": "modelled",
    "traced": "traced",
    "estimate": "estimate",
    "energy": "energy|µJ|mJ",
    "target": "target",
    "Pareto front": "Pareto front",
    "fold, NF, SF": "fold",
    "folding": "folding",
    "block": "block",
    "window": "window",
    "converter": "converter",
    "DSP": "DSP",
    "BRAM36, BRAM18": "BRAM36|BRAM18",
    "URAM": "URAM",
    "LUTRAM": "LUTRAM",
    "DDR": "DDR",
    "DDR peak": "DDR peak",
    "DDR efficiency": "DDR efficiency",
    "candidate": "candidate",
    "initiation interval, II": "II",
    "MH, MW": "MH|MW",
    "PE (of a block)": "PE",
    "SIMD": "SIMD",
    "PE (systolic)": "PEs",
    "layer": "layer",
    "frames/s": "frames/s",
}
"""The terms of glossary.md that reports explain, each with the regular expression that finds it on a page."""


@cache
def meanings() -> Mapping[str, str]:
    """Return {term: meaning} of glossary.md, without the markup."""
    lines = (Path(__file__).parent / "glossary.md").read_text("utf-8").splitlines()
    rows = (line.strip("| ").split(" | ") for line in lines if line.startswith("| "))
    return {word: meaning.replace("`", "").replace('"', "'") for word, meaning, *_ in rows}


def glossary(text: str) -> str:
    """Return the HTML list of the terms that a page uses, with their meanings; "" if it uses none.

    Args:
        text: The HTML of the page. Its tags, styles and SVG definitions are not searched.
    """
    plain = unescape(re.sub(r"<[^>]*>", " ", re.sub(r"<(style|defs)\b.*?</\1>", " ", text, flags=re.S)))
    used = [word for word, pattern in PATTERNS.items() if re.search(rf"\b(?:{pattern})\b", plain)]
    if not used:
        return ""
    entries = "".join(f"<dt>{escape(word)}</dt><dd>{escape(meanings()[word])}</dd>" for word in used)
    return f"<h2>Glossary</h2><dl>{entries}</dl>"

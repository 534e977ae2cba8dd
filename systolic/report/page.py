"""HTML pages of the reports. Each is one file that needs no script and no other file, with its tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from systolic.report.glossary import glossary
from systolic.report.tables import Cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #222; margin: 0 auto; max-width: 76rem; padding: 0 1rem 3rem; }
p, dl, h1, h2, .wide svg, .pair { max-width: 60rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; margin: 1.2rem 0; }
table { border-collapse: collapse; font-size: .85rem; }
td, th { padding: .2rem .6rem; text-align: left; white-space: nowrap; }
td.long { white-space: normal; min-width: 20rem; }
td.sentence { white-space: normal; min-width: 48rem; }
th { border-bottom: 1px solid #999; } td.n { text-align: right; font-variant-numeric: tabular-nums; }
tr:nth-child(even) td { background: #f4f6f8; }
svg { width: 100%; min-width: 40rem; height: auto; }
.pair { display: flex; flex-wrap: wrap; gap: 1.5rem; margin: 1.2rem 0; }
.pair figure { flex: 1 1 20rem; max-width: 28rem; margin: 0; } .pair svg { min-width: 0; }
figcaption { color: #555; font-size: .85rem; }
dl { font-size: .85rem; } dt { font-weight: 600; } dd { margin: 0 0 .4rem 1rem; color: #444; }
p.note { color: #555; font-size: .85rem; }
"""


WRAPPED = {"sentence": 160, "long": 40}
"""The cells that may wrap: CSS class to the number of characters above which a cell gets it, the longest first."""

# --- HTML ----------------------------------------------------------------------------------------------------------


def html_table(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Return an HTML table that scrolls on its own if the page is too narrow. The text of each cell is escaped."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{top}</tr>{body}</table></div>'


def _cell(cell: Cell) -> str:
    if cell is None:
        return "<td>–</td>"
    if isinstance(cell, str):
        kind = next((f' class="{name}"' for name, length in WRAPPED.items() if len(cell) > length), "")
        return f"<td{kind}>{escape(cell)}</td>"
    return f'<td class="n">{cell:,.2f}</td>' if isinstance(cell, float) else f'<td class="n">{cell:,}</td>'


def picture(figure: Figure) -> str:
    """Return the figure as HTML in a box that scrolls sideways, so that it stays readable on a narrow screen."""
    from systolic.report.figures import svg

    return f'<div class="wide">{svg(figure)}</div>'


def pair(figures: Sequence[tuple[Figure, str]]) -> str:
    """Return HTML with small figures and captions, next to each other, or below each other on a narrow screen."""
    from systolic.report.figures import svg

    shown = (f"<figure>{svg(figure)}<figcaption>{escape(words)}</figcaption></figure>" for figure, words in figures)
    return f'<div class="pair">{"".join(shown)}</div>'


MODELLED = (
    "Modelled: these numbers are computed by closed formulas of the scheduler, not measured. The cycle trace of the "
    "generated code checks them (systolic simulate --cycles)."
)


def page(title: str, *parts: str, note: str = MODELLED) -> str:
    """Return a complete HTML page of these parts, with a glossary of the terms that it uses.

    Args:
        title: The title and first heading.
        parts: The HTML of the body, in order.
        note: The origin of the page's numbers, printed below the heading.
    """
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f'<p class="note">{escape(note)}</p>'
        f"{''.join(parts)}{glossary(''.join(parts))}</body></html>\n"
    )

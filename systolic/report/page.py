"""What was explored, as one self-contained HTML page (no script, no other file)."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from matplotlib.figure import Figure

from systolic.report import figures
from systolic.report.tables import Cell
from systolic.styles.systolic.explored import (
    BASELINE_HEAD,
    BUDGET_HEAD,
    COMPARE_HEAD,
    LAYER_HEAD,
    Comparison,
    PricedSchedule,
    baseline_rows,
    budget,
    comparison_rows,
    rows_of,
    totals,
)

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #222; margin: 0 auto; max-width: 60rem; padding: 0 1rem 3rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; margin: 1.2rem 0; }
table { border-collapse: collapse; font-size: .85rem; }
td, th { padding: .2rem .6rem; text-align: left; white-space: nowrap; }
td.long { white-space: normal; min-width: 20rem; }
th { border-bottom: 1px solid #999; } td.n { text-align: right; font-variant-numeric: tabular-nums; }
tr:nth-child(even) td { background: #f4f6f8; }
svg { width: 100%; min-width: 40rem; height: auto; }
p.note { color: #555; font-size: .85rem; }
"""


LONG = 40
"""Characters of a cell from which on it may take several lines."""

# --- HTML ----------------------------------------------------------------------------------------------------------


def html_table(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{top}</tr>{body}</table></div>'


def _cell(cell: Cell) -> str:
    if cell is None:
        return "<td>–</td>"
    if isinstance(cell, str):
        return f'<td class="long">{escape(cell)}</td>' if len(cell) > LONG else f"<td>{escape(cell)}</td>"
    return f'<td class="n">{cell:,.2f}</td>' if isinstance(cell, float) else f'<td class="n">{cell:,}</td>'


def picture(figure: Figure) -> str:
    """What is too small to read on a telephone is moved sideways in its own box."""
    return f'<div class="wide">{figures.svg(figure)}</div>'


def explored_html(explored: PricedSchedule) -> str:
    """A part of a page: tables and pictures of one schedule."""
    return f"<h2>{escape(explored.title)}</h2>{_explored(explored)}"


def _explored(explored: PricedSchedule) -> str:
    slowest = max(range(len(explored.cost.layers)), key=lambda i: explored.cost.layers[i].total)
    pictures = (
        figures.stacked(explored),
        figures.roofline(explored),
        figures.buffers(explored),
        figures.tiling(explored, 0),
        figures.tiling(explored, slowest),
    )
    note = escape(totals(explored)).replace("\n", "<br>")
    parts = [
        f"<p>{note}</p>",
        html_table(LAYER_HEAD, rows_of(explored)),
        html_table(BUDGET_HEAD, budget(explored)),
        html_table(BASELINE_HEAD, baseline_rows(explored)),
        *map(picture, pictures),
    ]
    return "".join(parts)


def comparison_html(comparison: Comparison) -> str:
    rates = [(r.asked, r.explored.cost.frames_per_second) for r in comparison.rows if r.explored]
    chart = picture(figures.bars(rates, "frames/s (modelled)")) if rates else ""
    return html_table(COMPARE_HEAD, comparison_rows(comparison)) + chart


def page(title: str, *parts: str) -> str:
    """One file: it asks for nothing else, and reads on a telephone."""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><h1>{escape(title)}</h1>"
        '<p class="note">Modelled: closed formulas of the scheduler, not a measurement. The cycle trace of the '
        "generated code checks them (systolic simulate --cycles).</p>"
        f"{''.join(parts)}</body></html>\n"
    )


def report(comparison: Comparison, front: Sequence[PricedSchedule] = ()) -> str:
    """The page of ``systolic compare --report``. front: see ``systolic.explore.front``."""
    found = [row.explored for row in comparison.rows if row.explored]
    best = max(found, key=lambda e: e.cost.frames_per_second, default=None)
    parts = [comparison_html(comparison)]
    if front:
        parts.append("<h2>Geometries</h2>" + picture(figures.pareto(front, best)))
    return page(f"{comparison.network}: schedules compared", *parts, *map(explored_html, found))


def schedule_page(explored: PricedSchedule, front: Sequence[PricedSchedule] = ()) -> str:
    """The page of ``systolic schedule --report``."""
    more = "<h2>Geometries</h2>" + picture(figures.pareto(front, explored)) if front else ""
    return page(explored.title, _explored(explored), more)

"""What was explored, as text for a terminal and as one self-contained HTML page (no script, no other file)."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from matplotlib.figure import Figure

from scheduler.fabric import SOURCE
from systolic import figures
from systolic.explore import LAYER_HEAD, Comparison, Explored, Row, layer_table, rows_of
from systolic.tables import Cell, table

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


# --- text ----------------------------------------------------------------------------------------------------------


def explored_text(explored: Explored) -> str:
    return "\n\n".join(
        [
            explored.title,
            layer_table(explored),
            _totals(explored),
            table(BUDGET_HEAD, budget(explored)),
            _named(explored),
        ]
    )


def _totals(explored: Explored) -> str:
    priced = explored.cost
    moved = priced.traffic.total
    lines = [
        f"modelled: {priced.cycles:,} cycles a frame, {priced.frames_per_second:.1f} frames/s, "
        f"{priced.cycles / explored.clock_mhz / 1e3:.2f} ms",
        f"DDR: {moved / 1e6:.2f} MB a frame, {moved * priced.frames_per_second / 1e9:.2f} GB/s",
        f"MACs: {priced.macs / (priced.array.macs_per_cycle * priced.cycles):.1%} of what the array could do",
    ]
    names = {"bram": "BRAM36", "uram": "URAM"}
    places = (explored.placement.row_memory, explored.placement.weight_memory)
    lines.append(f"buffers: rows in {names[places[0]]}, weights in {names[places[1]]}")
    if explored.proof:
        proof = explored.proof
        lines.append(
            f"proven best of {proof.geometries} geometries: {proof.priced} priced ({proof.arrays:,} arrays), "
            f"{proof.ruled_out} ruled out by their bound"
        )
    return "\n".join(lines)


BUDGET_HEAD = ("resource", "used", "of", "share", "source")


def budget(explored: Explored) -> list[list[Cell]]:
    """Totals against what the board has."""
    used, have = explored.usage, explored.board.resources
    counted = "estimate: primitives by their shapes"
    rows = [("DSP", used.dsp, have.dsp, counted), ("BRAM36", used.bram36, have.bram36, counted)]
    rows += [("URAM", used.uram, have.uram, counted)] if have.uram else []
    rows += [("LUT", explored.fabric.lut, have.lut, SOURCE), ("FF", explored.fabric.ff, have.ff, SOURCE)]
    return [[name, a, b, f"{a / b:.0%}", source] for name, a, b, source in rows]


NAMED_HEAD = ("schedule", "cycles", "frames/s", "DDR MB", "weights on chip KiB", "source")


def named_rows(explored: Explored) -> list[list[Cell]]:
    """The chosen schedule and the named ones, on the same MACs."""
    clock = explored.clock_mhz * 1e6
    own = explored.cost
    rows: list[list[Cell]] = [
        ["this", own.cycles, own.frames_per_second, own.traffic.total / 1e6, None, "modelled, engine"]
    ]
    for one in explored.named:
        rows.append([one.name, one.cycles, clock / one.cycles, one.bytes / 1e6, one.on_chip // 1024, one.source])
    return rows


def _named(explored: Explored) -> str:
    return table(NAMED_HEAD, named_rows(explored))


COMPARE_HEAD = ("asked", "array", "MHz", "cycles", "frames/s", "DSP", "BRAM36", "URAM", "DDR MB", "bound by")


def comparison_rows(comparison: Comparison) -> list[list[Cell]]:
    return [_compared(row) for row in comparison.rows]


def _compared(row: Row) -> list[Cell]:
    one = row.explored
    if one is None:
        return [row.asked, "–", None, None, None, None, None, None, None, row.reason.splitlines()[0]]
    worst = max(one.cost.layers, key=lambda layer: layer.total)
    return [
        row.asked, str(one.schedule.array), round(one.clock_mhz), one.cost.cycles, one.cost.frames_per_second,
        one.usage.dsp, one.usage.bram36, one.usage.uram, one.cost.traffic.total / 1e6,
        f"{worst.work.name}: {worst.bound_by}",
    ]  # fmt: skip


def comparison_text(comparison: Comparison) -> str:
    return f"{comparison.network}, modelled\n\n{table(COMPARE_HEAD, comparison_rows(comparison))}"


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


def explored_html(explored: Explored) -> str:
    """A part of a page: tables and pictures of one schedule."""
    return f"<h2>{escape(explored.title)}</h2>{_explored(explored)}"


def _explored(explored: Explored) -> str:
    slowest = max(range(len(explored.cost.layers)), key=lambda i: explored.cost.layers[i].total)
    pictures = (
        figures.stacked(explored), figures.roofline(explored), figures.buffers(explored),
        figures.tiling(explored, 0), figures.tiling(explored, slowest),
    )  # fmt: skip
    note = escape(_totals(explored)).replace("\n", "<br>")
    parts = [
        f"<p>{note}</p>",
        html_table(LAYER_HEAD, rows_of(explored)),
        html_table(BUDGET_HEAD, budget(explored)),
        html_table(NAMED_HEAD, named_rows(explored)),
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


def report(comparison: Comparison, front: Sequence[Explored] = ()) -> str:
    """The page of ``systolic compare --report``. front: see ``systolic.explore.front``."""
    found = [row.explored for row in comparison.rows if row.explored]
    best = max(found, key=lambda e: e.cost.frames_per_second, default=None)
    parts = [comparison_html(comparison)]
    if front:
        parts.append("<h2>Geometries</h2>" + picture(figures.pareto(front, best)))
    return page(f"{comparison.network}: schedules compared", *parts, *map(explored_html, found))


def schedule_page(explored: Explored, front: Sequence[Explored] = ()) -> str:
    """The page of ``systolic schedule --report``."""
    more = "<h2>Geometries</h2>" + picture(figures.pareto(front, explored)) if front else ""
    return page(explored.title, _explored(explored), more)

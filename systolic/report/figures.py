"""The common parts of all figures: their size, their colours and their bar charts."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from html import escape

from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = {
    "compute": "#2f6fb0",
    "fill": "#9bb8d3",
    "rows": "#e0a030",
    "weights": "#c8553d",
    "saver": "#7a4f9a",
    "ddr": "#3d8b6e",
    "drain": "#b5b5b5",
    "program": "#555555",
}
"""The colour of each part of the cycles, the same in every figure."""

WIDTH, HEIGHT = 7.0, 3.6  # inches


class Picture(Figure):
    """A matplotlib figure that a notebook shows without pyplot.

    Notebooks show matplotlib's own figures only if pyplot was imported.
    """

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=100)
        return out.getvalue()


def blank(title: str, height: float = HEIGHT) -> tuple[Figure, Axes]:
    """Return an empty figure with a title and its axes. Every figure is WIDTH inches wide.

    Args:
        title: The title of the axes and the figure's label, which ``svg`` passes on to screen readers.
        height: The height in inches.
    """
    figure = Picture(figsize=(WIDTH, height), layout="constrained")
    figure.set_label(title)
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    return figure, axes


def legend_below(axes: Axes, columns: int) -> None:
    """Add a legend below the axes, where it covers no bar, with ``columns`` entries in each of its lines."""
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    figure.legend(loc="outside lower center", fontsize=7, frameon=False, ncols=columns)


Series = tuple[str, Sequence[float], str]
"""The label, the values and the colour of a series of bars, with one value for each name on the axis."""


def grouped_bars(axes: Axes, names: Sequence[str], series: Sequence[Series]) -> None:
    """Draw horizontal bars: for each name one bar per series, below each other."""
    pitch = 0.8 / len(series)
    for number, (label, values, colour) in enumerate(series):
        places = [row + pitch * (number - (len(series) - 1) / 2) for row in range(len(names))]
        axes.barh(places, values, height=0.9 * pitch, color=colour, label=label)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()


def stacked_bars(axes: Axes, names: Sequence[str], series: Sequence[Series]) -> None:
    """Draw one horizontal bar per name, in which the values of all series follow each other."""
    left = [0.0] * len(names)
    for label, values, colour in series:
        if any(values):
            axes.barh(names, values, left=left, color=colour, label=label)
            left = [start + value for start, value in zip(left, values, strict=True)]
    axes.invert_yaxis()


def svg(figure: Figure) -> str:
    """Return the figure as an <svg> element for an HTML page.

    Text stays text, so that it can be searched and selected. Screen readers read the figure's label. Equal figures
    become equal text: the identifiers are not random, and the element holds no date.
    """
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "systolic"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    label = escape(str(figure.get_label()), quote=True)
    return text[text.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def bars(rates: Sequence[tuple[str, float]], what: str, pale: Collection[int] = ()) -> Figure:
    """Return a figure with one horizontal bar per alternative, such as a schedule, labelled with its value.

    Args:
        rates: The name and the value of each bar. The same name may occur more than once.
        what: The title of the figure.
        pale: The indices of the bars that are drawn in a pale colour: they are baselines.
    """
    figure, axes = blank(what, max(1.6, 0.6 + 0.3 * len(rates)))
    colours = [COLOURS["fill" if row in pale else "compute"] for row in range(len(rates))]
    axes.barh(range(len(rates)), [value for _, value in rates], color=colours)
    axes.set_yticks(range(len(rates)), [name for name, _ in rates])
    for row, (_, value) in enumerate(rates):
        axes.text(value, row, f" {value:,.1f}", va="center", fontsize=8)
    axes.invert_yaxis()
    return figure

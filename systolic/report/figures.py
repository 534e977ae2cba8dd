"""What all pictures have alike: their size, colours and bars."""

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
"""One colour a part of the cycles, the same in every picture."""

WIDTH, HEIGHT = 7.0, 3.6  # inches


class Picture(Figure):
    """A figure that a notebook shows by itself: matplotlib's own is shown only where pyplot was imported."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=100)
        return out.getvalue()


def blank(title: str, height: float = HEIGHT) -> tuple[Figure, Axes]:
    """A picture to draw into, of the width that all have."""
    figure = Picture(figsize=(WIDTH, height), layout="constrained")
    figure.set_label(title)
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    return figure, axes


def legend_below(axes: Axes, columns: int) -> None:
    """Under the picture, where no bar is; as many entries side by side as there are columns."""
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    figure.legend(loc="outside lower center", fontsize=7, frameon=False, ncols=columns)


Series = tuple[str, Sequence[float], str]
"""The label, the values and the colour of bars that belong together: one value for each name on the axis."""


def grouped_bars(axes: Axes, names: Sequence[str], series: Sequence[Series]) -> None:
    """Draw the bars of a name below each other, one bar for each of the series."""
    pitch = 0.8 / len(series)
    for number, (label, values, colour) in enumerate(series):
        places = [row + pitch * (number - (len(series) - 1) / 2) for row in range(len(names))]
        axes.barh(places, values, height=0.9 * pitch, color=colour, label=label)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()


def stacked_bars(axes: Axes, names: Sequence[str], series: Sequence[Series]) -> None:
    """Draw one bar for each name, in which each of the series is a part; series without any value are left out."""
    left = [0.0] * len(names)
    for label, values, colour in series:
        if any(values):
            axes.barh(names, values, left=left, color=colour, label=label)
            left = [start + value for start, value in zip(left, values, strict=True)]
    axes.invert_yaxis()


def svg(figure: Figure) -> str:
    """The picture as an <svg> element that a page holds as it is; its text stays text, and its label is read aloud."""
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "systolic"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    label = escape(str(figure.get_label()), quote=True)
    return text[text.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def bars(rates: Sequence[tuple[str, float]], what: str, pale: Collection[int] = ()) -> Figure:
    """One bar an alternative; names may come twice. pale: the bars that are there to be compared with."""
    figure, axes = blank(what, max(1.6, 0.6 + 0.3 * len(rates)))
    colours = [COLOURS["fill" if row in pale else "compute"] for row in range(len(rates))]
    axes.barh(range(len(rates)), [value for _, value in rates], color=colours)
    axes.set_yticks(range(len(rates)), [name for name, _ in rates])
    for row, (_, value) in enumerate(rates):
        axes.text(value, row, f" {value:,.1f}", va="center", fontsize=8)
    axes.invert_yaxis()
    return figure

"""The timeline plot: one lane per process, coloured by what the process does or waits for in each cycle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boards.errors import ChoiceError, FileAccessError, StateError
from host.whole_file import check_whole, write_whole
from systolic.trace.timing import Lane, ProcessTiming, RegionTiming, TraceTiming

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours that colour-blind readers can distinguish (Okabe and Ito). Work has the least conspicuous colour.
COLOURS = {
    "computes": "#56B4E9",
    "waits for input": "#F0E442",
    "waits for space": "#E69F00",
    "waits for DDR": "#D55E00",
}

NARROWEST_LEVEL = 40
"""A region wider than 1/40 of the plot has room for a horizontal name of about six letters."""

NARROWEST_NAMED = 150
"""A region wider than 1/150 of the plot has room for a vertical name."""


def shares(process: ProcessTiming, cycles: int) -> tuple[int, NDArray[np.float64]]:
    """Return the cycles per time bin, and the share of each bin in which a process computes or waits, by reason.

    The shares have the shape (4, bins), in the order of ``COLOURS``. In a bin, the sum of the shares is below 1 if the
    process ended in it or before it.

    Raises:
        StateError: The trace was solved without a timeline.
    """
    lane = process.lane
    if lane is None:
        raise StateError(f"process '{process.name}'", "has no lane", remedy="solve with timeline=True")
    bins = max(1, -(-cycles // lane.bin_cycles))
    starts = np.arange(bins) * lane.bin_cycles
    ended = cycles - process.idle
    alive = np.clip(ended - starts, 0, lane.bin_cycles)
    waits = np.array([_padded(part, bins) for part in _parts(lane)])
    width = np.minimum(lane.bin_cycles, cycles - starts).clip(1)
    parts = np.vstack([alive - waits.sum(axis=0), waits])
    return lane.bin_cycles, np.asarray(parts / width, dtype=np.float64)


def _parts(lane: Lane) -> tuple[tuple[int, ...], ...]:
    return lane.wait_input, lane.wait_space, lane.wait_memory


def _padded(part: tuple[int, ...], bins: int) -> NDArray[np.int64]:
    values = np.zeros(bins, dtype=np.int64)
    used = part[:bins]
    values[: len(used)] = used
    return values


def _lane_names(regions: tuple[RegionTiming, ...]) -> list[str]:
    """Return the process names for the lanes, in the order of the data flow; the top function is last."""
    ordered = sorted(regions, key=lambda region: region.top)
    return list(dict.fromkeys(process.name for region in ordered for process in region.processes))


def _draw_process(axes: Axes, process: ProcessTiming, cycles: int, start: int, row: int) -> None:
    from matplotlib.patches import StepPatch

    width, parts = shares(process, cycles)
    edges = np.append(start + np.arange(parts.shape[1]) * width, start + cycles)
    base = np.full(parts.shape[1], row + 0.9)  # the axis points down
    for share, colour in zip(parts, COLOURS.values(), strict=True):
        top = base - 0.8 * share
        # axes.stairs measures each of the thousands of edges; the limits of these axes are given.
        baseline: Any = base  # an array, though Matplotlib's types know numbers alone
        axes.add_artist(StepPatch(top, edges, baseline=baseline, fill=True, color=colour, linewidth=0))
        base = top


def _chosen(timing: TraceTiming, labels: Sequence[int] | None) -> tuple[RegionTiming, ...]:
    if labels is None:
        return timing.regions
    known = [region.label for region in timing.regions]
    for label in labels:
        if label not in known:
            raise ChoiceError("the label of a region", label, known)
    return tuple(region for region in timing.regions if region.label in labels)


def draw(
    timing: TraceTiming,
    labels: Sequence[int] | None = None,
    title: str = "",
    names: Mapping[int, str] | None = None,
    marks: Mapping[int, str] | None = None,
) -> Figure:
    """Draw a timeline of the regions with these labels, or of all regions, one after the other.

    Args:
        timing: The solved trace, with ``timeline=True``.
        labels: The labels of the regions to draw. None draws all.
        title: The title of the plot. "" gives the cycles and the clock.
        names: The names of labels, which are written above their regions.
        marks: The cycles to mark by a vertical line, with the text for each line.

    Raises:
        ChoiceError: No region has one of the labels.
    """
    from systolic.report.figures import Picture

    regions = _chosen(timing, labels)
    lanes = _lane_names(regions)
    figure = Picture(figsize=(12, 1.5 + 0.32 * len(lanes)), layout="constrained")
    axes = figure.add_subplot()
    start = 0
    for region in regions:
        for process in region.processes:
            _draw_process(axes, process, region.cycles, start, lanes.index(process.name))
        start += region.total
        axes.axvline(start, color="black", linewidth=0.4)
    _label(axes, lanes, start)
    _label_regions(axes, regions, start, names or {})
    _mark(axes, marks or {})
    text = title or f"{start:,} cycles at {timing.clock_mhz:g} MHz (target)"
    axes.set_title(text, loc="left", pad=30, fontsize=11)
    return figure


def _label(axes: Axes, lanes: list[str], end: int) -> None:
    from matplotlib.patches import Patch

    axes.set_xlim(0, max(end, 1))
    axes.set_ylim(len(lanes), 0)
    axes.set_yticks([row + 0.5 for row in range(len(lanes))], lanes)
    axes.set_xlabel("cycles")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.spines[["top", "right"]].set_visible(False)
    handles = [Patch(color=colour, label=name) for name, colour in COLOURS.items()]
    axes.legend(handles=handles, ncols=4, loc="upper right", bbox_to_anchor=(1, -0.05), frameon=False, fontsize=8)


def _label_regions(axes: Axes, regions: tuple[RegionTiming, ...], end: int, names: Mapping[int, str]) -> None:
    """Write each region's name above it, vertically if the region is narrow.

    A region that is narrower than the height of a letter has no name.
    """
    start = 0
    for region in regions:
        if len(regions) > 1 and not region.top and region.total > end / NARROWEST_NAMED:
            name = names.get(region.label, str(region.label))
            turned = 0 if region.total > end / NARROWEST_LEVEL else 90
            axes.text(start + region.total / 2, 0, name, ha="center", va="bottom", fontsize=7, rotation=turned)
        start += region.total


def _mark(axes: Axes, marks: Mapping[int, str]) -> None:
    for cycle, name in marks.items():
        axes.axvline(cycle, color="black", linewidth=0.8, linestyle="--")
        axes.text(cycle, 0, f"{name} ", ha="right", va="bottom", fontsize=7)


def save(figure: Figure, path: Path) -> None:
    """Write the figure to a .png, .svg or .pdf file that is either complete or absent.

    Raises:
        FileAccessError: The file cannot be written, or no format has this suffix.
    """
    with _refusal(path):
        write_whole(path, _picture(figure, path))


def check_picture(path: Path) -> None:
    """Raise the FileAccessError that ``save`` would raise. Call this before long work whose result is a plot."""
    from systolic.report.figures import Picture

    with _refusal(path):
        _picture(Picture(figsize=(1, 1)), path)
        check_whole(path)


def _picture(figure: Figure, path: Path) -> bytes:
    data = BytesIO()
    figure.savefig(data, format=path.suffix.lstrip(".") or None, dpi=150)
    return data.getvalue()


@contextmanager
def _refusal(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise FileAccessError(
            str(path), f"cannot be written: {reason}", "picture", remedy="choose another FILE.png"
        ) from error

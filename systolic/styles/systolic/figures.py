"""The figures of schedules: roofline, cycles, buffers and Pareto front."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import atan, degrees
from typing import Any

from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

from scheduler.systolic.model.cycles import PARTS
from systolic.report.figures import COLOURS, WIDTH, Picture, blank, grouped_bars, legend_below, stacked_bars
from systolic.styles.systolic.priced import PricedSchedule


def roofline(mapping: PricedSchedule) -> Figure:
    """Draw each layer's GOPS against its operations per DDR byte, below the limits of the array and the DDR."""
    figure, axes = blank("Roofline (modelled)")
    clock = mapping.clock_mhz * 1e6
    peak = 2 * mapping.schedule.array.macs_per_cycle * clock / 1e9
    memory = mapping.cost.ddr.milli_bytes / 1000 * clock / 1e9
    points = [
        (2 * layer.shape.macs / layer.traffic.total, 2 * layer.shape.macs * clock / layer.total / 1e9, layer.shape.name)
        for layer in mapping.cost.layers
        if layer.shape.macs
    ]
    ridge = peak / memory
    low, high = min(ridge, *(p[0] for p in points)) / 3, max(ridge, *(p[0] for p in points)) * 3
    axes.plot([low, ridge, high], [low * memory, peak, peak], color="#333333", lw=1.2)
    above = 1.15 * memory
    along: dict[str, Any] = {
        "rotation": degrees(atan(above)),
        "rotation_mode": "anchor",
        "transform_rotates_text": True,
    }
    roofs = (
        axes.text(high, peak * 1.06, f"array {peak:,.0f} GOPS", ha="right", fontsize=8),
        axes.text(low * 1.1, low * 1.1 * above, f"DDR {memory:.1f} GB/s", fontsize=8, **along),
    )
    line = {"arrowstyle": "-", "lw": 0.4, "color": "#999999"}
    names = []
    for x, y, name in sorted(points):
        axes.plot(x, y, "o", color=COLOURS["compute"], ms=5)
        place: dict[str, Any] = {"xy": (x, y), "xytext": (4, 0), "textcoords": "offset points"}
        names.append(axes.annotate(name, **place, fontsize=7, arrowprops=line, in_layout=False))
    axes.set(xscale="log", yscale="log", xlabel="operations per DDR byte", ylabel="GOPS")
    _place(names, roofs)
    return figure


def _place(names: Sequence[Annotation], labels: Sequence[Text]) -> None:
    """Move each layer's name so that it overlaps no label and no earlier name, and stays within the axes.

    Positions below the point are preferred to positions above it, and near positions to far ones.
    """
    # Offsets in points, in the order of preference.
    steps = [-10 - 10 * step for step in range(20)] + [8 + 10 * step for step in range(20)]
    figure, axes = names[0].get_figure(root=True), names[0].axes
    assert figure is not None
    assert axes is not None
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in labels]
    for name in names:
        box = Text.get_window_extent(name).padded(2)
        spots = [box.translated(0, step * figure.dpi / 72) for step in steps]
        free = [all(not spot.overlaps(label_box) for label_box in boxes) for spot in spots]
        within = [axes.bbox.y0 <= spot.y0 and spot.y1 <= axes.bbox.y1 for spot in spots]
        best = max(range(len(steps)), key=lambda number: (free[number], within[number], -number))
        name.set_position((4, steps[best]))
        boxes.append(spots[best])


def cycles(mapping: PricedSchedule) -> Figure:
    """Draw the modelled cycles of each layer, stacked: computing, fill, drain and each kind of waiting."""
    layers = mapping.cost.layers
    batch = mapping.schedule.batch
    whole = f", {batch} frames" if batch > 1 else ""
    figure, axes = blank(f"Cycles per layer{whole} (modelled)", max(2.0, 0.9 + 0.3 * len(layers)))
    names = [layer.shape.name for layer in layers]
    parts = sorted(PARTS, key=lambda part: part != "compute")
    values = {part: [int(getattr(layer.cycles, part)) for layer in layers] for part in parts}
    stacked_bars(axes, names, [(part, values[part], COLOURS[part]) for part in parts])
    axes.set_xlabel("cycles")
    legend_below(axes, len(PARTS))
    return figure


def buffers(mapping: PricedSchedule) -> Figure:
    """Draw the share of the row, weight, sum and map buffer's depth that each layer uses."""
    array, layers = mapping.schedule.array, mapping.cost.layers
    figure, axes = blank("Buffer occupancy (share of the depth)", max(2.2, 0.9 + 0.42 * len(layers)))
    shades = [("row_depth", COLOURS["rows"]), ("weight_depth", COLOURS["weights"]), ("kept_depth", COLOURS["saver"])]
    shades += [("map_depth", COLOURS["ddr"])] if array.map_depth else []
    shares = {name: [100 * getattr(layer.needs, name) / getattr(array, name) for layer in layers] for name, _ in shades}
    depths = [(f"{name} {getattr(array, name)}", shares[name], colour) for name, colour in shades]
    grouped_bars(axes, [layer.shape.name for layer in layers], depths)
    axes.set(xlabel="% used", xlim=(0, 105))
    legend_below(axes, len(shades))
    return figure


def pareto(points: Sequence[PricedSchedule], chosen: PricedSchedule | None = None) -> Figure:
    """Draw the Pareto front: frames/s against DSP, against BRAM36 and against DDR bytes per frame.

    Args:
        points: The schedules of the front, the fastest first. Only the first one is labelled with its array.
        chosen: A schedule to mark with a square.
    """
    figure = Picture(figsize=(WIDTH, 2.9), layout="constrained")
    kinds: tuple[tuple[str, Callable[[PricedSchedule], float]], ...] = (
        ("DSP", lambda e: e.usage.dsp),
        ("BRAM36", lambda e: e.usage.bram36),
        ("DDR MB per frame", _megabytes),
    )
    for number, (name, value) in enumerate(kinds, 1):
        axes = figure.add_subplot(1, 3, number)
        axes.plot([value(e) for e in points], [e.cost.frames_per_second for e in points], "o", ms=4, color="#2f6fb0")
        for e in points[:1]:
            place: dict[str, Any] = {"xytext": (5, 2), "textcoords": "offset points"}
            axes.annotate(str(e.schedule.array), (value(e), e.cost.frames_per_second), fontsize=7, **place)
        if chosen is not None:
            axes.plot(value(chosen), chosen.cost.frames_per_second, "s", ms=6, color="#c8553d")
        axes.set_xlabel(name, fontsize=8)
        axes.locator_params(axis="x", nbins=3)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
        if number == 1:
            axes.set_ylabel("frames/s (modelled)", fontsize=8)
    return figure


def _megabytes(mapping: PricedSchedule) -> float:
    return mapping.cost.bytes_per_frame / 1e6


OF_MAPPING: Mapping[str, Callable[[PricedSchedule], Figure]] = {
    "cycles": cycles,
    "roofline": roofline,
    "buffers": buffers,
}
"""The pictures of a whole schedule by name, in the order in which a page shows them."""

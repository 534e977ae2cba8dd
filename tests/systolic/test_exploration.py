"""Test the reports of schedules: tables, JSON, figures and the HTML page, and the losses of the runner-up."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from boards.board import load
from boards.errors import (
    ChoiceError,
    DoesNotFitError,
    InvalidValueError,
    MissingToolError,
    RangeError,
    ToolError,
)
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.model.cost import cost
from scheduler.systolic.model.cycles import PARTS
from scheduler.systolic.search.space import pin
from scheduler.systolic.tiling import ORDERS
from systolic.loading import load_model
from systolic.model import Calibration, quantise_model, sample_pictures
from systolic.report.figures import svg
from systolic.styles.systolic import figures
from systolic.styles.systolic.comparison import SystolicComparison
from systolic.styles.systolic.exploration import compare, explore, front, pareto_front
from systolic.styles.systolic.mapping import SystolicMapping, price
from systolic.styles.systolic.options import Alternatives, SystolicOptions, geometry_pins
from systolic.styles.systolic.report import shown_layers
from systolic.styles.systolic.tiling_picture import tiling, tiling_words
from systolic.styles.systolic.workers import workers
from tests.support.cases import cases
from tests.support.errors import raises, raises_among
from tests.support.pages import one_whole_page, readable
from tests.support.quantised import Builder, tiny_yolo
from tests.support.schedules import first_fit
from tests.support.searches import space_of

ZCU104 = load("zcu104")


@pytest.fixture(scope="module")
def network() -> QuantizedNetwork:
    """Return a quantised network of three convolutions."""
    return Builder(3, 16, 16).conv(16, 3).pool().conv(32, 3).conv(8, 1).network("small")


@pytest.fixture(scope="module")
def explored(network: QuantizedNetwork) -> SystolicMapping:
    """Return the network's best schedule for one array."""
    return explore(network, ZCU104, 300, SystolicOptions(array="8x16x16"))


@pytest.fixture(scope="module")
def comparison(network: QuantizedNetwork) -> SystolicComparison:
    """Return the comparison of two boards and two arrays, of which one pair does not fit."""
    return compare({8: network}, Alternatives((ZCU104, load("ultra96-v2")), ("8x16x16", "4x8x8"), (1,), (300,)))


def test_mapping_text_has_one_line_per_layer_and_totals(explored: SystolicMapping) -> None:
    text = explored.text()
    for layer in explored.cost.layers:
        assert re.search(rf"(?m)^{layer.shape.name} .*{layer.total:,}", text)
    assert f"modelled: {explored.cost.cycles:,} cycles per frame" in text
    assert re.search(r"(?m)^DSP +[\d,]+ +1,728 ", text)
    assert re.search(r"(?m)^convor ", text)
    assert "proven best of" in text


def test_mapping_values_are_json_and_add_up(explored: SystolicMapping) -> None:
    values = json.loads(json.dumps(explored.values()))
    assert values["cycles"] == sum(layer["cycles"] for layer in values["layers"])
    for layer in values["layers"]:
        assert sum(layer["parts"].values()) == layer["cycles"]
        assert set(layer["parts"]) == set(PARTS)
    assert values["frames_per_second"] == pytest.approx(300e6 / values["cycles"])
    assert values["source"] == "modelled"


def test_runners_up_report_their_loss(explored: SystolicMapping) -> None:
    for why in explored.runners_up:
        assert re.search(
            r"column tile\(s\).*: (\+[\d,]+ cycles \(\w+ \+[\d,]+\)|as fast), [+-][\d,]+ bytes|no other way", why
        )


def test_explore_of_saved_schedule_gives_the_same_cost(explored: SystolicMapping, network: QuantizedNetwork) -> None:
    again = explore(network, ZCU104, 300, SystolicOptions(explored.to_json()))
    assert again.cost.cycles == explored.cost.cycles
    assert again.proof is None


def test_explore_with_unavailable_clock_is_refused(network: QuantizedNetwork) -> None:
    with raises(InvalidValueError, what="the clock in MHz", got=290, nearest=[250.0, 300.0]):
        explore(network, ZCU104, 290)
    with raises(RangeError, what="the clock in MHz", got=-300, low=0):
        explore(network, ZCU104, -300)


def test_explore_with_unknown_objective_raises_choice_error(network: QuantizedNetwork) -> None:
    with raises(ChoiceError, what="the objective", got="speed"):
        explore(network, ZCU104, 300, SystolicOptions(objective="speed"))


@cases("text", ["13x16", "axbxc", "13x16x16x2", ""])
def test_geometry_pins_require_three_numbers(text: str) -> None:
    with raises(InvalidValueError, what="an array", got=text):
        geometry_pins(text)


@pytest.mark.engine
def test_compare_shows_an_error_row_if_nothing_fits(comparison: SystolicComparison) -> None:
    fits = [row.mapping is not None for row in comparison.rows]
    assert fits == [True, True, False, True]
    error = comparison.rows[2].error
    assert isinstance(error, DoesNotFitError)
    assert (error.resource, error.need, error.have) == ("DSPs", 1024, 349)  # 97 % of the board's 360
    assert "a design may take 97% DSP, 80% LUT, 95% BRAM, 95% URAM of the board" in error.remedy
    assert comparison.rows[2].reason == str(error)
    assert "ultra96-v2, 8x16x16, int8" in comparison.text()


@pytest.mark.engine
def test_compare_lists_baselines_below_each_row(comparison: SystolicComparison) -> None:
    """Expect the baselines after each row that fits, with the cycles and bytes of its own array, and at the start of
    the page."""
    lines, page = comparison.text().splitlines(), comparison.page()
    for row in comparison.rows:
        at = next(i for i, line in enumerate(lines) if line.startswith(row.asked))
        beside = lines[at + 1 : at + 4]
        if row.mapping is None:
            assert not any(line.startswith("  ") for line in beside[:1])
            continue
        assert [line.split()[0] for line in beside] == ["convor", "scale-sim-os", "naive"]
        for one, line in zip(row.mapping.baselines, beside, strict=True):
            assert f" {row.mapping.schedule.array} " in line
            assert f" {one.cycles:,} " in line
            assert f" {row.mapping.clock_mhz * 1e6 / one.cycles:.2f} " in line
            assert f" {one.bytes / 1e6:.2f} " in line
            assert line.endswith(one.source)
    assert page.index("convor") < page.index("</table>")


def test_pareto_front_is_sorted_and_decreasing(network: QuantizedNetwork) -> None:
    small = replace(pin(space_of(network, ZCU104), lanes=16, columns=16), rows=(4, 7, 8, 12, 13))
    points = pareto_front(network, ZCU104, ddr_timing(ZCU104, 300), small)
    rates, dsps = [p.cost.frames_per_second for p in points], [p.usage.dsp for p in points]
    assert rates == sorted(rates, reverse=True)
    assert dsps == sorted(dsps, reverse=True)
    assert len(points) >= 3


@pytest.mark.engine
def test_pareto_front_reports_progress(network: QuantizedNetwork) -> None:
    told: list[str] = []
    options = SystolicOptions(pins={"lanes": 16, "columns": 16})
    searched = front(network, ZCU104, 300, options, told.append)
    said = [text for text in told if text.startswith("searching the front, ")]
    assert said[0] == f"searching the front, 0 of {len(said)} geometries"
    assert said[-1] == f"searching the front, {len(said) - 1} of {len(said)} geometries"
    assert "that no other schedule of a coarse search beats" in searched.text()


@pytest.mark.engine
def test_pareto_front_drops_dominated_geometries() -> None:
    """Compute the expected front from each number of rows alone. A point is dropped if another has no more cycles and
    no more DSPs."""
    model = load_model("shapes")
    network = quantise_model(model, Calibration(sample_pictures()[:1]))
    pinned, ddr = pin(space_of(network, ZCU104), lanes=16, columns=16), ddr_timing(ZCU104, 300)

    def coarse(*rows: int) -> list[tuple[int, int]]:
        found = pareto_front(network, ZCU104, ddr, replace(pinned, rows=rows))
        return [(point.cost.cycles, point.usage.dsp) for point in found]

    rows = (9, 12, 13)
    alone = [point for number in rows for point in coarse(number)]
    best = [
        point
        for point in alone
        if not any(other != point and other[0] <= point[0] and other[1] <= point[1] for other in alone)
    ]
    assert len(best) < len(alone), "one geometry must be dominated, or the test shows nothing"
    assert coarse(*rows) == sorted(best)


@pytest.mark.engine
def test_compare_counts_batches_per_frame() -> None:
    """Dense layers take less time and traffic per frame if more frames share their weights. The row counts per
    frame."""
    dense = Builder(3, 8, 8).conv(16, 3).pool().dense(256).dense(128).network("dense")
    found = compare({8: dense}, Alternatives((ZCU104,), ("8x16x16",), (1, 4, 8), (300,)))
    assert [row.asked for row in found.rows] == [f"zcu104, 8x16x16, int8, batch {batch}" for batch in (1, 4, 8)]
    priced = [row.mapping.cost for row in found.rows if row.mapping]
    rates = [one.frames_per_second for one in priced]
    assert rates == sorted(rates)
    assert rates[2] > 2 * rates[0]
    for row, one in zip(found.rows, priced, strict=True):
        assert row.mapping is not None
        line = next(line for line in found.text().splitlines() if line.startswith(row.asked))
        assert f" {one.cycles_per_frame:,} " in line
        assert f" {one.bytes_per_frame / 1e6:,.2f} " in line
        assert row.mapping.values()["frames_per_second"] == pytest.approx(300e6 * one.batch / one.cycles)
    values = json.loads(json.dumps(found.values()))
    assert [row["schedule"]["batch"] for row in values["rows"]] == [1, 4, 8]
    page = found.page()
    assert "batches of 8 frames</h2>" in page
    assert "Cycles per layer, 4 frames (modelled)" in page
    with raises(RangeError, what="the number of frames in a batch", got=65, low=1, high=64):
        Alternatives((ZCU104,), batches=(2, 65))


@pytest.mark.engine
def test_pareto_front_fuses_residual_adds() -> None:
    residual = Builder(3, 12, 12).conv(16, 3).conv(16, 3).conv(16, 3).add(1, 3, slope=0).conv(8, 1).network("residual")
    points = pareto_front(residual, ZCU104, ddr_timing(ZCU104, 300))
    assert {point.schedule.array.added_maps for point in points} == {1}
    asked = front(residual, ZCU104, 300).points
    assert [point.schedule.array for point in points] == [point.schedule.array for point in asked]
    assert [point.cost.cycles for point in points] == [point.cost.cycles for point in asked]


@pytest.mark.engine
def test_pareto_front_of_batch_counts_per_frame() -> None:
    dense = Builder(3, 8, 8).conv(16, 3).pool().dense(256).dense(128).network("dense")
    ddr = ddr_timing(ZCU104, 300)
    spaces = {batch: pin(space_of(dense, ZCU104, batch=batch), lanes=16, columns=16) for batch in (1, 8)}
    alone, batch = (pareto_front(dense, ZCU104, ddr, space, count) for count, space in spaces.items())
    assert {one.schedule.batch for one in batch} == {8}
    assert batch[0].cost.frames_per_second > 2 * alone[0].cost.frames_per_second
    (axes, _, traffic) = figures.pareto(batch).axes
    assert axes.lines[0].get_ydata()[0] == batch[0].cost.frames_per_second  # type: ignore[index]
    assert traffic.lines[0].get_xdata()[0] == batch[0].cost.bytes_per_frame / 1e6  # type: ignore[index]


def test_workers_give_an_executor() -> None:
    with workers() as none, workers(2) as two:
        assert none is None
        assert two is not None
        assert two.submit(abs, -3).result() == 3


def test_workers_without_dask_name_the_missing_package() -> None:
    if "distributed" in sys.modules or shutil.which("dask"):
        pytest.skip("Dask is installed here")
    with pytest.raises((MissingToolError, ToolError)), workers(dask="tcp://127.0.0.1:1"):
        pass


# --- figures and pages ---------------------------------------------------------------------------------------------

DRAWINGS: dict[str, Callable[[SystolicMapping], Figure]] = {
    "roofline": figures.roofline,
    "cycles": figures.cycles,
    "buffers": figures.buffers,
    "tiling": lambda e: tiling(e, 0),
    "pareto": lambda e: figures.pareto([e], e),
}


@cases("name", DRAWINGS)
def test_figure_is_an_svg(name: str, explored: SystolicMapping) -> None:
    text = svg(DRAWINGS[name](explored))
    assert text.startswith("<svg")
    assert text.rstrip().endswith("</svg>")


@cases("name", ["cycles", "buffers"])
def test_figure_legend_covers_no_bar(name: str) -> None:
    """Draw a first bar as long as the axes, which a legend placed by matplotlib would cover."""
    network = Builder(3, 32, 32).conv(64, 3).conv(64, 3).conv(8, 1).network()
    figure = DRAWINGS[name](price(first_fit(network, Array(4, 8, 8)), ZCU104, ddr_timing(ZCU104, 300)))
    figure.draw_without_rendering()
    (axes,) = figure.axes
    names = [legend.get_window_extent() for legend in (axes.get_legend(), *figure.legends) if legend]
    assert len(names) == 1
    assert [bar for bar in axes.patches if names[0].overlaps(bar.get_window_extent())] == []
    assert not names[0].overlaps(axes.bbox)


def test_roofline_has_one_point_per_layer_below_the_roof(explored: SystolicMapping) -> None:
    (axes,) = figures.roofline(explored).axes
    roof = np.asarray(axes.lines[0].get_ydata())
    points = [np.asarray(line.get_ydata())[0] for line in axes.lines[1:]]
    assert len(points) == len(explored.cost.layers)
    assert max(points) <= max(roof)


def test_tiling_figure_covers_the_map(explored: SystolicMapping) -> None:
    for layer, priced in enumerate(explored.cost.layers):
        _, result, _ = tiling(explored, layer).axes
        patches = [patch for patch in result.patches if isinstance(patch, Rectangle)]
        covered = sum(patch.get_width() * patch.get_height() for patch in patches)
        assert covered == priced.shape.out_width * priced.shape.out_height


def test_tiling_figure_is_described_in_words(explored: SystolicMapping) -> None:
    """Expect the schedule's numbers in the words, which are the figure's label for a screen reader."""
    priced = explored.cost.layers[0]
    words = tiling_words(explored, 0)
    assert f"{priced.traffic.weights:,} bytes" in words
    assert f"{priced.traffic.maps_read:,} bytes" in words
    assert escape(words, quote=True) in svg(tiling(explored, 0))
    assert 'aria-label="Roofline (modelled)"' in svg(figures.roofline(explored))


def test_page_is_self_contained(comparison: SystolicComparison, explored: SystolicMapping) -> None:
    text = comparison.page((explored,))
    one_whole_page(text)
    assert text.count("<svg") >= 6


def test_page_escapes_names() -> None:
    hostile = Builder(3, 8, 8).conv(8, 3).network("<img src=x onerror=alert(1)>")
    text = explore(hostile, ZCU104, 300, SystolicOptions(array="4x8x8")).page()
    assert "<img" not in text
    assert "&lt;img src=x" in text


def test_notebook_html_shows_table_and_figure(explored: SystolicMapping, comparison: SystolicComparison) -> None:
    assert "<table>" in explored._repr_html_()
    assert "<svg" in comparison._repr_html_()


@pytest.mark.engine
def test_page_is_readable_in_chromium(
    tmp_path: Path, comparison: SystolicComparison, explored: SystolicMapping
) -> None:
    """Check the page at the widths of a telephone and a laptop. Labels must not overlap, even if layers are alike."""
    compared = readable(comparison.page(), tmp_path)
    assert compared == 1 + sum(pictures_of(row.mapping) for row in comparison.rows if row.mapping)
    assert readable(explored.page(), tmp_path) == pictures_of(explored)
    alike = Builder(3, 16, 16).conv(8, 3)
    for _ in range(6):
        alike = alike.conv(8, 3)
    same = explore(alike.network(), ZCU104, 300)
    assert readable(same.page(), tmp_path) == pictures_of(same)


def pictures_of(mapping: SystolicMapping) -> int:
    """Return the number of figures on the page of a mapping."""
    return len(figures.OF_MAPPING) + len(shown_layers(mapping))


@pytest.mark.engine
def test_page_of_large_network_is_readable(tmp_path: Path) -> None:
    """Use a network as deep as YOLOv2's sequence of convolutions. Many of its points in the roofline coincide."""
    net = Builder(3, 208, 208).conv(32, 3).pool().conv(64, 3).pool()
    for channels, pairs in ((128, 1), (256, 1), (512, 2), (1024, 2)):
        for _ in range(pairs):
            net = net.conv(channels, 3).conv(channels // 2, 1)
        net = net.conv(channels, 3)
        net = net.pool() if channels < 1024 else net.conv(1024, 3).conv(1024, 3).conv(425, 1)
    network = net.network("large")
    array = Array(13, 16, 16, row_depth=8192, weight_depth=16384, kept_depth=4096, channel_tiles=64)
    large = price(first_fit(network, array), ZCU104, ddr_timing(ZCU104, 300))
    assert len(large.cost.layers) == 21
    assert readable(large.page(), tmp_path) == pictures_of(large)


@pytest.mark.engine
def test_page_of_every_order_is_readable(tmp_path: Path) -> None:
    """Use many row tiles and narrow column tiles, in all three orders. A wide page shows two tilings next to each
    other."""
    small = Builder(3, 96, 96).conv(16, 3).conv(200, 3).network()
    for order in ORDERS:
        found = explore(small, ZCU104, 300, SystolicOptions(array="4x8x8", order=order))
        assert {layer.tiling.order for layer in found.cost.layers} == {order}
        assert readable(found.page(), tmp_path) == pictures_of(found)


def test_explore_with_unfitting_order_names_the_order() -> None:
    """Use a layer with 1024 × 1024 × 3 × 3 weights, which exceed a board's memory."""
    resource = "steps of the weight buffer"
    with raises_among(DoesNotFitError, where="conv13", resource=resource) as caught:
        explore(tiny_yolo(208), ZCU104, 300, SystolicOptions(array="4x8x8", order="weights-resident"))
    assert caught.value.subject.endswith("in the order weights-resident")


@pytest.mark.engine
def test_explore_with_rate_names_the_lowest_clock() -> None:
    found = explore(
        tiny_yolo(96),
        ZCU104,
        300,
        SystolicOptions(objective="resources", fps=30, array="3x8x8", pins={"map_ports": 1}),
    )
    assert found.holds is not None
    clocks = [clock.mhz for clock in ZCU104.clocks()]
    below = clocks[clocks.index(found.holds.from_mhz) - 1]
    here, slower = (cost(found.schedule, ddr_timing(ZCU104, mhz)) for mhz in (found.holds.from_mhz, below))
    assert here.frames_per_second >= 30 > slower.frames_per_second
    assert f"holds 30 frames/s from {found.holds.from_mhz:g} MHz on, modelled" in found.text()
    assert found.values()["holds"] == {"frames_per_second": 30, "from_mhz": found.holds.from_mhz}


@pytest.mark.engine
def test_explore_reports_maps_on_chip() -> None:
    network = Builder(3, 20, 24).conv(16, 3).pool().conv(24, 3).conv(8, 1).network()
    free, in_ddr = (
        explore(network, ZCU104, 300, SystolicOptions(array="4x8x8", pins={"map_depth": depth})) for depth in (None, 0)
    )
    assert [layer["on_chip"] for layer in free.values()["layers"]] == [True, True, False]
    assert not any(layer["on_chip"] for layer in in_ddr.values()["layers"])
    assert "map buffers" in free.values()["placement"]
    assert "map buffers" not in in_ddr.values()["placement"]
    assert "map buffers in " in free.text()
    shown = [line.split() for line in free.text().splitlines() if re.match(r"conv\d +[a-z]", line)]
    assert ["on chip" in " ".join(line) for line in shown] == [True, True, False]
    assert f"map_depth {free.schedule.array.map_depth}" in legend(figures.buffers(free))
    assert len(legend(figures.buffers(in_ddr))) == 3


def legend(figure: Figure) -> list[str]:
    """Return the texts of a figure's legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]

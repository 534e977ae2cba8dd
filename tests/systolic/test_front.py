"""Test the Pareto front and the sweeps of a comparison as commands."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from PIL import Image

from boards.errors import DoesNotFitError
from tests.support.command_line import call, refused
from tests.support.golden_designs import CFG
from tests.support.pages import one_whole_page, readable

SMALL = ("--seed", 1, "--board", "pynq-z2")


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """Write a small network and return its cfg file."""
    (tmp_path / "tiny.cfg").write_text(CFG)
    return tmp_path / "tiny.cfg"


@pytest.mark.engine
def test_pareto_points_do_not_dominate_each_other(network: Path, tmp_path: Path) -> None:
    shown, page = tmp_path / "front.png", tmp_path / "front.html"
    asked = ("pareto", network, *SMALL, "--clock", 100, "--dsp-share", 0.5, "--ddr-gbps", 1.5)
    done = call(*asked, "--picture", shown, "--report", page, "--json", "-")
    assert done.code == 0, done.error
    values = done.json
    points = [(point["frames_per_second"], point["usage"]["dsp"]) for point in values["points"]]
    assert len(points) > 2
    assert points == sorted(points, reverse=True)
    assert all(fps > slower and dsp > fewer for (fps, dsp), (slower, fewer) in pairwise(points))
    assert max(dsp for _, dsp in points) <= 110
    assert (values["ddr"]["gbps"], values["board"], values["source"]) == (1.5, "pynq-z2", "modelled")
    assert Image.open(shown).size[0] > 300
    one_whole_page(page.read_text("utf-8"))
    assert readable(page.read_text("utf-8"), tmp_path) == 1
    text = call(*asked).out
    front = f"{len(points)} schedules that no other schedule of a coarse search beats in both frames/s and DSPs"
    assert f"{front}, modelled" in text
    assert len(re.findall(r"(?m)^\d+×\d+×\d+ ", text)) == len(points)


def test_pareto_with_too_large_array_is_refused(network: Path) -> None:
    done = call("pareto", network, *SMALL, "--array", "16x16x16")
    refused(done, DoesNotFitError, resource="DSPs", need=2048, have=213)
    assert "97% DSP" in done.error


@pytest.mark.engine
def test_compare_sweeps_clocks_and_ddr_rates(network: Path, tmp_path: Path) -> None:
    page = tmp_path / "compare.html"
    sweep = ("--clock", 100, "--clock", 200, "--ddr-gbps", 0.2, "--ddr-gbps", 2)
    done = call("compare", network, *SMALL, "--array", "4x8x8", *sweep, "--report", page, "--json", "-")
    assert done.code == 0, done.error
    rows = done.json["rows"]
    assert [row["asked"].split(", ", 3)[3] for row in rows] == [
        "100 MHz, 0.2 GB/s",
        "100 MHz, 2 GB/s",
        "200 MHz, 0.2 GB/s",
        "200 MHz, 2 GB/s",
    ]
    rates = [row["schedule"]["frames_per_second"] for row in rows]
    assert rates[0] < rates[1] < rates[3]
    assert rates[0] <= rates[2] < rates[3]
    text = page.read_text("utf-8")
    one_whole_page(text)
    chart = text[text.index("<svg") : text.index("</svg>")]
    assert chart.count(">convor<") == len(rows)  # each row has its baselines

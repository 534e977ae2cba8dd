"""The live display of a notebook: the newest picture, and the frame rate of the last second."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import numpy as np
from PIL import Image

from boards.errors import UnsupportedError
from host.vision.detection import Detection
from host.vision.frame import Result, StageSpan, StageTiming
from host.vision.live import Page, _shown, show
from host.vision.placement import Placement
from tests.support.errors import raises


def result(index: int, label: str = "car") -> Result:
    picture = np.full((120, 160, 3), 7 * index, np.uint8)
    boxes = (Detection(label, 0.9, (20.0, 20.0, 90.0, 90.0)), Detection(label, 0.8, (40.0, 40.0, 150.0, 110.0)))
    timing = StageTiming((StageSpan("resize", 0.0, 0.001), StageSpan("decode", 0.003, 0.004)))
    return Result(picture, Placement(160, 120, 32, 32, 0, 0, 32, 32), (), boxes, timing, (label,), index)


class Cell:
    """A notebook's cell that keeps every page that it displays."""

    def __init__(self) -> None:
        self.pages: list[Page] = []

    def update(self, page: Page) -> None:
        self.pages.append(page)


def shown(frames: int, refresh: float, step: float) -> list[Page]:
    """Display frames that follow each other every ``step`` seconds of the test's own clock, and return the pages."""
    cell, ticks = Cell(), count()

    def results() -> Iterator[Result]:
        yield from (result(index) for index in range(frames))

    indices = [seen.index for seen in _shown(results(), cell, refresh, lambda: step * next(ticks))]
    assert indices == list(range(frames)), "every result must be passed on"
    return cell.pages


def test_show_pages_keep_the_refresh_interval_and_the_last() -> None:
    assert [page.result.index for page in shown(10, refresh=0.25, step=0.125)] == [0, 2, 4, 6, 8, 9]
    assert [page.result.index for page in shown(9, refresh=0.25, step=0.125)] == [0, 2, 4, 6, 8]
    assert len(shown(7, refresh=0, step=0.125)) == 7


def test_show_frame_rate_is_of_the_last_second() -> None:
    pages = shown(30, refresh=0, step=0.125)
    assert [page.frames_per_second for page in pages[:3]] == [0.0, 8.0, 8.0]
    assert pages[-1].frames_per_second == 8.0


def test_page_of_a_result_has_picture_and_labels() -> None:
    html = Page(result(3, "<b>cat</b>"), 12.34)._repr_html_()
    assert "<b>12.3 frames/s</b>" in html
    assert "frame 3, latency 4.0 ms" in html
    assert "<li>2 × &lt;b&gt;cat&lt;/b&gt;</li>" in html
    match = re.search(r"base64,([^\"]+)", html)
    assert match is not None
    image = Image.open(io.BytesIO(base64.b64decode(match[1])))
    assert image.size == (160, 120)
    assert np.abs(np.asarray(image).astype(int) - np.asarray(result(3, "<b>cat</b>").draw()).astype(int)).mean() < 12


def test_result_is_printed_in_one_line() -> None:
    assert repr(result(3)) == "Result(frame 3, 160 × 120: car 90%, car 80%)"
    many = replace(result(0), detections=result(0).detections * 4)
    assert repr(many) == "Result(frame 0, 160 × 120: car 90%, car 80%, car 90%, car 80%, car 90% and 3 more)"
    assert repr(replace(many, detections=())) == "Result(frame 0, 160 × 120: nothing)"


def test_show_outside_a_notebook_names_the_alternative() -> None:
    with raises(UnsupportedError, subject="show() outside a notebook"):
        show([result(0)])

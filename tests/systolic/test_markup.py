"""Test the HTML for notebooks: names of layers, files and streams from an untrusted folder are shown as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from host.check import Check, LayerCheck
from host.contract.manifest import read_manifest
from host.vision.frame import Measured
from systolic.trace.report import FifoDepths
from tests.support.cases import cases

GOLDEN = Path(__file__).parents[1] / "golden"
HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(2)>"
HARMLESS = {"div", "p", "b", "table", "tr", "th", "td"}


class Tags(HTMLParser):
    """The names of all elements in a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)


def checked() -> Check:
    """Return a check of the golden design whose first layer has a hostile name and a mismatch."""
    layer = replace(read_manifest(GOLDEN / "systolic" / "design").layers[0], name=HOSTILE, source=HOSTILE)
    return Check(HOSTILE, (LayerCheck(layer, 10, 1, (0, 0, 0), 1, 2),))


SHOWN: dict[str, Callable[[], Check | Measured | FifoDepths]] = {
    "a layer that differs": checked,
    "a check that an error ended": lambda: Check(HOSTILE, (), HOSTILE),
    "stages of a stream": lambda: Measured(2, 1.0, {HOSTILE: 0.5}, 1.0, HOSTILE),
    "advised FIFOs": lambda: FifoDepths(least={HOSTILE: 2}, declared={HOSTILE: 4}, cycles=1, best_cycles=1),
}


@cases("shown", SHOWN)
def test_html_escapes_hostile_names(shown: str) -> None:
    html = SHOWN[shown]()._repr_html_()
    assert Tags(html).names <= HARMLESS
    assert "&lt;script&gt;" in html

"""A report as an HTML parser reads it, and as Chromium shows it on a telephone and on a laptop."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest


class Reader(HTMLParser):
    """A parser that rejects scripts.

    Attributes:
        open: The elements that are not closed.
        asks: The addresses that the page would load.
    """

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.asks: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br", "path", "use", "link", "img"):
            self.open.append(tag)
        self.asks += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        assert tag != "script"

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass


def one_whole_page(text: str) -> None:
    """Assert that every element is closed, and that the page loads only its own parts."""
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert all(asked.startswith("#") for asked in reader.asks)
    assert 'name="viewport"' in text


FRAME = """<!DOCTYPE html><iframe width="WIDTH" height="844" frameborder="0"></iframe><pre></pre><script>
const frame = document.querySelector("iframe");
frame.onload = () => {
  const all = (what, within = frame.contentDocument) => [...within.querySelectorAll(what)];
  const box = (e) => e.getBoundingClientRect();
  const heights = (what) => all(what).map((e) => box(e).height).filter((h) => h > 0);
  const scale = (t) => box(t.ownerSVGElement).width / t.ownerSVGElement.viewBox.baseVal.width;
  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.3 * Math.min(a.height, b.height);
  const outside = (a, b) => a.left < b.left - 1 || a.right > b.right + 1
    || a.top < b.top - 1 || a.bottom > b.bottom + 1;
  const overlaps = (svg) => {
    const labels = all("text", svg).map((t) => [t.textContent, box(t)]);
    return labels.flatMap(([text, a], i) => labels.slice(i + 1).filter(([, b]) => meet(a, b)).map(([o]) => [text, o]));
  };
  document.querySelector("pre").textContent = JSON.stringify({
    wide: frame.contentDocument.documentElement.scrollWidth, pictures: all("svg").length,
    row: Math.max(...heights("tr")),
    text: Math.min(...all("svg text").map((t) => parseFloat(getComputedStyle(t).fontSize) * scale(t))),
    overlaps: all("svg").flatMap(overlaps),
    clipped: all("svg text").filter((t) => outside(box(t), box(t.ownerSVGElement))).map((t) => t.textContent),
    moved: all("svg, table").filter((e) => box(e).width > box(e.parentElement).width + 1
      && !e.querySelector("td.sentence")).map((e) => e.textContent.slice(0, 80)),
  });
};
frame.srcdoc = PAGE;
</script>"""

WIDTHS = (390, 1280)
"""The widths of a telephone's screen and of a laptop's window in pixels."""


def readable(text: str, work: Path) -> int:
    """Return the number of images of the page, after checks in Chromium at both widths.

    The test is skipped if Chromium is not installed.
    """
    pictures = set()
    for width in WIDTHS:
        seen = rendered(text, width, work)
        assert seen["wide"] <= width  # the page itself does not scroll sideways
        assert seen["row"] <= 110  # a row of a table is at most four lines
        assert seen["text"] >= 8  # px
        assert seen["overlaps"] == [], seen["overlaps"]  # labels of one image do not overlap
        assert seen["clipped"] == [], seen["clipped"]  # labels stay within their image
        assert not seen["moved"] or width < 800, seen["moved"]  # on a laptop, all images and tables fit
        pictures.add(seen["pictures"])
    (number,) = pictures
    return int(number)


def rendered(text: str, width: int, work: Path) -> dict[str, Any]:
    """Return Chromium's measurements of the page in a frame of ``width`` pixels.

    A frame is used because Chromium's own window has at least 500 pixels.
    """
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("chromium is not installed")
    page = json.dumps(text).replace("</", "<\\/")
    html = work / f"page-{width}.html"
    html.write_text(FRAME.replace("WIDTH", str(width)).replace("PAGE", page), "utf-8")
    done = subprocess.run(
        [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            f"--window-size={width + 200},900",
            f"--user-data-dir={work}",
            "--virtual-time-budget=5000",
            "--dump-dom",
            html.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert "CONSOLE" not in done.stderr
    found = re.search(r"<pre>(.+?)</pre>", done.stdout, re.DOTALL)
    assert found, done.stderr
    seen: dict[str, Any] = json.loads(unescape(found[1]))
    return seen

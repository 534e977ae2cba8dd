"""A report as a reader of HTML and as a telephone see it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest


class Reader(HTMLParser):
    """open: elements that are never closed. asks: what the page would load. No script."""

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
    """Every element is closed, and nothing but parts of itself is asked for."""
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert all(asked.startswith("#") for asked in reader.asks)
    assert 'name="viewport"' in text


PHONE = """<!DOCTYPE html><iframe width="390" height="844" frameborder="0"></iframe><pre></pre><script>
const frame = document.querySelector("iframe");
frame.onload = () => {
  const all = (what) => [...frame.contentDocument.querySelectorAll(what)];
  const heights = (what) => all(what).map((e) => e.getBoundingClientRect().height).filter((h) => h > 0);
  const scale = (t) => t.ownerSVGElement.getBoundingClientRect().width / t.ownerSVGElement.viewBox.baseVal.width;
  document.querySelector("pre").textContent = JSON.stringify({
    wide: frame.contentDocument.documentElement.scrollWidth, pictures: all("svg").length,
    row: Math.max(...heights("tr")),
    text: Math.min(...all("svg text").map((t) => parseFloat(getComputedStyle(t).fontSize) * scale(t))),
  });
};
frame.srcdoc = PAGE;
</script>"""


def readable_at_phone_width(text: str, work: Path) -> dict[str, Any]:
    """What Chromium made of the page in a frame of 390 px, because a window of it is not made narrower than 500.

    Skips where there is no Chromium. What is given has the number of pictures.
    """
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("chromium is not installed")
    page = json.dumps(text).replace("</", "<\\/")
    (work / "phone.html").write_text(PHONE.replace("PAGE", page), "utf-8")
    done = subprocess.run(
        [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--window-size=800,900",
            f"--user-data-dir={work}",
            "--virtual-time-budget=5000",
            "--dump-dom",
            (work / "phone.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert "CONSOLE" not in done.stderr
    found = re.search(r"<pre>(.+?)</pre>", done.stdout)
    assert found, done.stderr
    seen: dict[str, Any] = json.loads(found[1])
    assert seen["wide"] <= 390  # nothing but a table's or picture's own box is moved sideways
    assert seen["row"] <= 110  # a row of a table is at most four lines
    assert seen["text"] >= 8  # px
    return seen

"""Live display of results in a notebook: the newest picture with its boxes, and the frame rate."""

from __future__ import annotations

import base64
import io
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from boards.errors import UnsupportedError
from host.vision.frame import Result

REFRESH_SECONDS = 0.1
"""Minimum time between two pictures: a browser cannot show more, and drawing takes time from the host."""

RATE_SECONDS = 1.0
"""Time over which the frame rate is counted."""


def show(
    results: Iterable[Result],
    refresh: float = REFRESH_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Result]:
    """Yield a stream's results unchanged, and show the newest one in the notebook's cell.

    Args:
        results: The results, from ``stream``.
        refresh: Minimum number of seconds between two pictures. 0 shows every frame. The last result is always shown.
        clock: Returns the time in seconds.

    Raises:
        UnsupportedError: This is not a notebook.
    """
    return _shown(results, _display(), refresh, clock)


@dataclass(frozen=True)
class Page:
    """The contents of a notebook's cell for one frame: the drawn picture, its labels and the frame rate."""

    result: Result
    frames_per_second: float

    def _repr_html_(self) -> str:
        result, stream = self.result, io.BytesIO()
        result.draw().save(stream, "JPEG", quality=85)
        picture = base64.b64encode(stream.getvalue()).decode()
        counts = Counter(detection.label for detection in result.detections)
        labels = "".join(f"<li>{count} × {escape(label)}</li>" for label, count in sorted(counts.items()))
        return (
            f'<div style="display:flex;gap:1em;flex-wrap:wrap"><img alt="frame {result.index} with its boxes" '
            f'src="data:image/jpeg;base64,{picture}"><div><b>{self.frames_per_second:.1f} frames/s</b><br>'
            f"frame {result.index}, latency {1e3 * result.timing.latency:.1f} ms<ul>{labels}</ul></div></div>"
        )


def _shown(results: Iterable[Result], view: Any, refresh: float, clock: Callable[[], float]) -> Iterator[Result]:
    times: deque[float] = deque()
    shown, page = -math.inf, None
    for result in results:
        now = clock()
        times.append(now)
        while times[0] < now - RATE_SECONDS:
            times.popleft()
        page = Page(result, _rate(times))
        if now - shown >= refresh:
            view.update(page)
            shown, page = now, None
        yield result
    if page is not None:
        view.update(page)


def _rate(times: deque[float]) -> float:
    """Return the frame rate per second from the times of the last frames, 0 for one frame."""
    return (len(times) - 1) / (times[-1] - times[0]) if times[-1] > times[0] else 0.0


def _display() -> Any:
    try:
        from IPython import get_ipython
        from IPython.display import HTML, display
    except ImportError:
        get_ipython = None
    if get_ipython is None or get_ipython() is None:
        raise UnsupportedError(
            "show() outside a notebook",
            "it draws into the notebook's cell",
            remedy="save results, or record() them into a video",
        )
    return display(HTML("waiting for the first frame"), display_id=True)

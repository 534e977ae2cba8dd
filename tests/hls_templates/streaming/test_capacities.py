"""The memory that a window declares is the one that is counted."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cnn.maps import Padding, Shape
from hls_templates.headers import SIMULATION, include_folders
from scheduler.streaming.area.windows import MARGIN_WORDS, window_pixels
from scheduler.streaming.graph import Window
from tests.support.pairwise import pairwise


def test_window_slots_equal_the_estimated_words(tmp_path: Path) -> None:
    """Compare for maps of 9 rows of 11 pixels, over channel groups, kernels, strides, dilations and padding."""
    lines = ['#include "window.h"']
    rows = pairwise(groups=(1, 4), kernel=(1, 2, 3), stride=(1, 2, 3), dilation=(1, 2), padded=(0, 1))
    for groups, kernel, stride, dilation, padded in rows:
        reach = (kernel - 1) * dilation
        side = min(padded, reach)
        high, wide = ((size + 2 * side - reach - 1) // stride + 1 for size in (9, 11))
        op = Window((kernel, kernel), stride, Padding(side, side, side, side), dilation=dilation)
        pixels = window_pixels(op, Shape(4, 9, 11), Shape(4, high, wide))
        numbers = (groups, 9, 11, kernel, kernel, stride, side, side, high, wide, dilation)
        walk = f"window_walk<{', '.join(map(str, numbers))}, false>"
        lines.append(f'static_assert({walk}::SLOTS == {pixels * groups + MARGIN_WORDS}, "");')
    assert len(lines) > 8
    path = tmp_path / "capacities.cpp"
    path.write_text("\n".join(lines) + "\n")
    include = [f"-I{folder}" for folder in (*include_folders("streaming"), SIMULATION)]
    command = ["g++", "-std=c++17", "-w", "-fsyntax-only", *include, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")

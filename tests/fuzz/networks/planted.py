"""`python -m tests.fuzz planted`: count the random networks until a planted defect is found."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import hls_templates.headers
import hls_templates.systolic.sources
import scheduler.systolic.program.emit
import systolic.golden
import systolic.styles.streaming.flow
import systolic.styles.streaming.generation.wiring.units
from host.streaming.execution import StreamingExecution
from host.systolic.execution import SystolicExecution
from tests.fuzz.campaign import Campaign
from tests.fuzz.networks.draw import draw_case
from tests.fuzz.networks.trial import Outcome, try_case

MAX_CASES = 200
"""The number of cases after which a planted defect counts as not found."""

Plant = Callable[[], AbstractContextManager[Any]]


@contextmanager
def _text(module: Any, name: str, old: str, new: str) -> Iterator[None]:
    """Replace ``old`` by ``new`` in a fixed header or a rendered source within this context."""
    original = getattr(module, name)

    def replaced(*arguments: Any) -> Any:
        result = original(*arguments)
        texts = result.values() if isinstance(result, Mapping) else [result]
        if name != "fixed_files":  # a single call of fixed_files gives some of the headers only
            assert any(old in text for text in texts), f"the text to replace is missing: {old}"
        if isinstance(result, Mapping):
            return {file: text.replace(old, new) for file, text in result.items()}
        return result.replace(old, new)

    with patch.object(module, name, replaced):
        yield


@contextmanager
def _result(module: Any, name: str, change: Callable[[Any], Any]) -> Iterator[None]:
    """Pass the results of a module's function, or of a method, through ``change`` within this context."""
    original = getattr(module, name)
    with patch.object(module, name, lambda *arguments, **options: change(original(*arguments, **options))):
        yield


def _header(old: str, new: str) -> Plant:
    headers = Path(hls_templates.__file__).parent.rglob("*.h")
    assert any(old in path.read_text("utf-8") for path in headers), f"the text to replace is missing: {old}"
    return lambda: _text(hls_templates.headers, "fixed_files", old, new)


def _fields(change: Callable[[dict[str, int]], dict[str, int]]) -> Plant:
    return lambda: _result(_EMIT, "primary_words", change)


def _swapped(image: Any) -> Any:
    """Return the image with its first two words exchanged."""
    changed = np.array(image)
    changed[[0, 1]] = changed[[1, 0]] if len(changed) > 1 else changed[[0, 0]]
    return changed


def _swapped_tiles(tiles: Any) -> Any:
    changed = np.array(tiles)
    changed[:, [0, -1]] = changed[:, [-1, 0]]
    return changed


def _shallow(fifos: Any) -> Any:
    """Give every FIFO a depth of two words."""
    fifos.depths.update(dict.fromkeys(fifos.depths, 2))
    return fifos


def _reversed_frames(outputs: Any) -> Any:
    return tuple(tuple(values[::-1] for values in frame) for frame in outputs)


_EMIT = scheduler.systolic.program.emit
_UNITS = systolic.styles.streaming.generation.wiring.units

PLANTS: dict[str, Plant] = {
    "streaming: TERNARY saturates to −2": _header("(NARROW ? 1 : 0) - (", "0 - ("),
    "streaming: results are rounded down": _header("return (value + half) >> places", "return value >> places"),
    "streaming: lines are rounded down": _header("(1 << FRACTION) + (1 << (FRACTION - 1))", "(1 << FRACTION)"),
    "streaming: two weight tiles exchanged": lambda: _result(_UNITS, "weight_tiles", _swapped_tiles),
    "streaming: sized FIFOs are two words deep": lambda: _result(systolic.styles.streaming.flow, "_traced", _shallow),
    "streaming: depth to space stays in a pixel instead of moving to the next": _header(
        "PIXEL_STEP = cyclic(G - (RUN - 1), SLOTS), ROW_STEP", "PIXEL_STEP = cyclic(1, SLOTS), ROW_STEP"
    ),
    "streaming: the host reads channels backwards": lambda: _result(StreamingExecution, "collect", _reversed_frames),
    "systolic: results are rounded down": _header(
        "(product + (late ? product_t(offset) : half)) >> shift", "product >> shift"
    ),
    "systolic: padding of a picture holds 0, not its zero point": _header(
        "padding_value(around, c)", "padding_value(0, c)"
    ),
    "systolic: two words of weights exchanged": lambda: _result(
        scheduler.systolic.program.emit, "weight_image", _swapped
    ),
    "systolic: the upper row of padding is missing": _fields(lambda f: {**f, "pad_top": max(0, f["pad_top"] - 1)}),
    "systolic: saturates one too low": _fields(lambda f: {**f, "limits": f["limits"] - (1 << 16)}),
    "systolic: maps on chip begin in the first bank": _fields(lambda f: {**f, "out_turn": 0}),
    "systolic: the host reads channels backwards": lambda: _result(SystolicExecution, "collect", _reversed_frames),
    "golden program: results are rounded down": lambda: _text(
        systolic.golden, "golden_source", "(product + (integer{1} << (shift - 1))) >> shift", "product >> shift"
    ),
}
"""The planted defects: the sentence about each, and its context manager. The sentence begins with the style."""


def run(campaign: Campaign) -> int:
    """Print a table of the planted defects, and return the number of those that were not found."""
    missed = 0
    print("| planted | found in case | by |\n| --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="systolic-fuzz-cache-") as beside:
        cache = Path(os.environ.get("SYSTOLIC_TEST_BUILDS", beside))
        cache.mkdir(exist_ok=True)
        for name in PLANTS:
            number, outcome = find(name, campaign.seed, campaign.cases or MAX_CASES, cache)
            missed += outcome.state != "failed"
            print(f"| {name} | {number} | {outcome.stage}: {outcome.sentence[:100]} |", flush=True)
    return missed


def find(name: str, seed: int, most: int, cache: Path) -> tuple[int, Outcome]:
    """Return the number and the outcome of the first failing case, with the plant's style.

    If no case fails, return ``most`` and the outcome of the last case.
    """
    style = name.partition(":")[0]
    outcome = Outcome("passed")
    for number in range(most):
        case = draw_case(seed, number)
        if case.style != style and style != "golden program":
            continue
        outcome = try_planted(name, case, cache)
        if outcome.state == "failed":
            return number, outcome
    return most, outcome


def try_planted(name: str, case: Any, cache: Path) -> Outcome:
    """Try one case with a planted defect in the project."""
    with PLANTS[name]():
        return try_case(case, cache)

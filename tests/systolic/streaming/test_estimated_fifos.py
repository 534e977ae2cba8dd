"""FIFO depths estimated by the search (``--estimated-fifos``): the trace checks the design before it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cnn.quantized import QuantizedNetwork
from scheduler.streaming import folding_file
from scheduler.streaming.lower import lower
from systolic.files import write
from systolic.model import DesignInputs
from systolic.styles.streaming.cycles import StreamingTrace
from systolic.styles.streaming.exploration import explore
from systolic.styles.streaming.flow import generate_with_fifos
from systolic.styles.streaming.options import StreamingOptions
from systolic.styles.streaming.simulate import open_design
from systolic.trace.timing import DeadlockError
from tests.support.errors import raises
from tests.support.foldings import drawn_folding
from tests.support.low_bit import Layers
from tests.support.pipelines import BOARD, every_block, skip

PICTURE = np.random.default_rng(1).integers(0, 256, (3, 16, 16), np.uint8)
ESTIMATED = StreamingOptions(fps=50_000, estimated_fifos=True)


def quiet(_: str) -> None:
    """Discard a progress message."""


@pytest.mark.engine
def test_generate_of_a_deadlock_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant estimates that ignore the waiting at a join: the skip connection's FIFO fills, which is a deadlock."""
    monkeypatch.setattr("scheduler.streaming.result.depths", lambda graph, folds: ())
    mapping = explore(skip(), BOARD, None, ESTIMATED)
    with raises(DeadlockError, remedy="leave out --estimated-fifos, so that the trace sizes the FIFOs") as no:
        generate_with_fifos(mapping, DesignInputs({}, PICTURE), ESTIMATED, quiet)
    assert no.value.cure is not None
    options = replace(ESTIMATED, estimated_fifos=False)
    sized = generate_with_fifos(mapping, DesignInputs({}, PICTURE), options, quiet)
    assert sized.fifos.sized
    assert sized.fifos.interval == sized.fifos.best_interval


def excited() -> QuantizedNetwork:
    """Return a squeeze-and-excite block, where a map waits for the average over all its pixels."""
    made = Layers(3, 16, 16).conv(8, 3)
    made.average().conv(8, 1).upsample(16).product(1, made.last)
    return made.conv(5, 1).wide().network("excited")


def doubled() -> QuantizedNetwork:
    """Return a map concatenated with itself: for each pixel the words of one copy follow the words of the other."""
    made = Layers(3, 16, 16).conv(8, 3)
    return made.concat(made.last, made.last).conv(5, 1).wide().network("doubled")


def two_maps() -> QuantizedNetwork:
    """Return a network whose second output is computed earlier than the first, but is written after it."""
    made = Layers(3, 16, 16).conv(8, 3).conv(8, 3).conv(5, 1).wide()
    return made.conv(5, 1, 1, None, False, 1).wide().network("two_maps")


@pytest.mark.engine
@pytest.mark.parametrize(
    ("network", "external"),
    [(skip, ("conv2",)), (skip, ()), (excited, ()), (excited, ("conv3",)), (doubled, ()), (two_maps, ())],
)
def test_estimated_fifos_at_joins_do_not_deadlock(
    network: Callable[[], QuantizedNetwork], external: tuple[str, ...]
) -> None:
    """Check that no FIFO is deeper than a map and a row.

    A unit whose weights are in DDR reads a whole frame before its first output.
    """
    options = replace(ESTIMATED, external=external)
    mapping = explore(network(), BOARD, None, options)
    plan = generate_with_fifos(mapping, DesignInputs({}, PICTURE), options, quiet)
    assert not plan.fifos.sized
    assert max(plan.fifos.depths.values()) <= (16 + 1) * 16 * 8


@pytest.mark.engine
@pytest.mark.parametrize("seed", range(5))
def test_estimated_fifos_of_drawn_foldings_do_not_deadlock(seed: int) -> None:
    """Trace drawn foldings with both window styles, shared weights, zero channels, weights in DDR and all joins."""
    text = folding_file.to_json(drawn_folding(lower(every_block()), BOARD, seed))
    options = StreamingOptions(folding=text, estimated_fifos=True)
    picture = np.random.default_rng(1).integers(0, 256, (3, 12, 16), np.uint8)
    plan = generate_with_fifos(explore(every_block(), BOARD, None, options), DesignInputs({}, picture), options, quiet)
    assert not plan.fifos.sized


@pytest.mark.engine
def test_plan_with_estimated_fifos_reports_the_traced_rate(tmp_path: Path) -> None:
    mapping = explore(skip(), BOARD, None, ESTIMATED)
    plan = generate_with_fifos(mapping, DesignInputs({}, PICTURE), ESTIMATED, quiet)
    write(plan.files, tmp_path / "design")
    design = open_design(tmp_path / "design")
    assert plan.fifos.depths == {fifo.name: fifo.depth for fifo in design.manifest.fifos}
    report = StreamingTrace.of(design, PICTURE).report()
    assert plan.fifos.interval == report.cycles_per_frame >= plan.fifos.best_interval
    assert not plan.values()["fifos"]["sized"]
    assert f"a frame every {report.cycles_per_frame:,} cycles" in plan.text()
    assert plan.mapping.folded.usage.bram18 >= mapping.folded.usage.bram18

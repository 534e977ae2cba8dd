"""FIFOs as deep as the search estimates them: what the trace says of such a design before it is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boards.errors import GenerateError
from systolic.files import write
from systolic.model import DesignInputs
from systolic.styles.streaming.cycles import StreamingTrace
from systolic.styles.streaming.exploration import explore
from systolic.styles.streaming.flow import generate_with_fifos
from systolic.styles.streaming.options import StreamingOptions
from systolic.styles.streaming.simulate import open_design
from tests.systolic.streaming.small_pipelines import BOARD, skip

PICTURE = np.random.default_rng(1).integers(0, 256, (3, 16, 16), np.uint8)
ESTIMATED = StreamingOptions(fps=50_000, estimated_fifos=True)


def quiet(_: str) -> None:
    """Nobody is told what goes on."""


def test_what_would_deadlock_is_not_generated() -> None:
    """A unit whose weights come from DDR takes all of a frame before it gives anything, and the estimate knows nothing
    of that: the map beside it fills its FIFO first."""
    options = replace(ESTIMATED, external=("conv2",))
    mapping = explore(skip(), BOARD, None, options)
    with pytest.raises(
        GenerateError, match=r"nothing is written: .* deadlocks; leave out --estimated-fifos, and"
    ) as no:
        generate_with_fifos(mapping, DesignInputs({}, PICTURE), options, quiet)
    assert "frees it" in str(no.value)
    sized = generate_with_fifos(mapping, DesignInputs({}, PICTURE), replace(options, estimated_fifos=False), quiet)
    assert sized.fifos.sized
    assert sized.fifos.interval == sized.fifos.best_interval


def test_what_does_not_is_told_with_its_traced_rate(tmp_path: Path) -> None:
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

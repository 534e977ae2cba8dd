"""A small network built like yolov3-tiny, with two heads; the last beat of the first head's output is not full."""

from __future__ import annotations

import numpy as np
import pytest

import systolic
from systolic.designs import Design
from systolic.styles.streaming.simulate import StreamingDesign
from tests.support.kinds import as_kind

CONV = "[convolutional]\nfilters={}\nsize={}\nstride=1\npad=1\nactivation={}\n"
POOL = "[maxpool]\nsize=2\nstride=2\n"
HEAD = "[yolo]\nmask={}\nanchors=10,14, 23,27, 37,58, 81,82, 135,169, 344,319\nclasses=2\nnum=6\n"
pytestmark = pytest.mark.engine

CFG = "\n".join(
    (
        "[net]\nwidth=36\nheight=36\nchannels=3\n",
        *(CONV.format(4, 3, "leaky"), POOL, CONV.format(8, 3, "leaky"), POOL, CONV.format(8, 3, "leaky")),
        *(CONV.format(21, 1, "linear"), HEAD.format("3,4,5"), "[route]\nlayers=-3\n"),
        *(CONV.format(8, 1, "leaky"), "[upsample]\nstride=2\n", "[route]\nlayers=-1, 2\n"),
        *(CONV.format(21, 1, "linear"), HEAD.format("0,1,2")),
    )
)
FRAME = np.random.default_rng(5).integers(0, 256, (36, 36, 3), np.uint8)


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Design:
    folder = tmp_path_factory.mktemp("heads")
    (folder / "heads.cfg").write_text(CFG)
    model = systolic.load(folder / "heads.cfg", seed=1)
    return systolic.design(model, "zcu104", "streaming", fps=5_000, search="greedy").write(folder / "design")


def test_heads_of_a_pipeline_start_at_whole_beats(design: Design) -> None:
    manifest = as_kind(StreamingDesign, design.opened).manifest
    first, second = manifest.outputs
    assert (first.offset, first.channels, second.channels) == (0, 21, 21)
    assert first.bytes % manifest.packet_out.beat, "its last beat is not full"
    assert second.offset == -(-first.bytes // manifest.packet_out.beat) * manifest.packet_out.beat


def test_simulate_of_two_heads_equals_the_golden_program(design: Design) -> None:
    """Compare a design in which the host computes nodes between the program's layers."""
    nodes = design.opened.network.nodes
    assert any(node.op.on_host for node in nodes[:-1])
    result = design.simulate(FRAME, golden=True)
    assert (result.mismatches, result.right) == (0, True)


def test_run_of_two_heads_gives_boxes_of_both(design: Design) -> None:
    seen = design.run(FRAME, threshold=0.0)
    assert seen.mismatches == 0
    assert len(seen.detections) > 9 * 9, "more than one head's cells"

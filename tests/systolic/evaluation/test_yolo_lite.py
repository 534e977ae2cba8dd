"""A trained YOLO-LITE on photographs: what 8 bits see beside the floats."""

from __future__ import annotations

from pathlib import Path

import pytest

from host.vision.detection import OVERLAP, THRESHOLD, Detection
from systolic.evaluation.agreement import agreement, together
from systolic.evaluation.frames import Subject
from systolic.evaluation.pool import compute_all
from systolic.model import Calibration, load_model, quantise_model

SURE = 0.4
"""Of boxes that must be found in both."""


def lone(boxes: tuple[Detection, ...], others: tuple[Detection, ...]) -> int:
    """Sure boxes that the others do not have, however sure of them, above what is shown."""
    return agreement([box for box in boxes if box.probability >= SURE], others).missed


@pytest.mark.shared
def test_eight_fitted_bits_lose_and_add_no_box_that_is_sure(shared: Path) -> None:
    stem = shared / "data/networks/yolo-lite-voc-trial3-noBatch"
    model = load_model(stem.with_suffix(".cfg"), stem.with_suffix(".weights"), shared / "data/networks/voc.names")
    pictures = tuple(sorted((shared / "data/pictures").iterdir()))
    integers = quantise_model(model, Calibration(pictures, bits=8, reconstruct=True))
    subject = Subject(model.network, integers, model.fit, OVERLAP)
    frames = compute_all(subject, pictures, 1, lambda _: None)
    pairs = [(frame.floats.above(THRESHOLD), frame.integers.above(THRESHOLD)) for frame in frames]
    assert sum(lone(floats, ours) for floats, ours in pairs) == 0
    assert sum(lone(ours, floats) for floats, ours in pairs) == 0
    overall = together(agreement(floats, ours) for floats, ours in pairs)
    assert overall.matched > 30
    assert overall.mean_iou > 0.97

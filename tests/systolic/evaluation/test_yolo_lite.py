"""A trained YOLO-LITE on photographs: boxes at 8 bits compared with the float network's, and the SQNR at 4 bits."""

from __future__ import annotations

from pathlib import Path

import pytest

from cnn.quantisation.fidelity import heads_sqnr_db
from host.vision.detection import IOU_THRESHOLD, THRESHOLD, Detection
from systolic.evaluation.frames import Subject, compute_all
from systolic.evaluation.quality import agreement, total_agreement
from systolic.loading import load_model
from systolic.model import Calibration, Model, quantise_model
from systolic.pictures import network_inputs

pytestmark = pytest.mark.engine

SURE = 0.4
"""Confidence from which a box must be found by both the float and the integer network."""


def lone(boxes: tuple[Detection, ...], others: tuple[Detection, ...]) -> int:
    """Return the number of boxes with a confidence of at least SURE that match none of ``others``."""
    return agreement([box for box in boxes if box.probability >= SURE], others).missed


@pytest.fixture(scope="module")
def network(shared: Path) -> Model:
    stem = shared / "data/networks/yolo-lite-voc-trial3-noBatch"
    return load_model(stem.with_suffix(".cfg"), stem.with_suffix(".weights"), shared / "data/networks/voc.names")


@pytest.mark.shared
def test_reconstruction_at_four_bits_gains_on_other_pictures(shared: Path, network: Model) -> None:
    """Fitted weights and zero points together raise the head's SQNR by at least 6 dB."""
    pictures = tuple(sorted((shared / "data/pictures").iterdir()))
    others = tuple(path for path in pictures if path.stem in ("dog", "person"))
    calibrated = tuple(path for path in pictures if path not in others)

    def head_db(calibration: Calibration) -> float:
        inputs = network_inputs(network.network, others, network.fit)
        (ratio,) = heads_sqnr_db(network.network, quantise_model(network, calibration), inputs).values()
        return ratio

    rounded = head_db(Calibration(calibrated, bits=4))
    assert head_db(Calibration(calibrated, bits=4, reconstruct=True, zero_points=True)) >= rounded + 6


@pytest.mark.shared
def test_reconstruction_at_eight_bits_keeps_all_sure_boxes(shared: Path, network: Model) -> None:
    pictures = tuple(sorted((shared / "data/pictures").iterdir()))
    integers = quantise_model(network, Calibration(pictures, bits=8, reconstruct=True))
    subject = Subject(network.network, integers, network.fit, IOU_THRESHOLD)
    frames = compute_all(subject, pictures, 1, lambda _: None)
    pairs = [(frame.floats.above_threshold(THRESHOLD), frame.integers.above_threshold(THRESHOLD)) for frame in frames]
    assert sum(lone(floats, ours) for floats, ours in pairs) == 0
    assert sum(lone(ours, floats) for floats, ours in pairs) == 0
    overall = total_agreement(agreement(floats, ours) for floats, ours in pairs)
    assert overall.matched > 30
    assert overall.mean_iou > 0.97

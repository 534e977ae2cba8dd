"""Results of frames, made without a design."""

from __future__ import annotations

from host.vision.detection import Detection
from host.vision.frame import Result, StageTiming
from host.vision.picture import Pixels
from host.vision.placement import Placement


def result(picture: Pixels, index: int) -> Result:
    """Return a result with one box."""
    placement = Placement(picture.shape[1], picture.shape[0], 32, 32, 0, 0, 32, 32)
    box = Detection("square", 0.9, (8.0, 8.0, 40.0, 40.0))
    return Result(picture, placement, (), (box,), StageTiming(()), ("square",), index)

"""The position of the picture in the network's input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Placement:
    """The position of the resized picture in the network's input. All values are pixels.

    The picture of ``picture_width`` × ``picture_height`` fills the rectangle of ``width`` × ``height`` at
    (``left``, ``top``) of the input of ``input_width`` × ``input_height``.
    """

    picture_width: int
    picture_height: int
    input_width: int
    input_height: int
    left: int
    top: int
    width: int
    height: int

    def to_picture(self, boxes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Convert boxes ``(n, 4)`` (x0, y0, x1, y1) from fractions of the input to unclipped pixels of the picture."""
        size = np.array([self.input_width, self.input_height] * 2, np.float64)
        origin = np.array([self.left, self.top] * 2, np.float64)
        scale = np.array([self.picture_width / self.width, self.picture_height / self.height] * 2)
        return np.asarray((boxes * size - origin) * scale, np.float64)

    def to_input(self, boxes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Convert boxes ``(n, 4)`` (x0, y0, x1, y1) from pixels of the picture to pixels of the input."""
        origin = np.array([self.left, self.top] * 2, np.float64)
        scale = np.array([self.width / self.picture_width, self.height / self.picture_height] * 2)
        return np.asarray(boxes * scale + origin, np.float64)

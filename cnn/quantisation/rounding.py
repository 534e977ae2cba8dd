"""The result of rounding a layer's filters: whole numbers, a scale per filter, and the matching bias."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Filters:
    """The float weights and biases of a layer's filters, before rounding.

    Attributes:
        rows: [filters, weights of a filter].
        bias: [filters].
    """

    rows: Doubles
    bias: Doubles


@dataclass(frozen=True, eq=False)
class WeightGrid:
    """The integers −high…high that a layer's weights are rounded to, and the scale per filter.

    Attributes:
        scale: [filters], the scale with which the greatest weight becomes ``high``, or more if sums would not fit.
        floor: [filters], the least scale with which sums fit.
        high: The greatest integer.
    """

    scale: Doubles
    floor: Doubles
    high: int

    def round(self, rows: Doubles, scale: Doubles) -> Doubles:
        """Return the integers nearest to weights / scale per filter, clipped to −high…high, as float64."""
        return np.asarray(np.clip(np.rint(rows / scale[:, None]), -self.high, self.high))


@dataclass(frozen=True, eq=False)
class RoundedFilters:
    """A layer's filters after rounding: integer weights, a scale per filter, and a bias that is not rounded yet.

    Attributes:
        rows: Whole numbers, [filters, weights of a filter]. A weight is this number times the filter's scale.
        scale: [filters].
        bias: [filters], not rounded.
    """

    rows: Doubles
    scale: Doubles
    bias: Doubles


Rounding: TypeAlias = Callable[[Filters, WeightGrid], RoundedFilters]


def round_to_nearest(filters: Filters, grid: WeightGrid) -> RoundedFilters:
    """Return a layer's filters with each weight rounded to the nearest integer of the grid by itself."""
    return RoundedFilters(grid.round(filters.rows, grid.scale), grid.scale, filters.bias)

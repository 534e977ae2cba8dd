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
    """The filters of a layer, in float64.

    Attributes:
        rows: [filters, weights of a filter].
        bias: [filters].
    """

    rows: Doubles
    bias: Doubles


@dataclass(frozen=True, eq=False)
class WeightGrid:
    """The whole numbers −high…high that weights are rounded to.

    Attributes:
        scale: [filters], the scale with which the greatest weight becomes ``high``, or more if sums would not fit.
        floor: [filters], the least scale with which sums fit.
        high: The greatest integer.
    """

    scale: Doubles
    floor: Doubles
    high: int

    def round(self, rows: Doubles, scale: Doubles) -> Doubles:
        """Return the whole numbers nearest to rows / scale, clipped to −high…high."""
        return np.asarray(np.clip(np.rint(rows / scale[:, None]), -self.high, self.high))


@dataclass(frozen=True, eq=False)
class RoundedFilters:
    """Rounded filters.

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
    """Return the filters with each weight rounded to the nearest integer by itself."""
    return RoundedFilters(grid.round(filters.rows, grid.scale), grid.scale, filters.bias)

"""What a layer's filters are rounded to: whole numbers, a scale a filter, and a bias that goes with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Filters:
    """rows [filters, weights of a filter] and bias [filters], in float64."""

    rows: Doubles
    bias: Doubles


@dataclass(frozen=True, eq=False)
class WeightGrid:
    """Whole numbers −high…high. scale [filters]: so that the greatest weight is ``high``, or greater where sums would
    not fit. floor [filters]: the scale below which they would not."""

    scale: Doubles
    floor: Doubles
    high: int

    def round(self, rows: Doubles, scale: Doubles) -> Doubles:
        """Whole numbers nearest to rows / scale, cut off at the ends."""
        return np.asarray(np.clip(np.rint(rows / scale[:, None]), -self.high, self.high))


@dataclass(frozen=True, eq=False)
class RoundedFilters:
    """rows: whole numbers [filters, weights of a filter], whose values are times ``scale`` [filters]. bias: real."""

    rows: Doubles
    scale: Doubles
    bias: Doubles


Rounding: TypeAlias = Callable[[Filters, WeightGrid], RoundedFilters]


def round_to_nearest(filters: Filters, grid: WeightGrid) -> RoundedFilters:
    """Each weight by itself."""
    return RoundedFilters(grid.round(filters.rows, grid.scale), grid.scale, filters.bias)

"""What layers need of an array: every number of it that must have a least value, with its formula and its sentence.

The table is read by the rules, which compare the needs of every layer with the array; by the search, which gives an
array the units that its layers need and looks for the depths in which their tilings run; and by the errors that say
what is missing, of a file's array or of the deepest buffers that are searched. ``buffer_needs`` (tiling.py) has the
formulas of buffers, which depend on the tiling.

The rules read all of NEEDS, the search SEARCHED_BUFFERS and UNITS; the depths of OTHER_BUFFERS are set in
``arrays_of`` (search/task.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from boards.errors import DoesNotFitError, InvalidValueError, RangeError, SystolicError
from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.array import Array
from scheduler.systolic.shape import LayerShape
from scheduler.systolic.tiling import BufferNeeds, Tiling


@dataclass(frozen=True)
class BufferNeed:
    """A buffer of the array, whose depth depends on how a layer is tiled.

    Attributes:
        name: The depth, by its name in an Array and in BufferNeeds.
        subject: What is stored there, for a sentence.
        resource: What the depth counts, for a sentence.
    """

    name: str
    subject: str
    resource: str

    def of(self, shape: LayerShape, needs: BufferNeeds) -> int:
        """Return what the tiling needs."""
        need: int = getattr(needs, self.name)
        return need

    def error(self, need: int, array: Array) -> SystolicError:
        """Return the error of an array that has less than ``need``."""
        have = getattr(array, self.name)
        resource, nearest = f"{self.resource} ({self.name})", f"{self.name} {need}"
        return DoesNotFitError(self.subject, resource, need, have, nearest=nearest)


@dataclass(frozen=True)
class SearchedBuffer(BufferNeed):
    """A buffer whose depth the search chooses.

    Attributes:
        least: What the layer stores there under the tiling that needs least, for a sentence.
        otherwise: What makes a layer need less, for a sentence.
        multiple: What every depth is a multiple of.
    """

    least: Callable[[LayerShape, Tiling], str]
    otherwise: str
    multiple: int = 1

    def too_shallow(self, shape: LayerShape, tiling: Tiling, need: int, have: int) -> DoesNotFitError:
        """Return the error of a layer that no depth up to ``have`` holds; ``tiling`` needs least."""
        depth = ceil_div(need, self.multiple) * self.multiple
        nearest = f"{self.name} {depth}, or {self.otherwise}"
        return DoesNotFitError(self.least(shape, tiling), self.resource, need, have, nearest=nearest, where=shape.name)


@dataclass(frozen=True)
class UnitNeed:
    """A number of the array, or whether it has a unit, that a layer needs however it is tiled.

    Attributes:
        name: The number, by its name in an Array.
        formula: What a layer needs.
        reason: A clause after "because", for a unit that the array has or has not.
    """

    name: str
    formula: Callable[[LayerShape], int]
    reason: str = ""

    def of(self, shape: LayerShape, needs: BufferNeeds) -> int:
        """Return what the layer needs."""
        return self.formula(shape)

    def error(self, need: int, array: Array) -> SystolicError:
        """Return the error of an array that has less than ``need``."""
        what, have = f"{self.name} of the array", getattr(array, self.name)
        if self.reason:
            return InvalidValueError(what, have, f"1, because {self.reason}")
        return RangeError(what, have, need)


SEARCHED_BUFFERS = (
    SearchedBuffer(
        "row_depth",
        "a row tile (with the next one if they overlap; all rows if inputs stay)",
        "words of a bank of the row buffer",
        lambda shape, tiling: f"the narrowest column tile ({tiling.columns.width} columns)",
        "more rows",
        multiple=2,
    ),
    SearchedBuffer(
        "weight_depth",
        "a weight tile with the next one (all tiles if weights stay)",
        "steps of the weight buffer",
        lambda shape, tiling: f"the tile of {shape.steps} steps with the one that follows",
        "more lanes",
    ),
    SearchedBuffer(
        "kept_depth",
        "the tile of sums that wait for the tile below",
        "sums that the Saver keeps",
        lambda shape, tiling: "the tile of sums that wait for the tile below",
        "an even number of rows",
    ),
)
"""Buffers whose depths the search chooses among the steps of its space."""

UNITS = (
    UnitNeed("upscale", lambda shape: shape.upscale),
    UnitNeed("table_depth", lambda shape: shape.table_depth),
    UnitNeed("table_slopes", lambda shape: shape.table_slopes, "the layer's table consists of pieces of lines"),
    UnitNeed("late_offsets", lambda shape: shape.late_offsets),
    UnitNeed("sum_bits", lambda shape: shape.sum_bits),
    UnitNeed("windows", lambda shape: shape.places > 1 and not shape.multiplied, "the layer is a max pool by itself"),
    UnitNeed("map_products", lambda shape: shape.multiplied, "the layer multiplies two maps"),
    UnitNeed("added_maps", lambda shape: shape.added, "the layer's Saver adds a map"),
    UnitNeed("map_stride", lambda shape: shape.stride if shape.from_chip else 1),
)
"""The search gives an array exactly the units that its layers need."""

OTHER_BUFFERS = (
    BufferNeed("map_depth", "the map that stays on chip", "words of a bank of a map buffer"),
    BufferNeed("channel_tiles", "the set of requantisers of all channel tiles", "channel tiles that the Saver keeps"),
)
"""Buffers whose depths follow from the geometry, and from which maps stay on chip."""

BUFFERS = (*SEARCHED_BUFFERS, *OTHER_BUFFERS)
NEEDS: tuple[BufferNeed | UnitNeed, ...] = (*SEARCHED_BUFFERS, *UNITS, *OTHER_BUFFERS)

SEARCHED = tuple(need.name for need in SEARCHED_BUFFERS)


def least_units(shapes: Sequence[LayerShape]) -> dict[str, int]:
    """Return the UNITS of an array for these layers, by name; their maps stay on chip as the shapes say."""
    return {need.name: max(need.formula(shape) for shape in shapes) for need in UNITS}


def unmet_needs(shape: LayerShape, needs: BufferNeeds, array: Array) -> list[SystolicError]:
    """Return the errors of the NEEDS that the array does not meet."""
    required = [(need, need.of(shape, needs)) for need in NEEDS]
    return [need.error(value, array) for need, value in required if value > getattr(array, need.name)]


def fits(needs: BufferNeeds, array: Array) -> bool:
    """Return whether the buffers of the array hold a tiling."""
    return all(getattr(needs, need.name) <= getattr(array, need.name) for need in BUFFERS)


def fits_depths(needs: BufferNeeds, depths: Sequence[int]) -> bool:
    """Return whether a tiling runs in these depths of the SEARCHED buffers. The search asks it millions of times."""
    return needs.row_depth <= depths[0] and needs.weight_depth <= depths[1] and needs.kept_depth <= depths[2]

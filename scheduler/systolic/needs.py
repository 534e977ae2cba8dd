"""The needs of layers: each number of an array that has a lower limit, with the formula of the limit and its error.

The table NEEDS has three users:

- The rules compare the needs of every layer with the array.
- The search gives an array the units that its layers need (UNITS), and chooses the depths in which their tilings run
  (SEARCHED_BUFFERS). ``arrays_of`` (search/task.py) sets the depths of OTHER_BUFFERS.
- Errors report what the array of a file lacks, or what the deepest buffers of the search lack.

The need for a buffer depends on the tiling; ``buffer_needs`` (tiling.py) has these formulas.
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
    """A buffer depth of the array that must be large enough for each layer's tiling, with its names for errors.

    Attributes:
        name: The name of the depth, a field of both Array and BufferNeeds.
        subject: A noun for errors: the content of the buffer.
        resource: A noun for errors: the unit of the depth.
    """

    name: str
    subject: str
    resource: str

    def of(self, shape: LayerShape, needs: BufferNeeds) -> int:
        """Return the buffer depth that the layer's tiling needs."""
        need: int = getattr(needs, self.name)
        return need

    def error(self, need: int, array: Array) -> SystolicError:
        """Return the error for an array whose buffer is less deep than ``need``."""
        have = getattr(array, self.name)
        resource, nearest = f"{self.resource} ({self.name})", f"{self.name} {need}"
        return DoesNotFitError(self.subject, resource, need, have, nearest=nearest)


@dataclass(frozen=True)
class SearchedBuffer(BufferNeed):
    """A buffer of the array whose depth the schedule search chooses, with its names for errors.

    Attributes:
        least: Returns a noun for errors: the content of the buffer under the tiling that needs the least depth.
        otherwise: A noun for errors: a change of the array with which a layer needs less depth.
        multiple: The number that divides every depth.
    """

    least: Callable[[LayerShape, Tiling], str]
    otherwise: str
    multiple: int = 1

    def too_shallow(self, shape: LayerShape, tiling: Tiling, need: int, have: int) -> DoesNotFitError:
        """Return the error for a layer whose tilings all need a deeper buffer than ``have``, the deepest that the
        search tries.

        Args:
            shape: The layer.
            tiling: The tiling that needs the least depth.
            need: The depth that this tiling needs.
            have: The greatest depth of the search.
        """
        depth = ceil_div(need, self.multiple) * self.multiple
        nearest = f"{self.name} {depth}, or {self.otherwise}"
        return DoesNotFitError(self.least(shape, tiling), self.resource, need, have, nearest=nearest, where=shape.name)


@dataclass(frozen=True)
class UnitNeed:
    """A parameter of the array that a layer needs at a lowest value with any tiling, such as the table depth.

    Attributes:
        name: The field's name in an Array.
        formula: Returns the lowest value that a layer needs.
        reason: For a flag, the reason why the layer needs it: a clause that follows "because". "" for a number.
    """

    name: str
    formula: Callable[[LayerShape], int]
    reason: str = ""

    def of(self, shape: LayerShape, needs: BufferNeeds) -> int:
        """Return the lowest value of the array's parameter that the layer needs."""
        return self.formula(shape)

    def error(self, need: int, array: Array) -> SystolicError:
        """Return the error for an array whose parameter is less than ``need``."""
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
"""The buffers whose depths the search chooses; search/space.py has the depths that it tries."""

UNITS = (
    UnitNeed("upscale", lambda shape: shape.upscale),
    UnitNeed("table_depth", lambda shape: shape.table_depth),
    UnitNeed("table_slopes", lambda shape: shape.table_slopes, "the layer's table is piecewise linear"),
    UnitNeed("late_offsets", lambda shape: shape.late_offsets),
    UnitNeed("sum_bits", lambda shape: shape.sum_bits),
    UnitNeed(
        "windows", lambda shape: shape.separate_taps > 1 and not shape.multiplied, "the layer is a max pool by itself"
    ),
    UnitNeed("map_products", lambda shape: shape.multiplied, "the layer multiplies two maps"),
    UnitNeed("added_maps", lambda shape: shape.added, "the layer's Saver adds a map"),
    UnitNeed("map_stride", lambda shape: shape.stride if shape.from_chip else 1),
)
"""The units of an array. The search gives an array exactly the units that its layers need."""

OTHER_BUFFERS = (
    BufferNeed("map_depth", "the map that stays on chip", "words of a bank of a map buffer"),
    BufferNeed("channel_tiles", "the set of requantisers of all channel tiles", "channel tiles that the Saver keeps"),
)
"""The buffers whose depths follow from the geometry and from the choice of the maps that stay on chip."""

BUFFERS = (*SEARCHED_BUFFERS, *OTHER_BUFFERS)
NEEDS: tuple[BufferNeed | UnitNeed, ...] = (*SEARCHED_BUFFERS, *UNITS, *OTHER_BUFFERS)

SEARCHED = tuple(need.name for need in SEARCHED_BUFFERS)


def least_units(shapes: Sequence[LayerShape]) -> dict[str, int]:
    """Return the lowest value of each optional hardware parameter (UNITS) that these layers need, by name.

    ``map_stride`` depends on which maps stay on chip; the shapes state it.
    """
    return {need.name: max(need.formula(shape) for shape in shapes) for need in UNITS}


def unmet_needs(shape: LayerShape, needs: BufferNeeds, array: Array) -> list[SystolicError]:
    """Return an error for each buffer depth or parameter of the array that is too small for the layer."""
    required = [(need, need.of(shape, needs)) for need in NEEDS]
    return [need.error(value, array) for need, value in required if value > getattr(array, need.name)]


def fits(needs: BufferNeeds, array: Array) -> bool:
    """Return whether the array's buffers are deep enough for a tiling with the given ``needs``."""
    return all(getattr(needs, need.name) <= getattr(array, need.name) for need in BUFFERS)


def fits_depths(needs: BufferNeeds, depths: Sequence[int]) -> bool:
    """Return whether ``depths`` of the row, weight and kept-sum buffers are enough for a tiling with the given
    ``needs``.

    The fields are named instead of read in a loop, because the search calls this function millions of times.
    """

    return needs.row_depth <= depths[0] and needs.weight_depth <= depths[1] and needs.kept_depth <= depths[2]

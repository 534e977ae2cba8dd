"""The registry of blocks that packages add, and checked calls of their functions.

The functions of a package may raise any exception or return a wrong value. Both become an error that names the layer.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

from boards.board import Board
from boards.errors import InvalidValueError, ToolError, cut, shown
from cnn.extending.registry import Registry
from scheduler.streaming import graph as g
from scheduler.streaming.area.part import Part
from scheduler.streaming.blocks.added import AddedBlock
from scheduler.streaming.folded_block import FoldedBlock
from scheduler.streaming.model.lag import NONE, Lag


def _is_block(value: object) -> bool:
    if not isinstance(value, AddedBlock):
        return False
    kind = value.kind
    named = {kind.reads, kind.writes} <= {"pe", "simd"} and {*kind.rams} <= {"auto", "lutram", "bram"}
    return named and bool(kind.rams) and kind.depth >= 1 and not kind.pads


BLOCKS: Registry[AddedBlock] = Registry(
    "systolic.blocks",
    {},
    "a scheduler.streaming.blocks.added.AddedBlock (depth 1 or more, lanes pe or simd, rams auto, lutram or bram, no "
    "pads)",
    _is_block,
)
"""The blocks of packages, by the name of their layer."""


def steps_of(place: FoldedBlock) -> int:
    """Return the iterations per frame of the hardware loop of a package's block, as the package computes them."""
    return int(_asked(place, "steps", "a whole number of 1 or more", lambda steps: type(steps) is int and steps >= 1))


def lag_of(place: FoldedBlock) -> Lag:
    """Return how much of a frame a package's block has read but not yet written (a ``Lag``), without its pipeline."""
    if added_block(place.op).lag is None:
        return NONE
    lag: Lag = _asked(place, "lag", "a Lag of finite frames, low at most up", _is_lag)
    return lag


def parts_of(place: FoldedBlock, board: Board) -> list[Part]:
    """Return the hardware parts of a package's block with their resources, without its control logic."""
    return list(_asked(place, "parts", "a list of Part", _are_parts, board))


def arguments_of(place: FoldedBlock) -> tuple[object, ...]:
    """Return the C++ template arguments with which a package's block function is instantiated."""
    return tuple(_asked(place, "arguments", "a tuple", lambda value: isinstance(value, (tuple, list))))


def _is_lag(value: object) -> bool:
    return isinstance(value, Lag) and isfinite(value.low) and isfinite(value.up) and value.low <= value.up


def _are_parts(value: object) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(part, Part) for part in value)


def added_block(op: g.BlockOp) -> AddedBlock:
    """Return the ``AddedBlock`` that a package registered for a layer. The graph's own type declares only its
    ``kind``."""
    assert isinstance(op, g.Custom)
    assert isinstance(op.block, AddedBlock)
    return op.block


def _asked(place: FoldedBlock, name: str, required: str, fits: Callable[[Any], bool], *more: object) -> Any:
    """Call one of the functions that a package supplies for its block, and return the result after a check of its type
    and range.

    Args:
        place: The block with its fold.
        name: The attribute of AddedBlock with the function.
        required: The values that are allowed, for errors.
        fits: Returns whether a value is allowed.
        more: Further arguments of the function.

    Raises:
        ToolError: The function raised an exception.
        InvalidValueError: The function returned a value that is not allowed.
    """
    assert isinstance(place.op, g.Custom)
    where, what = f"{place.block.source}: {place.block.name}", f"{name} of the block of {shown(place.op.layer)}"
    try:
        value = getattr(added_block(place.op), name)(place, *more)
    except Exception as error:  # a package's function may raise any
        reason = f"cannot be computed for {place.fold}: {cut(error)}"
        raise ToolError(what, reason, where=where, remedy="correct the package") from error
    if not fits(value):
        required = f"{required} for {place.fold}"
        raise InvalidValueError(what, value, required, where=where, remedy="correct the package")
    return value

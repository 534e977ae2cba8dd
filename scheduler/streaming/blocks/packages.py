"""Blocks of packages: found by their layer's name, and what each stage asks of one, checked.

What a package gives is not ours: whatever its functions raise, or return by mistake, becomes an error that names the
layer.
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
"""By the name of the layer that one is the block of."""


def steps_of(place: FoldedBlock) -> int:
    """Iterations of its loop for one frame."""
    return int(_asked(place, "steps", "a whole number of 1 or more", lambda steps: type(steps) is int and steps >= 1))


def lag_of(place: FoldedBlock) -> Lag:
    """Frames between what comes and what leaves, its pipeline left out."""
    if added_block(place.op).lag is None:
        return NONE
    lag: Lag = _asked(place, "lag", "a Lag of finite frames, low at most up", _is_lag)
    return lag


def parts_of(place: FoldedBlock, board: Board) -> list[Part]:
    """What it takes of a board besides the control."""
    return list(_asked(place, "parts", "a list of Part", _are_parts, board))


def arguments_of(place: FoldedBlock) -> tuple[object, ...]:
    """Of its function's template."""
    return tuple(_asked(place, "arguments", "a tuple", lambda value: isinstance(value, (tuple, list))))


def _is_lag(value: object) -> bool:
    return isinstance(value, Lag) and isfinite(value.low) and isfinite(value.up) and value.low <= value.up


def _are_parts(value: object) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(part, Part) for part in value)


def added_block(op: g.BlockOp) -> AddedBlock:
    """Return the whole of a package's block, of which the graph knows a part."""
    assert isinstance(op, g.Custom)
    assert isinstance(op.block, AddedBlock)
    return op.block


def _asked(place: FoldedBlock, name: str, required: str, fits: Callable[[Any], bool], *more: object) -> Any:
    """What a function of the block returns."""
    assert isinstance(place.op, g.Custom)
    where, what = f"{place.block.source}: {place.block.name}", f"{name} of the block of {shown(place.op.layer)}"
    try:
        value = getattr(added_block(place.op), name)(place, *more)
    except Exception as error:  # whatever a package's function raises
        reason = f"cannot be worked out for {place.fold}: {cut(error)}"
        raise ToolError(what, reason, where=where, remedy="correct the package") from error
    if not fits(value):
        required = f"{required} for {place.fold}"
        raise InvalidValueError(what, value, required, where=where, remedy="correct the package")
    return value

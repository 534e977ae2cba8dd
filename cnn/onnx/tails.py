"""Tails: the operations at the end of a network that no layer computes and that the host computes instead.

They are views, softmaxes along any axis and concats of maps of different sizes. SSDs and face detectors end like this:

    conv ─ Transpose ─ Reshape [1, 400, 2] ─┐
                                            ├─ Concat axis 1 ─ Softmax axis 2 ─ an output
    conv ─ Transpose ─ Reshape [1, 100, 2] ─┘

An operation that cannot become a layer becomes part of a tail if its kind is in KINDS. If any other operation reads a
tail, it is refused, and so are the operations of the tail, each for its own reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from boards.errors import SystolicError
from cnn.limits import MAX_MAPS
from cnn.named_outputs import CONCAT, MAP, RESHAPE, TRANSPOSE, OutputStep, view_steps
from cnn.onnx.graph import OnnxOperation, require
from cnn.onnx.layers import NO_PADDING, Layers, Map, Tail
from cnn.onnx.quantised.cast import is_of_floats
from cnn.onnx.shapes import VIEWS, position_of

MAX_STEPS = 1024
"""Limit for the steps of a tail."""
MAX_SIDES = 8
"""Limit for the sides of a tensor of a tail."""

OF_PICTURES = "it is over the batch, axis 0"

LAST_AXIS_OPSET = 13
"""The first opset in which Softmax is along one axis (cnn.onnx.operators)."""


@dataclass(frozen=True)
class _Part:
    """A tensor that the host computes, with its shape and the host's steps for it.

    Attributes:
        shape: Its shape.
        steps: The host's steps that compute it; a MAP step names a map by its place in the tail's ``maps``.
    """

    shape: tuple[int, ...]
    steps: tuple[OutputStep, ...]


def with_tail(layers: Layers, operation: OnnxOperation, refusal: SystolicError) -> Layers | None:
    """Return the network with the operation left to the host; None if the host cannot compute it either.

    refusal: Why the operation cannot be a layer.
    """
    make = KINDS.get(operation.kind)
    if make is None:
        return None
    names = [name for name in operation.inputs if name]
    count = len(names) if operation.kind == "Concat" else 1
    sources = [_tail_of(layers, name) for name in names[:count]]
    if not sources or any(source is None for source in sources):
        return None
    tails = [source for source in sources if source is not None]
    maps = tuple(dict.fromkeys(index for tail in tails for index in tail.maps))
    moved = [_numbered(tail, maps) for tail in tails]
    try:
        parts = make(layers, operation, moved)
    except SystolicError:  # ``refusal`` is reported: it names the reason too
        return None
    if any(_is_too_much(part) for part in parts):
        return None
    refusals = tuple(dict.fromkeys(error for tail in tails for error in tail.refusals))
    made = [Tail(part.shape, maps, part.steps, refusals or (refusal,)) for part in parts]
    return layers.with_values(operation, *made)


def _is_too_much(part: _Part) -> bool:
    fits = 1 <= len(part.shape) <= MAX_SIDES and math.prod(part.shape) <= MAX_MAPS
    return not fits or min(part.shape) < 1 or len(part.steps) > MAX_STEPS


def _tail_of(layers: Layers, name: str) -> Tail | None:
    """Return a tensor as one that the host computes from node outputs; None if the host cannot compute it."""
    value = layers.value(name)
    if isinstance(value, Tail):
        return value
    if not isinstance(value, Map) or value.node == 0 or value.integers:
        return None
    if value.padding != NO_PADDING or value.crop is not None or value.inside:
        return None
    return Tail(value.shape, (value.node,), steps_of(value), ())


def steps_of(value: Map) -> tuple[OutputStep, ...]:
    """Return the host's steps that reshape and reorder a node's output to the tensor ``value``."""
    if value.moves is None:
        return view_steps(value.shape, value.last)
    parts, order = value.moves.parts, value.moves.order
    before = view_steps(parts, value.last)
    return *before, OutputStep(TRANSPOSE, order), OutputStep(RESHAPE, value.shape)


def _numbered(tail: Tail, maps: tuple[int, ...]) -> _Part:
    """Return a host-computed tensor with its input maps renumbered by their places in ``maps``."""
    places = [maps.index(index) for index in tail.maps]
    steps = (OutputStep(MAP, (places[step.numbers[0]],)) if step.kind == MAP else step for step in tail.steps)
    return _Part(tail.shape, tuple(steps))


# --- operations that the host computes -------------------------------------------------------------------------------

Make = Callable[[Layers, OnnxOperation, Sequence[_Part]], list[_Part]]


def _same(layers: Layers, operation: OnnxOperation, sources: Sequence[_Part]) -> list[_Part]:
    """Return the host-computed tensor unchanged, for an Identity, an inactive Dropout or a Cast between floats."""
    trains = layers.optional(operation, 2) if operation.kind == "Dropout" else None
    require(trains is None or not layers.constant(operation, 2).any(), "its training_mode is true")
    require(operation.kind != "Cast" or is_of_floats(operation), "it is not a Cast between floats")
    return [sources[0]]


def _viewed(layers: Layers, operation: OnnxOperation, sources: Sequence[_Part]) -> list[_Part]:
    (source,) = sources
    shape = VIEWS[operation.kind](layers, operation, source.shape)
    require(math.prod(shape) == math.prod(source.shape), "its output has another number of values")
    return [_Part(shape, (*source.steps, OutputStep(RESHAPE, shape)))]


def _transposed(_: Layers, operation: OnnxOperation, sources: Sequence[_Part]) -> list[_Part]:
    (source,) = sources
    order = operation.integers("perm", range(len(source.shape))[::-1])
    require(sorted(order) == list(range(len(source.shape))), "its perm is not an order of the axes")
    return [_Part(tuple(source.shape[axis] for axis in order), (*source.steps, OutputStep(TRANSPOSE, order)))]


def _softmax(layers: Layers, operation: OnnxOperation, sources: Sequence[_Part]) -> list[_Part]:
    """Return the host-computed tensor after a softmax along one axis or, before opset 13, over all sides from it on."""
    (source,) = sources
    later, shape = layers.opset >= LAST_AXIS_OPSET, source.shape
    axis = position_of(operation.integer("axis", -1 if later else 1), len(shape))
    require(axis > 0, OF_PICTURES)
    kind = "log_softmax" if operation.kind == "LogSoftmax" else "softmax"
    if later:
        return [_Part(shape, (*source.steps, OutputStep(kind, (axis,))))]
    rows = (math.prod(shape[:axis]), math.prod(shape[axis:]))
    return [
        _Part(shape, (*source.steps, OutputStep(RESHAPE, rows), OutputStep(kind, (1,)), OutputStep(RESHAPE, shape)))
    ]


def _sigmoid(_: Layers, __: OnnxOperation, sources: Sequence[_Part]) -> list[_Part]:
    (source,) = sources
    return [_Part(source.shape, (*source.steps, OutputStep("sigmoid")))]


def _concat(_: Layers, operation: OnnxOperation, sources: Sequence[_Part]) -> list[_Part]:
    first = sources[0].shape
    axis = position_of(operation.integer("axis", 1), len(first))
    require(axis > 0, OF_PICTURES)
    for source in sources:
        others = (*source.shape[:axis], *source.shape[axis + 1 :])
        fits = len(source.shape) == len(first) and others == (*first[:axis], *first[axis + 1 :])
        require(fits, "its tensors must have the same sides except along its axis")
    shape = (*first[:axis], sum(source.shape[axis] for source in sources), *first[axis + 1 :])
    steps = tuple(step for source in sources for step in source.steps)
    return [_Part(shape, (*steps, OutputStep(CONCAT, (len(sources), axis))))]


KINDS: Mapping[str, Make] = {
    **dict.fromkeys(("Cast", "Dropout", "Identity"), _same),
    **dict.fromkeys(VIEWS, _viewed),
    **dict.fromkeys(("LogSoftmax", "Softmax"), _softmax),
    "Concat": _concat,
    "Sigmoid": _sigmoid,
    "Transpose": _transposed,
}
"""The functions that add an operation to a tail, by kind."""

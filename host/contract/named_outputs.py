"""The outputs of a network's file, by name: the steps by which the host computes each output from the maps it reads.

An output's steps run on a stack of arrays. ``map`` pushes the map of one of the output's layers, ``(1, channels,
height, width)``, as real numbers. Every other step takes arrays from the top of the stack and pushes its result. After
the last step the stack holds the output alone.

    prob = softmax of a layer             map 0, softmax 1, reshape 1 10
    boxes of two sizes, concatenated      map 0, reshape 1 400 4, map 1, reshape 1 100 4, concat 2 1
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, RangeError, ShapeError
from host.contract.codec import OneOf, Range

Values = npt.NDArray[Any]
Sides = tuple[int, ...]

MAX_OUTPUTS = 256
MAX_STEPS = 1024
"""Maximum number of steps per output."""
MAX_NUMBERS = 64
"""Maximum number of numbers per step."""
MAX_VALUES = 1 << 28
"""Maximum number of values in the array that a step returns."""

MAP, RESHAPE, TRANSPOSE, CONCAT = "map", "reshape", "transpose", "concat"
SOFTMAX, LOG_SOFTMAX = "softmax", "log_softmax"
CHOSEN_LABELS, CHOSEN_VALUES = "labels", "greatest"
SIGMOID, WHOLE = "sigmoid", "whole"


def _exponentials(values: Values, axis: int) -> tuple[Values, Values]:
    """Return the two parts of a softmax: the values minus their maximum, and the sum of the exponentials of these."""
    lowered = np.asarray(values - values.max(axis=axis, keepdims=True))
    return lowered, np.exp(lowered).sum(axis=axis, keepdims=True)


def _softmax(values: Values, axis: int) -> Values:
    lowered, total = _exponentials(values, axis)
    return np.asarray(np.exp(lowered) / total)


def _log_softmax(values: Values, axis: int) -> Values:
    lowered, total = _exponentials(values, axis)
    return np.asarray(lowered - np.log(total))


def _labels(values: Values, k: int) -> Values:
    """Return the numbers of the k channels with the greatest values at each position; the lower number precedes among
    equal values."""
    if k == 1:
        return np.asarray(values.argmax(axis=1)[:, None], np.int64)
    return np.asarray(np.argsort(-values, axis=1, kind="stable")[:, :k], np.int64)


def _greatest(values: Values, k: int) -> Values:
    return np.take_along_axis(values, _labels(values, k), axis=1)


def _sigmoid(values: Values) -> Values:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -700, 700))))


def _whole(values: Values) -> Values:
    """Return labels, which are floats with whole values, as int64."""
    return np.asarray(values, np.int64)


ALONG: Mapping[str, Callable[[Values, int], Values]] = {SOFTMAX: _softmax, LOG_SOFTMAX: _log_softmax}
"""Functions over all values along an axis."""

CHOOSE: Mapping[str, Callable[[Values, int], Values]] = {CHOSEN_LABELS: _labels, CHOSEN_VALUES: _greatest}
"""Functions that choose some of the channels (axis 1) at each position."""

EACH: Mapping[str, Callable[[Values], Values]] = {SIGMOID: _sigmoid, WHOLE: _whole}
"""Functions of each value by itself."""

KINDS = (MAP, RESHAPE, TRANSPOSE, CONCAT, *ALONG, *CHOOSE, *EACH)


@dataclass(frozen=True)
class OutputStep:
    """One operation by which the host computes an output of the network's file from the accelerator's feature maps.

    Attributes:
        kind: The operation.
        numbers: Its numbers. ``map``: an index into the output's layers. ``reshape``: the shape. ``transpose``: the
            order of the axes. ``concat``: the number of arrays and the axis. ALONG: the axis. CHOOSE: the number of
            channels.
    """

    kind: Annotated[str, OneOf(KINDS)]
    numbers: tuple[Annotated[int, Range(0, 1 << 31)], ...]


@dataclass(frozen=True)
class OutputTensor:
    """An output of the network's file, with the operations by which the host computes it.

    Attributes:
        name: The output's name.
        layers: Indices of the layers whose maps it is computed from.
        steps: The steps that compute it.
    """

    name: str
    layers: tuple[Annotated[int, Range(0, 1 << 20)], ...]
    steps: tuple[OutputStep, ...]


def sides_of(steps: Sequence[OutputStep], maps: Sequence[Sides]) -> Sides:
    """Return the shape of an output that steps compute from feature maps. An error if a step does not fit the arrays on
    the stack.

    Args:
        steps: The output's steps.
        maps: Shape ``(1, channels, height, width)`` of each of the output's maps.
    """
    if len(steps) > MAX_STEPS:
        raise RangeError("the number of steps of an output", len(steps), 1, MAX_STEPS)
    stack: list[Sides] = []
    for step in steps:
        taken = _count(step)
        _require(
            len(step.numbers) <= MAX_NUMBERS and 0 <= taken <= len(stack),
            step,
            "numbers that take no more arrays than the stack holds",
        )
        arrays = stack[len(stack) - taken :]
        del stack[len(stack) - taken :]
        sides = _sides_after(step, arrays, maps)
        if math.prod(sides) > MAX_VALUES:
            raise RangeError(f"the number of values after the step {step.kind}", math.prod(sides), 1, MAX_VALUES)
        stack.append(sides)
    if len(stack) != 1:
        raise ShapeError("the steps of an output", f"{len(stack)} arrays", "exactly one array at the end")
    return stack[0]


def tells_classes(steps: Sequence[OutputStep], maps: Sequence[Sides]) -> bool:
    """Return whether an output of the network's file has one value per class and nothing else.

    Its steps may reshape or transpose one map, and apply a softmax or log-softmax over all values of it.
    """
    for number, step in enumerate(steps):
        if step.kind in ALONG:
            sides = sides_of(steps[:number], maps)
            if sides[step.numbers[0]] != math.prod(sides):
                return False
        elif step.kind not in (MAP, RESHAPE, TRANSPOSE):
            return False
    return True


def run_steps(steps: Sequence[OutputStep], maps: Sequence[Values]) -> Values:
    """Compute an output of the network's file by its steps, from feature maps: float32, or int64 if it holds labels.

    Args:
        steps: The output's steps. They fit the maps, as ``sides_of`` has checked.
        maps: The real numbers of each of the output's maps, ``(channels, height, width)``.
    """
    stack: list[Values] = []
    for step in steps:
        taken, numbers = _count(step), step.numbers
        arrays = stack[len(stack) - taken :]
        del stack[len(stack) - taken :]
        if step.kind == MAP:
            result = maps[numbers[0]][None].astype(np.float64)
        elif step.kind == RESHAPE:
            result = arrays[0].reshape(numbers)
        elif step.kind == TRANSPOSE:
            result = arrays[0].transpose(numbers)
        elif step.kind == CONCAT:
            result = np.concatenate(arrays, axis=numbers[1])
        elif step.kind in EACH:
            result = EACH[step.kind](arrays[0])
        else:
            result = {**ALONG, **CHOOSE}[step.kind](arrays[0], numbers[0])
        stack.append(result)
    (output,) = stack
    return np.ascontiguousarray(output, output.dtype if output.dtype.kind == "i" else np.float32)


def _count(step: OutputStep) -> int:
    """Return the number of arrays that an output step takes from the stack."""
    if step.kind == CONCAT:
        _require(len(step.numbers) == 2 and 1 <= step.numbers[0] <= MAX_STEPS, step, "a count of arrays and an axis")
        return step.numbers[0]
    return 0 if step.kind == MAP else 1


def _sides_after(step: OutputStep, arrays: Sequence[Sides], maps: Sequence[Sides]) -> Sides:
    kind, numbers = step.kind, step.numbers
    if kind == MAP:
        _require(len(numbers) == 1 and numbers[0] < len(maps), step, f"one of {len(maps)} maps")
        return maps[numbers[0]]
    first = arrays[0]
    if kind == RESHAPE:
        _require(math.prod(numbers) == math.prod(first), step, f"a shape of {math.prod(first):,} values, as {first}")
        return numbers
    if kind == TRANSPOSE:
        _require(sorted(numbers) == list(range(len(first))), step, f"every axis of {first} once")
        return tuple(first[axis] for axis in numbers)
    if kind == CONCAT:
        return _joined(step, arrays)
    if kind in EACH:
        _require(not numbers, step, "no number")
        return first
    required = f"an axis of {first}" if kind in ALONG else f"a number of channels of {first}"
    _require(len(numbers) == 1, step, required)
    if kind in ALONG:
        _require(numbers[0] < len(first), step, required)
        return first
    _require(len(first) > 1 and 1 <= numbers[0] <= first[1], step, required)
    return (first[0], numbers[0], *first[2:])


def _joined(step: OutputStep, arrays: Sequence[Sides]) -> Sides:
    axis, first = step.numbers[1], arrays[0]
    fits = axis < len(first) and all(
        len(sides) == len(first) and sides[:axis] == first[:axis] and sides[axis + 1 :] == first[axis + 1 :]
        for sides in arrays
    )
    _require(fits, step, f"an axis of {first}, with all other sides equal")
    return (*first[:axis], sum(sides[axis] for sides in arrays), *first[axis + 1 :])


def _require(fits: bool, step: OutputStep, required: str) -> None:
    if not fits:
        raise InvalidValueError(f"the numbers of the step {step.kind}", step.numbers, required)

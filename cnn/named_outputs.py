"""The outputs of the file that a network came from: each by its name, and how the host makes it of maps that leave.

An output is worked out by steps on a stack of arrays, as ``host.contract.named_outputs`` runs them:

    prob = softmax(conv)            map 0, softmax 1
    flat = conv, channels last      map 0, transpose 0 2 3 1, reshape 1 2048 2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST_OUTPUTS = 256
"""That a file may have."""

MAP, RESHAPE, TRANSPOSE, CONCAT = "map", "reshape", "transpose", "concat"


@dataclass(frozen=True)
class OutputStep:
    """One step, by its kind in ``host.contract.named_outputs.KINDS``, with its numbers."""

    kind: str
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class NamedOutput:
    """An output of a file. nodes: by their names, those whose values it is made of; a step ``map`` numbers them.

    A node keeps its name through every pass, which moves it to another index.
    """

    name: str
    nodes: tuple[str, ...]
    steps: tuple[OutputStep, ...]


def view_steps(sides: Sequence[int], last: bool) -> tuple[OutputStep, ...]:
    """From the map of an output's first node to the sides that the file gives it, 1 in front.

    last: the channels stand last there.
    """
    turned = (OutputStep(TRANSPOSE, (0, 2, 3, 1)),) * last
    return OutputStep(MAP, (0,)), *turned, OutputStep(RESHAPE, tuple(sides))

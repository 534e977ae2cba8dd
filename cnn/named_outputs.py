"""The outputs of a network's file: their names, and the steps by which the host computes them from maps.

The steps of an output work on a stack of arrays. ``host.contract.named_outputs`` runs them:

    prob = softmax(conv)            map 0, softmax 1
    flat = conv, channels last      map 0, transpose 0 2 3 1, reshape 1 2048 2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MAX_OUTPUTS = 256
"""The most outputs of one file."""

MAP, RESHAPE, TRANSPOSE, CONCAT = "map", "reshape", "transpose", "concat"


@dataclass(frozen=True)
class OutputStep:
    """One host operation, such as a transpose or softmax, of the sequence that computes a named network output.

    Attributes:
        kind: One of ``host.contract.named_outputs.KINDS``.
        numbers: The step's parameters.
    """

    kind: str
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class NamedOutput:
    """An output that the network's file names, and the steps by which the host computes it from node outputs.

    Attributes:
        name: The output's name in the file.
        nodes: The names of the nodes whose maps the steps read. A step ``map`` has the index in this tuple. Names are
            stored because passes change the indices of nodes.
        steps: The steps that compute the output.
    """

    name: str
    nodes: tuple[str, ...]
    steps: tuple[OutputStep, ...]


def view_steps(sides: Sequence[int], last: bool) -> tuple[OutputStep, ...]:
    """Return the steps that reshape the map of an output's first node to the shape that the output has in the file.

    Args:
        sides: The output's shape in the file, with a leading 1 for the batch.
        last: Whether the channels are the last dimension of that shape.
    """
    turned = (OutputStep(TRANSPOSE, (0, 2, 3, 1)),) * last
    return OutputStep(MAP, (0,)), *turned, OutputStep(RESHAPE, tuple(sides))

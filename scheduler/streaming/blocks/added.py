"""The description of a block that a package adds, with all that the stages of the flow need (docs/how-to/extend.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from boards.board import Board
from scheduler.streaming.area.part import Part
from scheduler.streaming.blocks.kind import Kind
from scheduler.streaming.folded_block import Constraint, FoldedBlock
from scheduler.streaming.model.lag import Lag


@dataclass(frozen=True, eq=False)
class AddedBlock:
    """The hardware block of a layer that a package adds: its C++ template, and the functions for its cycles, resources
    and lag.

    All functions are called with the block and its fold. The parameters of the layer are in ``place.op.parameters``.

    Attributes:
        function: The name of a template function in ``header``. Its arguments are ``frames``, the input streams and the
            output streams.
        header: The file name of the header.
        files: The text of the header and of other headers that it includes, by file name. Headers of hls_templates are
            available without an entry.
        kind: The block's parallelism, pipeline depth and padding.
        arguments: Returns the C++ template arguments of ``function``.
        steps: Returns the iterations of the block's hardware loop per frame.
        parts: Returns the hardware parts of the block with their resources, without its control logic.
        lag: Returns how much of a frame the block has read but not yet written (a ``Lag``), without its pipeline. With
            None, the block writes one word for each word that it reads.
        rules: The constraints on the block's fold. The lanes must divide the channels of all maps even without a rule.
    """

    function: str
    header: str
    files: Mapping[str, str]
    kind: Kind
    arguments: Callable[[FoldedBlock], Sequence[object]]
    steps: Callable[[FoldedBlock], int]
    parts: Callable[[FoldedBlock, Board], Sequence[Part]]
    lag: Callable[[FoldedBlock], Lag] | None = None
    rules: tuple[Constraint, ...] = ()

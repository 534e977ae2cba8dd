"""A block that a package adds, as one value: what every stage of a pipeline asks of it (docs/how-to/extend.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scheduler.streaming.blocks.kind import Kind

if TYPE_CHECKING:
    from boards.board import Board
    from scheduler.streaming.area.part import Part
    from scheduler.streaming.folded_block import FoldedBlock
    from scheduler.streaming.model.lag import Lag
    from scheduler.streaming.rules import Constraint


@dataclass(frozen=True, eq=False)
class AddedBlock:
    """Hardware of a package's layer. Its functions get the block with its fold, and its layer's parameters in
    ``place.op.parameters``.

    function: of ``header``, with the streams that come and then those that leave behind ``frames``. files: name → text
    of that header and of others that it includes, besides those of hls_templates. kind: its words and its pipeline.
    arguments: of the template. steps: iterations of its loop for one frame, as the header counts them. parts: what it
    takes of a board besides the control. lag: how much of a frame comes before a word leaves, its pipeline left out;
    None where each word leaves with the one that came. rules: what its fold has to keep besides that its lanes divide
    the channels of all its maps.
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

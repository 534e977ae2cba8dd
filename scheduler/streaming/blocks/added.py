"""A block that a package adds, as one value: what every stage of a pipeline asks of it (docs/how-to/extend.md)."""

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
    """The hardware of a package's layer.

    Its functions are called with the block and its fold. The parameters of its layer are in ``place.op.parameters``.

    Attributes:
        function: A function of ``header``; after ``frames`` it takes its input streams, then its output streams.
        header: The name of the header.
        files: The text of that header and of others that it includes, by name; those of hls_templates are there.
        kind: Its words and its pipeline.
        arguments: Returns the arguments of the template.
        steps: Returns the iterations of its loop for one frame, as the header counts them.
        parts: Returns what it takes of a board in addition to the control.
        lag: Returns how much of a frame it reads before it writes a word, without its pipeline; None if each word that
            it reads gives one.
        rules: What its fold has to keep, in addition to lanes that divide the channels of all its maps.
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

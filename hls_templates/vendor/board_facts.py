"""The facts about a board that the vendor's files need, as protocols.

The classes of ``boards.board`` implement them. This package does not import ``boards.board``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Interface(Protocol):
    """An AXI interface of the processing system (PS): its name, its clock pin, and the CONFIG key that enables it."""

    @property
    def name(self) -> str: ...
    @property
    def clock(self) -> str: ...
    @property
    def enable(self) -> str: ...


class PortFacts(Interface, Protocol):
    """A slave port of the PS (``boards.board.Port``): its width, coherency, and port of the DDR controller."""

    @property
    def width(self) -> str: ...
    @property
    def bits(self) -> int: ...
    @property
    def coherent(self) -> bool: ...
    @property
    def controller_port(self) -> int: ...


class ControlFacts(Interface, Protocol):
    """The PS's master for register accesses (``boards.board.Control``), with its address window."""

    @property
    def base(self) -> int: ...
    @property
    def bytes(self) -> int: ...


class PsFacts(Protocol):
    """The pins and CONFIG keys of the PS's Vivado IP (``boards.board.Ps``)."""

    @property
    def ip(self) -> str: ...
    @property
    def vlnv(self) -> str: ...
    @property
    def clock(self) -> str: ...
    @property
    def clock_mhz_key(self) -> str: ...
    @property
    def clock_source_key(self) -> str: ...
    @property
    def reset(self) -> str: ...
    @property
    def interrupt(self) -> str: ...
    @property
    def interrupt_key(self) -> str: ...


class ClockFacts(Protocol):
    """A clock for the PL that the PS generates (``boards.board.Clock``)."""

    @property
    def mhz(self) -> float: ...
    @property
    def pll(self) -> str: ...
    @property
    def divisor0(self) -> int: ...
    @property
    def divisor1(self) -> int: ...


class FloorplanFacts(Protocol):
    """The places of the DSPs on the die (``boards.facts.Floorplan``)."""

    @property
    def region(self) -> int: ...
    @property
    def cascade(self) -> int: ...
    @property
    def region_columns(self) -> Sequence[tuple[int, int]]: ...


class BoardFacts(Protocol):
    """The facts about a board that the vendor's files need (``boards.board.Board``)."""

    @property
    def title(self) -> str: ...
    @property
    def part(self) -> str: ...
    @property
    def board_part(self) -> str: ...
    @property
    def ports(self) -> Sequence[PortFacts]: ...
    @property
    def control(self) -> ControlFacts: ...
    @property
    def ps(self) -> PsFacts: ...

    @property
    def floorplan(self) -> FloorplanFacts | None: ...

    def clocks(self, maximum_mhz: float | None = None) -> Sequence[ClockFacts]: ...

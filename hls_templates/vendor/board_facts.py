"""What of a board the vendor's tools are told. ``boards.board`` has it all; this room does not import it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Interface(Protocol):
    """An AXI interface of the PS: its name, its clock pin, and the CONFIG key that switches it on."""

    @property
    def name(self) -> str: ...
    @property
    def clock(self) -> str: ...
    @property
    def enable(self) -> str: ...


class PortFacts(Interface, Protocol):
    """A slave port of the PS; ``boards.board.Port`` is one."""

    @property
    def width(self) -> str: ...
    @property
    def bits(self) -> int: ...
    @property
    def coherent(self) -> bool: ...
    @property
    def controller_port(self) -> int: ...


class ControlFacts(Interface, Protocol):
    """The master through which registers are reached; ``boards.board.Control`` is one."""

    @property
    def base(self) -> int: ...
    @property
    def bytes(self) -> int: ...


class PsFacts(Protocol):
    """Names on the PS's Vivado IP; ``boards.board.Ps`` is one."""

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
    """A PL clock that the PS produces; ``boards.board.Clock`` is one."""

    @property
    def mhz(self) -> float: ...
    @property
    def pll(self) -> str: ...
    @property
    def divisor0(self) -> int: ...
    @property
    def divisor1(self) -> int: ...


class BoardFacts(Protocol):
    """What of a board the vendor's tools are told; ``boards.board.Board`` is one."""

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

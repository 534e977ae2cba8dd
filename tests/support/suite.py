"""The rules of the suite, which tests/conftest.py applies: costs, shares, and where a test may connect to."""

from __future__ import annotations

import hashlib
import ipaddress
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

COSTS = ("engine", "proof", "campaign")
"""Markers of the tests that are not in the default suite. Each marker has its own command."""

MAX_WORKERS = 8
"""The most processes of a parallel run. Each one collects all tests, so that more processes would be slower."""


def costs_of(names: Iterable[str]) -> list[str]:
    """Return the cost markers among the names of a test's markers."""
    given = set(names)
    return [cost for cost in COSTS if cost in given]


def share_of(text: str) -> tuple[int, int]:
    """Return (part, parts) of ``K/N``, the value of ``--share``. Raises ValueError if it has another form."""
    part, slash, parts = text.partition("/")
    if not slash or not 0 <= int(part) < int(parts):
        raise ValueError(f"--share takes K/N with 0 <= K < N; got {text!r}")
    return int(part), int(parts)


def parts_of(units: Sequence[str], seconds: Mapping[str, float], parts: int) -> dict[str, int]:
    """Return the part of each unit, 0 to ``parts - 1``, so that every part takes about the same time.

    The units whose seconds are known go to the part that has least so far, the longest first. A unit that is not known
    goes where the hash of its name says, so that a new test does not move the others.
    """
    chosen = {unit: int(hashlib.sha256(unit.encode()).hexdigest(), 16) % parts for unit in units if unit not in seconds}
    loads = [0.0] * parts
    for unit in sorted((unit for unit in units if unit in seconds), key=lambda unit: (-seconds[unit], unit)):
        chosen[unit] = loads.index(min(loads))
        loads[chosen[unit]] += seconds[unit]
    return chosen


def workers(arguments: Sequence[str], cores: int) -> int:
    """Return the number of processes that run the tests that the command line names, 0 for pytest's own.

    Single test files run faster without workers, and with what they print.
    """
    named = [argument for argument in arguments if argument.partition("::")[0].endswith(".py")]
    few = len(arguments) > 0 and len(named) == len(arguments)
    return 0 if few or cores < 2 else min(cores, MAX_WORKERS)


def is_own_machine(address: object) -> bool:
    """Return whether a socket's address is a file or a port of this machine."""
    if not isinstance(address, tuple):
        return True
    host = str(address[0])
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host in ("", "localhost")


def guarded(connect: Callable[[socket.socket, Any], Any], allowed: Callable[[], bool]) -> Callable[..., Any]:
    """Return ``connect`` of a socket that refuses other machines unless ``allowed`` returns True.

    Datagram sockets send nothing when they connect; programs ask them for the machine's own address.
    """

    def connect_to(own: socket.socket, address: Any) -> Any:
        if own.type == socket.SOCK_STREAM and not is_own_machine(address) and not allowed():
            raise AssertionError(f"a test of the default suite connects to {address}; mark it with 'campaign'")
        return connect(own, address)

    return connect_to

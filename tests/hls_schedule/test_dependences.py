"""Tests of the iteration that a load waits for, if only the order of the memory accesses is known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hls_schedule.dependences import Dependence, Dependences
from hls_schedule.reading.addresses import Linear
from hls_schedule.reading.ir import Access


def of(*accesses: Access) -> Dependences:
    """Return the dependences of a loop with one access per operation, at addresses that depend on the data."""
    operations = [
        SimpleNamespace(index=index, accesses=(access,), inputs=(), name=access.offset.terms[0][0], text="")
        for index, access in enumerate(accesses)
    ]
    loop: Any = SimpleNamespace(operations=operations, carried=(), steps={})
    ports: Any = SimpleNamespace(in_different_partitions=lambda one, other: False)
    return Dependences(loop, ports)


def at(value: str, store: bool) -> Access:
    return Access("words", store, Linear(((value, 4),), 0), 4, register=False, stream=False)


def test_load_at_an_unknown_address_depends_on_the_latest_store() -> None:
    """Check loads at unknown addresses, of which any two may be equal.

    A load after the store depends on the store of its own iteration. A load before the store depends on the store of
    the previous iteration."""
    after = of(at("a", store=True), at("b", store=False))
    assert (after.within, after.carried) == ((Dependence(0, 1, 0, True),), ())
    before = of(at("a", store=False), at("b", store=True))
    assert (before.within, before.carried) == ((), (Dependence(1, 0, 1, True),))

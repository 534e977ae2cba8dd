"""Which iteration a load waits for, where nothing but the order of the accesses is known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hls_schedule.dependences import Dependence, Dependences
from hls_schedule.reading.addresses import Linear
from hls_schedule.reading.ir import Access


def of(*accesses: Access) -> Dependences:
    """The dependences of a loop of one access in each operation, at addresses that the data say."""
    operations = [
        SimpleNamespace(index=index, accesses=(access,), inputs=(), name=access.offset.terms[0][0], text="")
        for index, access in enumerate(accesses)
    ]
    loop: Any = SimpleNamespace(operations=operations, carried=(), steps={})
    ports: Any = SimpleNamespace(apart=lambda one, other: False)
    return Dependences(loop, ports)


def at(value: str, store: bool) -> Access:
    return Access("words", store, Linear(((value, 4),), 0), 4, register=False, stream=False)


def test_a_load_waits_for_the_store_before_it_and_for_that_of_the_iteration_before_it() -> None:
    """Addresses of two values may be the same one: of a load after the store in this iteration, of one before the store
    when the next iteration loads."""
    after = of(at("a", store=True), at("b", store=False))
    assert (after.within, after.carried) == ((Dependence(0, 1, 0, True),), ())
    before = of(at("a", store=False), at("b", store=True))
    assert (before.within, before.carried) == ((), (Dependence(1, 0, 1, True),))

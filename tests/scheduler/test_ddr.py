"""The share of the DDR that each port gets if several ports are busy."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from scheduler.hardware.ddr import milli_cycles


@given(st.sampled_from((1, 2, 4)), st.sampled_from((2, 4, 8, 16)), st.integers(100, 100_000))
def test_milli_cycles_ports_of_one_kind_do_not_exceed_the_ddr(ports: int, word: int, milli_bytes: int) -> None:
    # The function counts a few turns of whole chunks. The ports of all boards have 64 or 128 bits.
    (pace,) = milli_cycles(((ports, word, 64),), milli_bytes)
    assert pace * milli_bytes >= 0.99 * ports * word * 1_000_000


def test_milli_cycles_fast_ddr_gives_one_cycle_per_word() -> None:
    assert milli_cycles(((2, 16, 64),), 64_000) == (1000,)


def test_milli_cycles_slow_ddr_is_shared_equally() -> None:
    maps, weights = milli_cycles(((1, 16, 64), (2, 16, 64)), 12_000)
    assert abs(maps - 4000) <= 40
    assert abs(weights - 4000) <= 40


def test_milli_cycles_short_bursts_get_fewer_bytes_per_turn() -> None:
    """Bursts of 7 words of 4 bytes compete with chunks of 64 bytes. A turn is 92 bytes, at 7.14 bytes per cycle."""
    rows, weights = milli_cycles(((1, 4, 7), (1, 8, 64)), 7140)
    assert abs(rows - 1000 * 92 / 7.14 / 7) <= 20
    assert abs(weights - 1000 * 92 / 7.14 / 8) <= 20


def test_milli_cycles_slow_port_waits_for_one_chunk_at_most() -> None:
    # The slow port takes 1 of 11 bytes per cycle: 64 cycles per chunk, and up to 64 / 11 for a chunk of the other.
    slow, fast = milli_cycles(((1, 1, 64), (1, 16, 64)), 11_000)
    assert 1000 <= slow <= 1000 * (1 + 1 / 11) + 1
    assert abs(fast - 1600) <= 40


def served(kinds: tuple[tuple[int, int, int], ...], rate: Fraction) -> list[int]:
    """Return the milli-cycles per word of the first port of each kind, simulated chunk by chunk.

    The port that has waited longest is served next. rate: Bytes per cycle.
    """
    ports = [(kind, width, burst) for kind, (number, width, burst) in enumerate(kinds) for _ in range(number)]
    idle_from, moved = [Fraction(0)] * len(ports), [0] * len(ports)
    ddr_from, halfway = Fraction(0), [(Fraction(0), 0)] * len(ports)
    for turn in range(48 * len(ports)):
        if turn == 24 * len(ports):
            halfway = list(zip(idle_from, moved, strict=True))
        port = idle_from.index(min(idle_from))
        _, width, burst = ports[port]
        words = min(max(1, 64 // width), burst - moved[port] % burst)
        begin = max(ddr_from, idle_from[port])
        ddr_from = begin + words * width / rate
        idle_from[port] = Fraction(ceil(begin) + words)
        moved[port] += words
    first = [next(place for place, (kind, _, _) in enumerate(ports) if kind == number) for number in range(len(kinds))]
    return [ceil(1000 * (idle_from[port] - halfway[port][0]) / (moved[port] - halfway[port][1])) for port in first]


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from((1, 2, 3, 8, 16, 64, 128)), st.integers(1, 64)),
        min_size=1,
        max_size=3,
    ),
    st.integers(200, 70_000),
)
def test_milli_cycles_equal_a_simulation_of_chunks(kinds: list[tuple[int, int, int]], milli_bytes: int) -> None:
    assert list(milli_cycles(tuple(kinds), milli_bytes)) == served(tuple(kinds), Fraction(milli_bytes, 1000))

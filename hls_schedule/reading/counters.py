"""Counters of a loop: the step by which each loop-carried value advances, also in loops that were flattened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from hls_schedule.reading.addresses import Addresses, Linear
from hls_schedule.reading.llvm_text import Instruction, phi_ways, split

MAX_DEPTH = 32
"""Limit for the length of a chain of selects that is followed."""


@dataclass(frozen=True)
class Counters:
    """The counters of one loop: loop-carried values that advance by a constant step.

    Attributes:
        addresses: The addresses and integers of the function.
        definitions: The instructions of the loop.
        latches: The value that each loop-carried value has after the iteration.
        starts: The values that each loop-carried value may have before the loop.
    """

    addresses: Addresses
    definitions: Mapping[str, Instruction]
    latches: Mapping[str, str]
    starts: Mapping[str, Sequence[str]]

    def steps(self) -> dict[str, int]:
        """Return the step of each counter per iteration, by its name in LLVM IR; 0 if it may keep its value. A value
        that depends on data has no entry."""
        choices = [name for name, instruction in self.definitions.items() if instruction.opcode in ("select", "phi")]
        steps = ((name, self._step(name)) for name in {**self.latches, **dict.fromkeys(choices)})
        return {name: step for name, step in steps if step is not None}

    def multiples(self) -> dict[str, int]:
        """Return a number that divides each counter at all times, for counters that begin and end at known numbers."""
        known = {}
        for name, step in self.steps().items():
            starts = [self.addresses.value(start) for start in self.starts.get(name, ())]
            resets = [leaf for leaf in self._leaves(self.latches.get(name, name)) if not leaf.terms]
            if starts and not any(start.terms for start in starts):
                known[name] = gcd(step, *(value.constant for value in (*starts, *resets)))
        return {name: number for name, number in known.items() if number}

    def _step(self, name: str) -> int | None:
        """Return the smallest step of a value that each iteration advances by a constant or resets to one; None for
        other values."""
        added = [self._added(name, leaf) for leaf in self._leaves(self.latches.get(name, name)) if leaf.terms]
        if None in added:
            return None
        return min((number for number in added if number is not None), key=abs, default=0)

    def _added(self, name: str, leaf: Linear) -> int | None:
        """Return what one possible new value adds to the value of ``name`` in the iteration before; None if it is not
        such a sum."""
        if leaf.terms == ((name, 1),):
            return leaf.constant
        if len(leaf.terms) != 1 or leaf.terms[0][1] != 1 or leaf.terms[0][0] not in self.latches:
            return None
        handed = self.addresses.value(self.latches[leaf.terms[0][0]])
        return leaf.constant + handed.constant if handed.terms == ((name, 1),) else None

    def _leaves(self, operand: str) -> tuple[Linear, ...]:
        """Return the values that a chain of selects and phis can return, each once, as linear sums.

        Keeping each value once bounds the work: n selects of the same two values in a chain have 2ⁿ ways.
        """
        leaves: dict[Linear, None] = {}
        chosen = [self.addresses.value(operand)]
        for _ in range(MAX_DEPTH + 1):
            ways = dict.fromkeys(way for linear in chosen for way in self._chosen_from(linear, leaves))
            chosen = [way for way in ways if way not in leaves]
        return (*leaves, *chosen)

    def _chosen_from(self, linear: Linear, leaves: dict[Linear, None]) -> Iterator[Linear]:
        """Yield the values that a select or a phi chooses from, as linear sums; add any other value to ``leaves``."""
        single = len(linear.terms) == 1 and linear.terms[0][1] == 1 and linear.terms[0][0] not in self.latches
        choice = self.definitions.get(linear.terms[0][0]) if single else None
        if choice is None or choice.opcode not in ("select", "phi"):
            leaves[linear] = None
            return
        for way in _ways(choice):
            yield self.addresses.value(way).plus(Linear((), linear.constant))


def _ways(chosen: Instruction) -> Iterator[str]:
    """Yield the operands that a select or a phi instruction chooses from."""
    if chosen.opcode == "select":
        yield from split(chosen.text)[1:3]
        return
    for value, _ in phi_ways(chosen.text):
        yield value

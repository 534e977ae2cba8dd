"""What an iteration adds to the values that it hands on: counters, also those of loops that were joined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hls_schedule.reading.addresses import Addresses, Linear
from hls_schedule.reading.llvm_text import Instruction, split

DEEPEST = 32
"""Choices behind each other that are followed."""


@dataclass(frozen=True)
class Counters:
    """Of one loop. definitions: its instructions. latches: loop-carried value → what the iteration leaves in it."""

    addresses: Addresses
    definitions: Mapping[str, Instruction]
    latches: Mapping[str, str]

    def steps(self) -> dict[str, int]:
        """Value → what is added to it while it runs; 0 where it may stay. A value that depends on data has no entry."""
        choices = [name for name, instruction in self.definitions.items() if instruction.opcode in ("select", "phi")]
        steps = ((name, self._step(name)) for name in {**self.latches, **dict.fromkeys(choices)})
        return {name: step for name, step in steps if step is not None}

    def _step(self, name: str) -> int | None:
        """A counter starts again at a constant; each of its other ways adds to it."""
        added = [self._added(name, leaf) for leaf in self._leaves(self.latches.get(name, name)) if leaf.terms]
        if None in added:
            return None
        return min((number for number in added if number is not None), key=abs, default=0)

    def _added(self, name: str, leaf: Linear) -> int | None:
        """What comes on top of ``name`` of the iteration before, where a leaf of its value is taken."""
        if leaf.terms == ((name, 1),):
            return leaf.constant
        if len(leaf.terms) != 1 or leaf.terms[0][1] != 1 or leaf.terms[0][0] not in self.latches:
            return None
        handed = self.addresses.value(self.latches[leaf.terms[0][0]])
        return leaf.constant + handed.constant if handed.terms == ((name, 1),) else None

    def _leaves(self, operand: str) -> tuple[Linear, ...]:
        """What a value is chosen from, each once: choices of the same two values behind each other have as many ways
        as two to their number."""
        leaves: dict[Linear, None] = {}
        chosen = [self.addresses.value(operand)]
        for _ in range(DEEPEST + 1):
            ways = dict.fromkeys(way for linear in chosen for way in self._chosen_from(linear, leaves))
            chosen = [way for way in ways if way not in leaves]
        return (*leaves, *chosen)

    def _chosen_from(self, linear: Linear, leaves: dict[Linear, None]) -> Iterator[Linear]:
        """The ways of a choice; of another value none, and it is one of the leaves."""
        single = len(linear.terms) == 1 and linear.terms[0][1] == 1 and linear.terms[0][0] not in self.latches
        choice = self.definitions.get(linear.terms[0][0]) if single else None
        if choice is None or choice.opcode not in ("select", "phi"):
            leaves[linear] = None
            return
        for way in _ways(choice):
            yield self.addresses.value(way).plus(Linear((), linear.constant))


def _ways(chosen: Instruction) -> Iterator[str]:
    """Values that a select or a phi chooses from."""
    if chosen.opcode == "select":
        yield from split(chosen.text)[1:3]
        return
    for way in split(chosen.text.partition(" ")[2]):
        yield split(way.strip("[] "))[0]

"""The verdict on an interrupted command: its result is the old or the new one, with an exit status and a sentence."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from host.simulated.pace import CYCLES
from tests.fuzz.kills.scenarios import Scenario
from tests.fuzz.kills.tree import Tree, below, is_hidden, same, untimed
from tests.fuzz.kills.workshop import Fault, Outcome

STOPPED = {
    signal.SIGINT: (130,),
    signal.SIGTERM: (143, -signal.SIGTERM),
    signal.SIGKILL: (-signal.SIGKILL,),
}
REFUSALS = ("add --force to replace it", "another run is writing it")


@dataclass(frozen=True)
class Clean:
    """The result of a scenario that is not interrupted.

    Attributes:
        scenario: The command and the files before it.
        after: The files after it.
        volatile: The files whose content differs between runs, for example because of measured seconds.
        calls: The number of calls that changed files.
    """

    scenario: Scenario
    after: Tree
    volatile: frozenset[str]
    calls: int


def complaints(clean: Clean, fault: Fault, outcome: Outcome) -> list[str]:
    """Return the complaints about an interrupted run."""
    wrong = [*_mixtures(clean, outcome.tree), *_words(outcome)]
    whole = _is_after(clean, outcome.tree)
    hidden = [name for name in (*outcome.tree, *outcome.temporary) if is_hidden(name)]
    if fault.signal == signal.SIGSTOP:
        return wrong + [f"left {name}" for name in hidden] + _two(clean, outcome, whole)
    (code,) = outcome.codes
    allowed = STOPPED[signal.Signals(fault.signal)] if fault.signal else (0, 2)
    if code not in allowed:
        wrong.append(f"exit status {code}, {' or '.join(map(str, allowed))} wanted")
    if code == 0 and not whole:
        wrong.append("exit status 0, and not everything is written")
    if fault.signal in (signal.SIGINT, signal.SIGTERM):
        wrong += [f"left {name}" for name in (*hidden, *outcome.temporary)]
    return wrong


def _two(clean: Clean, outcome: Outcome, whole: bool) -> list[str]:
    """Return the complaints about two runs at the same time.

    One of them must write its result. The other must write it too, or be refused with one of REFUSALS.
    """
    wrong = [] if whole else ["two runs, and not everything is written"]
    refused = [error for code, error in zip(outcome.codes, outcome.errors, strict=True) if code == 2]
    if len(refused) != sum(code != 0 for code in outcome.codes) or len(refused) > 1:
        wrong.append(f"two runs end with {outcome.codes}")
    if not all(any(words in error for words in REFUSALS) for error in refused):
        wrong.append("a run at the same time is refused with other words")
    if clean.scenario.whole and "--force" not in clean.scenario.arguments and outcome.codes == (0, 0):
        wrong.append("two runs have both written one folder")
    return wrong


def second_run_complaints(clean: Clean, struck: Outcome, again: Outcome) -> list[str]:
    """Return the complaints about a second run of the same command, which is not interrupted."""
    wrong = [f"once more: {text}" for text in _words(again)]
    (code,) = again.codes
    complete = _is_after(clean, struck.tree) or any(_is_unit_after(clean, struck.tree, unit) for unit in _new(clean))
    if code != 0 and not (code == 2 and complete and "add --force" in again.errors[0]):
        wrong.append(f"once more: exit status {code}: {again.errors[0][-500:]}")
    if code == 0 and not _is_after(clean, again.tree):
        wrong.append("once more: not everything is written")
    return wrong + [f"once more: left {name}" for name in again.tree if is_hidden(name)]


def _new(clean: Clean) -> tuple[str, ...]:
    """Return the folders that a second run may refuse to replace."""
    return () if "--force" in clean.scenario.arguments else clean.scenario.whole


def _words(outcome: Outcome) -> list[str]:
    """Return the complaints about the output: a traceback, or a failed run without an error sentence."""
    wrong = []
    for code, error in zip(outcome.codes, outcome.errors, strict=True):
        lines = error.strip().splitlines()
        if "Traceback" in error or "Exception ignored" in error:
            wrong.append(f"a traceback: {error[-1500:]}")
        elif code > 1 and not (lines and lines[-1].startswith("systolic: ")):
            wrong.append(f"no sentence: {error[-500:]!r}")
    return wrong


def _mixtures(clean: Clean, tree: Tree) -> list[str]:
    """Return the complaints about folders and files that are equal neither to the old result nor to the new one."""
    before, after = clean.scenario.before, clean.after
    wrong = []
    for unit in clean.scenario.whole:
        content = _unit(tree, unit)
        if content not in (_unit(before, unit), _unit(after, unit)):
            differing = [
                name for name in {*content, *_unit(after, unit)} if content.get(name) != _unit(after, unit).get(name)
            ]
            wrong.append(f"{unit} is a mixture: {sorted(differing)[:5]}")
    for name in sorted({*before, *after, *tree}):
        if is_hidden(name) or name.endswith("/") or any(name in _names(tree, unit) for unit in clean.scenario.whole):
            continue
        volatile = name in clean.volatile
        if not any(same(tree.get(name), state.get(name), volatile) for state in (before, after)):
            wrong.append(f"{name} is neither the old one nor the new one: {tree.get(name, b'')[:60]!r}")
    return wrong


def _is_after(clean: Clean, tree: Tree) -> bool:
    """Return whether the new result is complete. Caches, such as a compiled library, may be missing."""
    names = [name for name in {*clean.after, *tree} if not is_hidden(name) and not _is_kept(name) and name[-1] != "/"]
    return all(same(tree.get(name), clean.after.get(name), name in clean.volatile) for name in names)


def _is_unit_after(clean: Clean, tree: Tree, unit: str) -> bool:
    return _unit(tree, unit) == _unit(clean.after, unit)


def _unit(tree: Tree, unit: str) -> Tree:
    content = below(tree, unit)
    return {name: untimed(data) for name, data in content.items() if not _is_kept(name) and not is_hidden(name)}


def _names(tree: Tree, unit: str) -> set[str]:
    return {f"{unit}/{name}" for name in _unit(tree, unit)}


def _is_kept(name: str) -> bool:
    """Return whether a file is a cache in a design, which makes the next command faster."""
    return "build/" in name or name.endswith(CYCLES)

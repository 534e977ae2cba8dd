"""Loops in the text of preprocessed C++: where a loop begins and ends, its label, and the loops around it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LABEL = re.compile(r"(\w+)\s*:\s*$")
_INNER = re.compile(r"(?:[{};]|\b(?:else|do)|\b(?:if|switch|while|for)\b[^{};]*\))$")
"""The text before a brace that opens a block within a function."""
_FUNCTION = re.compile(r"(\w+)\s*(?:const|noexcept|override|\s)*$")


def loop_start(text: str, brace: int) -> int:
    """Return the start of the loop whose body a brace opens; −1 if the brace opens no loop."""
    head = text[:brace].rstrip()
    if head.endswith(")"):
        return _headed(text, len(head) - 1)
    return len(head) - 2 if re.search(r"\bdo$", head[-3:]) else -1


@dataclass(frozen=True)
class Surroundings:
    """The loops and the function around a position in the text.

    Attributes:
        loops: The starts of the loops around it, the innermost first.
        function: The name of the function around it; "" if it is not known.
    """

    loops: tuple[int, ...]
    function: str


def surroundings(text: str, position: int) -> Surroundings:
    """Return the loops and the function around a position."""
    loops: list[int] = []
    while True:
        outer = _directly_around(text, position)
        if outer >= 0:
            loops.append(outer)
            position = outer
            continue
        brace = opening(text, position, "{", "}")
        head = text[max(0, brace - 2000) : brace].rstrip()
        start = loop_start(text, brace)
        if start >= 0:
            loops.append(start)
        elif not brace or not _INNER.search(head):
            name = _FUNCTION.search(_without_parameters(head))
            return Surroundings(tuple(loops), name[1] if name is not None else "")
        position = start if start >= 0 else brace


def label_of(text: str, start: int) -> str:
    """Return the label of the loop at a position; "" if it has none."""
    label = _LABEL.search(text, max(0, start - 200), start)
    return label[1] if label is not None and label[1] not in ("default", "public", "private", "protected") else ""


def opening(text: str, position: int, opens: str, closes: str) -> int:
    """Return the position of the bracket that is open at a position; 0 if none is."""
    depth = 0
    for place in range(position - 1, -1, -1):
        depth += (text[place] == closes) - (text[place] == opens)
        if depth < 0:
            return place
    return 0


def closing(text: str, bracket: int) -> int:
    """Return the position of the brace that closes another one."""
    depth = 0
    for place in range(bracket, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if not depth:
            return place
    return len(text)


def _headed(text: str, parenthesis: int) -> int:
    """Return the start of the loop whose head a parenthesis closes; −1 if it closes none."""
    begin = opening(text, parenthesis, "(", ")")
    keyword = re.search(r"\b(for|while)\s*$", text[max(0, begin - 16) : begin])
    return begin - len(keyword[0]) if keyword else -1


def _directly_around(text: str, position: int) -> int:
    """Return the start of the loop whose body, without braces, begins at a position; −1 if there is none."""
    head = text[max(0, position - 200) : position].rstrip()
    label = _LABEL.search(head)
    head = head[: label.start()].rstrip() if label is not None else head
    return _headed(text, max(0, position - 200) + len(head) - 1) if head.endswith(")") else -1


def _without_parameters(head: str) -> str:
    """Return the head of a function up to its parameters."""
    end = head.rfind(")")
    return head[: opening(head, end, "(", ")")] if end >= 0 else head

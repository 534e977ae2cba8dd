"""The fold of a block in words, as reports show it and manifests keep it."""

from __future__ import annotations

from boards.errors import InvalidValueError, shown
from scheduler.streaming.graph import Fold

PLAIN = "one value a cycle"


def fold_text(fold: Fold) -> str:
    """A fold in words: what differs from doing one value at a time."""
    standard = Fold()
    parts = [f"{name} {value}" for name, value in vars(fold).items() if value != getattr(standard, name)]
    return ", ".join(parts) or PLAIN


def fold_of(text: str) -> Fold:
    """Return the fold that ``fold_text`` put into words; InvalidValueError for other words."""
    standard = vars(Fold())
    pairs = [part.partition(" ")[::2] for part in text.split(", ")] if text != PLAIN else []
    try:
        return Fold(**{name: type(standard[name])(value) for name, value in pairs})
    except (KeyError, ValueError) as error:
        raise InvalidValueError("a fold", text, f"in the form {shown(fold_text(Fold(pe=2)))}") from error

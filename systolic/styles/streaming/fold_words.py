"""A block's fold (PE, SIMD, memory, …) as text, for reports and manifests."""

from __future__ import annotations

from boards.errors import InvalidValueError, shown
from scheduler.streaming.graph import Fold

PLAIN = "one value a cycle"
"""The text of the default fold. Manifests store it, so it must not change."""


def fold_text(fold: Fold) -> str:
    """Return a block's fold as text such as "pe 2, simd 4": the fields that differ from the default fold."""
    standard = Fold()
    parts = [f"{name} {value}" for name, value in vars(fold).items() if value != getattr(standard, name)]
    return ", ".join(parts) or PLAIN


def fold_of(text: str) -> Fold:
    """Return the fold of a text such as "pe 2, simd 4", which ``fold_text`` wrote; InvalidValueError for other text."""
    standard = vars(Fold())
    pairs = [part.partition(" ")[::2] for part in text.split(", ")] if text != PLAIN else []
    try:
        return Fold(**{name: type(standard[name])(value) for name, value in pairs})
    except (KeyError, ValueError) as error:
        raise InvalidValueError("a fold", text, f"in the form {shown(fold_text(Fold(pe=2)))}") from error

"""The properties that all blocks of one kind have in common."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """The properties of a kind of block.

    Attributes:
        reads: The key of a fold, "pe" or "simd", that is the number of values of a pixel per input word.
        writes: The same key for output words.
        depth: The stages of the loop's pipeline, without the late stages of an activation.
        keeps: Whether the output has the same number of channels as the input.
        pads: Whether its maps may have channels of padding.
        several: Whether its words may have several pixels.
        rams: The choices of ``Fold.ram`` in a search. Windows and units have their own (search/candidates.py).
    """

    reads: str = "simd"
    writes: str = "simd"
    depth: int = 0
    keeps: bool = False
    pads: bool = False
    several: bool = False
    rams: tuple[str, ...] = ("auto",)

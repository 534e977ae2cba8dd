"""The properties that all blocks of one kind have in common."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """The properties that all streaming blocks of one kind (such as max pools) share: parallelism, pipeline depth and
    padding.

    Attributes:
        reads: The key of a fold, "pe" or "simd", that sets how many values of a pixel an input word has.
        writes: The key of a fold, "pe" or "simd", that sets how many values of a pixel an output word has.
        depth: The stages of the loop's pipeline, without the late stages of an activation.
        keeps: Whether the output has the same number of channels as the input.
        pads: Whether its feature maps may have channels of padding.
        several_pixels: Whether its stream words may have several pixels.
        rams: The choices of ``Fold.ram`` in a folding search. Windows and units have their own (search/candidates.py).
    """

    reads: str = "simd"
    writes: str = "simd"
    depth: int = 0
    keeps: bool = False
    pads: bool = False
    several_pixels: bool = False
    rams: tuple[str, ...] = ("auto",)

"""What blocks of one kind have in common, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """reads, writes: the key of a fold, "pe" or "simd", that says how many values of a pixel a word has, of what comes
    and of what leaves. depth: stages of the loop's pipeline, without a later activation's.

    keeps: as many channels leave as come. pads: it may take and give channels beyond the network's. several: its words
    may have several pixels. rams: what its fold may put rows of a map into; "auto" where it has none.
    """

    reads: str = "simd"
    writes: str = "simd"
    depth: int = 0
    keeps: bool = False
    pads: bool = False
    several: bool = False
    rams: tuple[str, ...] = ("auto",)

    @property
    def by_channel(self) -> bool:
        """Whether it takes each channel by itself, PE of them at once."""
        return self.reads == "pe" and self.keeps

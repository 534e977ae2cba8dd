"""A folding with its modelled cost, as text, as a page, as figures and as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boards.errors import ChoiceError
from scheduler.streaming.folding_file import to_json
from systolic.styles.streaming.priced import PricedFolding
from systolic.styles.streaming.report import mapping_html, mapping_page, mapping_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class StreamingMapping(PricedFolding):
    """A folding with its modelled cost, which can be printed, drawn and saved as JSON."""

    def text(self) -> str:
        """Return a table of the blocks with their folds, and the totals, for a terminal."""
        return mapping_text(self)

    __repr__ = text

    def page(self) -> str:
        """Return the report of the folding as one self-contained HTML file."""
        return mapping_page(self)

    def to_json(self) -> str:
        """Return the folding as JSON. A user can edit it and pass it to the option ``folding``."""
        return to_json(self.folded.folding, self.ddr)

    def figure(self, kind: str) -> Figure:
        """Draw the cycles or the resources of the folding, with one bar per block.

        Args:
            kind: "cycles" or "resources".

        Raises:
            ChoiceError: The kind is another one.
        """
        from systolic.styles.streaming import figures  # here, because importing matplotlib is slow

        if kind not in figures.OF_MAPPING:
            raise ChoiceError("the kind of a picture of a folding", kind, tuple(figures.OF_MAPPING))
        return figures.OF_MAPPING[kind](self)

    def _repr_html_(self) -> str:
        return mapping_html(self)

"""A network on a board as a folding: its figures, how it is shown, and its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boards.errors import ChoiceError
from scheduler.streaming.folding_file import to_json
from systolic.styles.streaming.priced import PricedFolding
from systolic.styles.streaming.report import mapping_html, mapping_page, mapping_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class StreamingMapping(PricedFolding):
    """A priced folding that is shown as text, as a page and as pictures, and saved as a file."""

    def text(self) -> str:
        """Return a table for a terminal, and its totals."""
        return mapping_text(self)

    __repr__ = text

    def page(self) -> str:
        """Return one self-contained HTML file."""
        return mapping_page(self)

    def to_json(self) -> str:
        """Return the folding alone, for an editor and for the option ``folding``."""
        return to_json(self.folded.folding, self.ddr)

    def figure(self, kind: str) -> Figure:
        """Draw "cycles" or "resources", one bar per block; ChoiceError for another kind."""
        from systolic.styles.streaming import figures  # matplotlib takes long to import

        if kind not in figures.OF_MAPPING:
            raise ChoiceError("the kind of a picture of a folding", kind, tuple(figures.OF_MAPPING))
        return figures.OF_MAPPING[kind](self)

    def _repr_html_(self) -> str:
        return mapping_html(self)

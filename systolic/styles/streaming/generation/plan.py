"""A streaming design in memory, and what is told of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from host.contract.manifest import manifest_in, of_style
from host.contract.streaming import StreamingManifest
from systolic.files import DesignFiles
from systolic.styles.streaming.fifos import Fifos
from systolic.styles.streaming.mapping import StreamingMapping


@dataclass(frozen=True, eq=False)
class StreamingPlan:
    """files: of the whole folder. fifos: None where they were not sized by the trace."""

    mapping: StreamingMapping
    files: DesignFiles
    fifos: Fifos | None

    def values(self) -> dict[str, Any]:
        """What ``systolic generate --json`` says of it: {network, board, clock_mhz, style, modelled_cycles, fits,
        folding: {state, gap, seconds}, estimate, blocks, fifos}."""
        mapping = self.mapping
        manifest = of_style(StreamingManifest, manifest_in(self.files.files))
        return {
            "network": mapping.network.name,
            "board": mapping.board.name,
            "clock_mhz": mapping.clock.mhz,
            "ddr": asdict(mapping.ddr),
            "style": manifest.style,
            "modelled_cycles": mapping.cycles_per_frame,
            "fits": mapping.fits,
            "folding": {
                "state": mapping.folded.state,
                "gap": mapping.gap,
                "seconds": round(mapping.folded.seconds, 3),
            },
            "estimate": asdict(mapping.folded.usage),
            "blocks": [asdict(block) for block in manifest.blocks],
            "fifos": None if self.fifos is None else {**asdict(self.fifos), "depths": dict(self.fifos.depths)},
        }

    def text(self) -> str:
        """A table for a terminal, a line a block, and its sums."""
        return self.mapping.text() + (f"\n{self._fifos_text()}" if self.fifos else "")

    def _fifos_text(self) -> str:
        assert self.fifos is not None
        fifos, rate = self.fifos, self.mapping.clock.mhz * 1e6 / self.fifos.interval
        return (
            f"FIFOs: {fifos.bits:,} bits, sized by the trace and in the estimate ({fifos.fixed_bits:,} "
            f"at a fixed depth); a frame every {fifos.interval:,} cycles, {rate:.1f} frames/s, latency "
            f"{fifos.latency:,} cycles (traced)"
        )

    def _repr_html_(self) -> str:
        from systolic.styles.streaming.report import fifos_html

        return self.mapping._repr_html_() + ("" if self.fifos is None else fifos_html(self.fifos))

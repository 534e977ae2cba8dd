"""The result of the streaming generator: all files of a design in memory, and its report."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from host.contract.manifest import manifest_in, of_style
from host.contract.streaming import StreamingManifest
from systolic.files import DesignFiles
from systolic.report.clock import RateClock
from systolic.styles.plan_values import plan_values
from systolic.styles.streaming.fifos import PipelineFifos
from systolic.styles.streaming.mapping import StreamingMapping
from systolic.styles.streaming.report import fifos_html, mapping_text


@dataclass(frozen=True, eq=False)
class StreamingPlan:
    """A generated pipeline: all its files in memory, not written yet, and its traced FIFOs.

    Attributes:
        mapping: The folding. Its resources include the traced FIFOs.
        files: The files of the folder.
        fifos: The FIFOs with their traced cycles.
    """

    mapping: StreamingMapping
    files: DesignFiles
    fifos: PipelineFifos

    @property
    def is_traced(self) -> bool:
        """True: a pipeline is in C++, so its cycles are traced."""
        return True

    def values(self) -> dict[str, Any]:
        """Return the pipeline's folding, blocks and FIFOs as the JSON object of ``plan_values``.

        The folding is {state, gap, proof, seconds, ddr_bits}.
        """
        mapping = self.mapping
        manifest = of_style(StreamingManifest, manifest_in(self.files.files))
        folding = {
            "state": mapping.folded.state,
            "gap": mapping.gap,
            "proof": mapping.proof,
            "seconds": round(mapping.folded.seconds, 3),
            "ddr_bits": mapping.folded.usage.ddr_bits,
        }
        return plan_values(
            manifest.style,
            mapping,
            mapping.ddr,
            mapping.cycles_per_frame,
            mapping.folded.usage,
            folding=folding,
            blocks=[asdict(block) for block in manifest.blocks],
            fifos={
                **asdict(self.fifos),
                "depths": dict(self.fifos.depths),
                "table": [row.values() for row in self.fifos.table],
            },
        )

    def text(self, clock: RateClock | None = None) -> str:
        """Return a table of the blocks, the totals and the FIFOs for a terminal.

        Args:
            clock: The clock for the frame rates, if a check found one for the sources; None for the target clock.
        """
        fifos, told = self.fifos, clock or RateClock(self.mapping.clock.mhz)
        rate = told.text(told.target_mhz * 1e6 / fifos.interval)
        how = "sized by the trace" if fifos.sized else "as estimated"
        text = (
            f"{mapping_text(self.mapping, told)}\n"
            f"FIFOs: {fifos.bits:,} bits, {how} and included in the resources above ({fifos.fixed_bits:,} bits at a "
            f"fixed depth; the search had estimated {self.mapping.fifo_bits:,}); a frame every {fifos.interval:,} "
            f"cycles, {rate}, latency {fifos.latency:,} cycles (traced)"
        )
        if fifos.interval > fifos.best_interval:
            text += f"\nwith FIFOs sized by the trace: a frame every {fifos.best_interval:,} cycles"
        return text

    def _repr_html_(self) -> str:
        return self.mapping._repr_html_() + fifos_html(self.fifos)

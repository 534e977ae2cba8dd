"""One face for every accelerator style: what each implementation gives, and all that other code may ask of one.

A network goes through a style hop by hop::

    map        a quantised network on a board → a priced mapping (a schedule, a folding)
    generate   a mapping → a plan: every file of the design, in memory
    open       a written folder → a design
    execute    a design and pictures → every integer of every layer, compared with the golden model
    trace      a design and a picture → when everything happened: cycles, stalls, FIFO depths

The implementations are in ``styles/systolic`` and ``styles/streaming``; ``styles/registry.py`` lists them by the names
that manifests use.
"""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from boards.board import Board
from boards.facts import Clock
from boards.progress import Progress
from cnn.network import Network
from cnn.quantized import QuantizedNetwork
from host.contract.parts import Manifest
from host.vision.picture import Pixels
from systolic.execution.build import Variant
from systolic.execution.simulation import Simulation
from systolic.execution.waves import Recording
from systolic.files import DesignFiles
from systolic.model import Calibration, DesignInputs, Model
from systolic.option import Option
from systolic.report.clock import RateClock
from systolic.styles.estimates import Estimates
from systolic.trace.report import CycleReport, FifoDepths, board_memory
from systolic.trace.solver import Trace
from systolic.trace.timing import MemoryTiming

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Told(Protocol):
    """What can be shown: as one JSON object, as text for a terminal, and in a notebook."""

    def values(self) -> dict[str, Any]: ...

    def text(self) -> str: ...

    def _repr_html_(self) -> str: ...


class NetworkMapping(Told, Protocol):
    """A network on a board, priced once. Cycles and rates are modelled, at the target clock."""

    @property
    def network(self) -> QuantizedNetwork: ...

    @property
    def board(self) -> Board: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def fits(self) -> bool: ...

    @property
    def cycles_per_frame(self) -> int: ...

    @property
    def frames_per_second(self) -> float: ...

    def page(self) -> str:
        """One self-contained HTML file."""

    def to_json(self) -> str:
        """What a user edits by hand, and gives back."""

    def figure(self, kind: str) -> Figure:
        """Draw a picture of it; ChoiceError for an unknown kind."""


class Plan(Told, Protocol):
    """A design that was generated, in memory."""

    def text(self, clock: RateClock | None = None) -> str: ...

    @property
    def mapping(self) -> NetworkMapping: ...

    @property
    def files(self) -> DesignFiles: ...

    @property
    def is_traced(self) -> bool:
        """See ``Style.is_traced``."""


class OpenedDesign(Protocol):
    """A generated folder, read."""

    @property
    def path(self) -> Path: ...

    @property
    def manifest(self) -> Manifest: ...

    @property
    def network(self) -> QuantizedNetwork: ...


class Counts(Told, Protocol):
    """Counted cycles of a design in SystemVerilog."""

    @property
    def mismatches(self) -> int:
        """The number of integers that differ from the golden model."""

    @property
    def pass_cycles(self) -> list[float]:
        """The cycles of each pass of a start, for a simulated board that takes its time."""


@dataclass(frozen=True, eq=False)
class DesignTrace(ABC):
    """One traced execution, to be solved for any clock, memory and FIFO depths without another one.

    Clock and memory are the design's own where they are None.

    Attributes:
        design: The design that was executed.
        trace: When each of its processes read and wrote.
    """

    design: OpenedDesign
    trace: Trace

    def __repr__(self) -> str:
        return f"<trace of {self.design.manifest.network} on {self.design.manifest.board}>"

    def report(
        self,
        clock_mhz: float | None = None,
        ddr_efficiency: float | None = None,
        depths: Mapping[str, int] | None = None,
        ddr_gbps: float | None = None,
    ) -> CycleReport:
        """Return the cycles, layer by layer or block by block. depths: of FIFOs, by stream; None for the design's."""
        return self.measured(board_memory(self.design, ddr_efficiency, ddr_gbps), clock_mhz, depths)

    def fifos(
        self, clock_mhz: float | None = None, ddr_efficiency: float | None = None, ddr_gbps: float | None = None
    ) -> FifoDepths:
        """Return the least FIFO depths that lose nothing."""
        clock = self.design.manifest.clock_mhz if clock_mhz is None else clock_mhz
        return self.least_depths(board_memory(self.design, ddr_efficiency, ddr_gbps), clock)

    @abstractmethod
    def measured(self, memory: MemoryTiming, clock_mhz: float | None, depths: Mapping[str, int] | None) -> CycleReport:
        """Return ``report`` with a memory."""

    @abstractmethod
    def least_depths(self, memory: MemoryTiming, clock_mhz: float) -> FifoDepths:
        """Return ``fifos`` with a memory, at a clock."""


OptionsT = TypeVar("OptionsT")
MappingT = TypeVar("MappingT", bound=NetworkMapping)
DesignT = TypeVar("DesignT", bound=OpenedDesign)


class Style(Protocol[OptionsT, MappingT, DesignT]):
    """One way to build an accelerator."""

    @property
    def name(self) -> str:
        """As manifests and ``--style`` have it."""

    @property
    def summary(self) -> str:
        """A line of help."""

    @property
    def arguments(self) -> tuple[Option, ...]:
        """Its own of ``systolic generate``."""

    @property
    def options(self) -> Callable[..., OptionsT]:
        """The class of what a user may ask of a mapping."""

    def options_from(self, options: argparse.Namespace) -> OptionsT:
        """Those of the parsed command line."""

    def prepared(self, model: Model, options: OptionsT) -> Model:
        """The model as the options have it built: what of it the accelerator does, and what the host."""

    def check_layers(self, network: Network | QuantizedNetwork) -> None:
        """Raise SeveralFaultsError with the layers that the style cannot map; asked before a network is quantised."""

    def calibration_for(
        self, calibration: Calibration, board: Board, clock_mhz: float | None, options: OptionsT
    ) -> Calibration:
        """Return the calibration with the pipeline that bits by layer are chosen for; UnsupportedError if the style
        gains nothing from such bits."""

    def map(
        self, network: QuantizedNetwork, board: Board, clock_mhz: float | None, options: OptionsT, tell: Progress
    ) -> MappingT:
        """The best mapping that the options ask for. clock_mhz: the style chooses where it is None."""

    def generate(self, mapping: MappingT, inputs: DesignInputs, options: OptionsT, tell: Progress) -> Plan:
        """Every file of the design; the same arguments give the same bytes."""

    def open(self, path: Path, manifest: Manifest) -> DesignT:
        """Open the folder ``path``, whose manifest is of this style. Raises an error of the tree if it is not whole."""

    def estimates(self, design: DesignT) -> Estimates:
        """What the design was said to take when it was generated, process by process."""

    def execute(
        self, design: DesignT, pictures: Sequence[Pixels], variant: Variant, tell: Progress
    ) -> tuple[Simulation, ...]:
        """One start: pictures, uint8 [channels, height, width], through the generated code; one result a frame.

        The last picture fills a batch. RangeError for more pictures than the design takes at a time.
        """

    def trace(self, design: DesignT, picture: Pixels, tell: Progress) -> DesignTrace:
        """One start with every process's clock recorded; the picture fills a batch."""

    def count(self, design: DesignT, picture: Pixels, beside_hls: bool, tell: Progress) -> Counts:
        """One start of an engine in SystemVerilog with its cycles counted; the picture fills a batch. beside_hls: with
        the trace of the same schedule in C++. UnsupportedError if the design is in C++."""

    def is_traced(self, design: DesignT) -> bool:
        """Whether the design's cycles are traced in its C++; else they are counted as its SystemVerilog executes."""

    def check_timeline(self, design: DesignT, layer: str | None) -> None:
        """Raise ChoiceError or UnsupportedError if no timeline can be drawn of ``layer`` alone."""

    def recording(self, design: DesignT, layer: str, path: Path | None) -> Recording:
        """What ``Variant.waves`` takes to record the signals of ``layer``, a name or a number from 1, into an FST file
        ``path``; None: ``<layer>.fst`` in the current folder.

        Raises:
            UnsupportedError: The design has no signals.
            ChoiceError: There is no such layer.
            InvalidValueError, FileAccessError: The file is not an FST file, or cannot be written.
        """

"""The interface of the accelerator styles: the methods that each style implements, and the types that they return.

A network passes through these methods in order::

    map        a quantised network and a board → a priced mapping (a schedule or a folding)
    generate   a mapping → a plan, which holds every file of the design in memory
    open       a written folder → a design
    execute    a design and pictures → every integer of every layer, compared with the golden model
    trace      a design and a picture → the clock cycle of every read and write: cycles, stalls, FIFO depths

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

from boards.board import Board, of_design
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
from systolic.styles.ddr_profiles import ProfileRate
from systolic.styles.estimates import Estimates
from systolic.styles.options import share_of
from systolic.trace.report import CycleReport, FifoDepths, board_memory
from systolic.trace.solver import Trace
from systolic.trace.timing import MemoryTiming

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Displayable(Protocol):
    """A result that can be shown as a JSON object, as text for a terminal, and in a notebook."""

    def values(self) -> dict[str, Any]: ...

    def text(self) -> str: ...

    def _repr_html_(self) -> str: ...


class NetworkMapping(Displayable, Protocol):
    """A schedule or a folding of a network on a board. Cycles and rates are modelled, at the target clock."""

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

    @property
    def ddr_profiles(self) -> tuple[ProfileRate, ...]: ...

    def page(self) -> str:
        """Return the report of the schedule or folding as one self-contained HTML file."""

    def to_json(self) -> str:
        """Return the schedule or the folding as JSON, which a user can edit and give back as an option."""

    def figure(self, kind: str) -> Figure:
        """Draw the figure of the schedule or folding named ``kind``. Raises ChoiceError for an unknown kind."""


class Plan(Displayable, Protocol):
    """A generated design: all its files in memory, not written yet, and its report."""

    def text(self, clock: RateClock | None = None) -> str: ...

    @property
    def mapping(self) -> NetworkMapping: ...

    @property
    def files(self) -> DesignFiles: ...

    @property
    def is_traced(self) -> bool:
        """Return whether the engine is in C++, so that its cycles are traced, and not counted in SystemVerilog."""


class OpenedDesign(Protocol):
    """The folder of a generated design after reading: path, manifest and quantised network."""

    @property
    def path(self) -> Path: ...

    @property
    def manifest(self) -> Manifest: ...

    @property
    def network(self) -> QuantizedNetwork: ...


class Counts(Displayable, Protocol):
    """The clock cycles of a design in SystemVerilog, counted while the design was simulated."""

    @property
    def mismatches(self) -> int:
        """The number of integers that differ from the golden model."""

    @property
    def pass_cycles(self) -> list[float]:
        """The cycles of each pass of the engine's program, so that a simulated board can take as long."""


@dataclass(frozen=True, eq=False)
class DesignTrace(ABC):
    """A traced execution of a C++ design, from which cycles are computed for any clock, memory and FIFO depths.

    A clock or memory rate of None means the design's own.

    Attributes:
        design: The design that was executed.
        trace: The recorded clock of each process at its reads and writes.
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
        ddr_profile: str | None = None,
    ) -> CycleReport:
        """Return the cycles of each layer or block for this clock, memory rate and these FIFO depths.

        Args:
            clock_mhz: The clock in MHz.
            ddr_efficiency: The usable share of the memory's peak rate.
            depths: The depth of each FIFO in words, by the name of its stream; None for the design's depths.
            ddr_gbps: The memory's peak rate in GB/s.
            ddr_profile: "measured" or "optimistic", the usable share that the board states; not with
                ``ddr_efficiency``.
        """
        return self.measured(self._memory(ddr_efficiency, ddr_gbps, ddr_profile), clock_mhz, depths)

    def fifos(
        self,
        clock_mhz: float | None = None,
        ddr_efficiency: float | None = None,
        ddr_gbps: float | None = None,
        ddr_profile: str | None = None,
    ) -> FifoDepths:
        """Return the least FIFO depths that do not make the design slower, at this clock and memory rate."""
        clock = self.design.manifest.clock_mhz if clock_mhz is None else clock_mhz
        return self.least_depths(self._memory(ddr_efficiency, ddr_gbps, ddr_profile), clock)

    def _memory(self, efficiency: float | None, gbps: float | None, profile: str | None) -> MemoryTiming:
        if profile is not None:
            efficiency = share_of(of_design(self.design.path, self.design.manifest.board), efficiency, profile)
        return board_memory(self.design, efficiency, gbps)

    @abstractmethod
    def measured(self, memory: MemoryTiming, clock_mhz: float | None, depths: Mapping[str, int] | None) -> CycleReport:
        """Return the cycles of each layer or block with this memory timing, clock and these FIFO depths."""

    @abstractmethod
    def least_depths(self, memory: MemoryTiming, clock_mhz: float) -> FifoDepths:
        """Return the least FIFO depths that do not make the design slower, with this memory timing and clock."""


OptionsT = TypeVar("OptionsT")
MappingT = TypeVar("MappingT", bound=NetworkMapping)
DesignT = TypeVar("DesignT", bound=OpenedDesign)


class Style(Protocol[OptionsT, MappingT, DesignT]):
    """The interface of an accelerator style, such as the systolic array or the streaming pipeline."""

    @property
    def name(self) -> str:
        """The name of the style in manifests and in ``--style``."""

    @property
    def summary(self) -> str:
        """The line of ``--help`` that describes the style."""

    @property
    def arguments(self) -> tuple[Option, ...]:
        """The options of ``systolic generate`` that only this style has."""

    @property
    def options(self) -> Callable[..., OptionsT]:
        """The class of the style's options, such as ``SystolicOptions``."""

    def options_from(self, options: argparse.Namespace) -> OptionsT:
        """Return the style's options, such as ``SystolicOptions``, from the parsed command line."""

    def prepared(self, model: Model, options: OptionsT) -> Model:
        """Return the model after the options moved work between host and accelerator, such as the final softmax."""

    def check_layers(self, network: Network | QuantizedNetwork) -> None:
        """Raise SeveralFaultsError with all layers that the style cannot compute.

        It is called before a network is quantised.
        """

    def calibration_for(
        self, calibration: Calibration, board: Board, clock_mhz: float | None, options: OptionsT
    ) -> Calibration:
        """Return the calibration. If it chooses bits per layer, it also gets the pipeline whose rate they must keep.

        Raises:
            UnsupportedError: Bits are to be chosen layer by layer, and the style has no use for that.
        """

    def map(
        self, network: QuantizedNetwork, board: Board, clock_mhz: float | None, options: OptionsT, progress: Progress
    ) -> MappingT:
        """Return the best schedule or folding that the options allow; without ``clock_mhz``, also choose the clock."""

    def generate(self, mapping: MappingT, inputs: DesignInputs, options: OptionsT, progress: Progress) -> Plan:
        """Return a plan with every file of the design in memory. Equal arguments give equal bytes."""

    def open(self, path: Path, manifest: Manifest) -> DesignT:
        """Read the design in folder ``path``, generated in this style. Raises a SystolicError if a file is wrong."""

    def estimates(self, design: DesignT) -> Estimates:
        """Return the DSPs and memories of each process that were estimated when the design was generated."""

    def execute(
        self, design: DesignT, pictures: Sequence[Pixels], variant: Variant, progress: Progress
    ) -> tuple[Simulation, ...]:
        """Execute one start of the generated code, and return the compared integers of each frame.

        Args:
            design: The design.
            pictures: The pictures, each uint8 of shape (channels, height, width). The last one is repeated to fill the
                batch.
            variant: The way to build and run the code.

        Raises:
            RangeError: There are more pictures than one start of the design computes.
        """

    def trace(self, design: DesignT, picture: Pixels, progress: Progress) -> DesignTrace:
        """Execute one start of a design in C++, and record the cycle of each read and write of every process.

        The picture is repeated to fill the batch.
        """

    def count(self, design: DesignT, picture: Pixels, compare_with_hls: bool, progress: Progress) -> Counts:
        """Simulate one start of an engine in SystemVerilog, and count the cycles of each layer.

        Args:
            design: The design.
            picture: The picture, which is repeated to fill the batch.
            compare_with_hls: Whether to also trace the engine in C++ with the same schedule, to compare the cycles.

        Raises:
            UnsupportedError: The design is in C++.
        """

    def is_traced(self, design: DesignT) -> bool:
        """Return whether the engine is in C++, whose cycles are traced; in SystemVerilog a simulation counts them."""

    def check_timeline(self, design: DesignT, layer: str | None) -> None:
        """Raise ChoiceError or UnsupportedError if a timeline of the layer named ``layer`` cannot be drawn."""

    def recording(self, design: DesignT, layer: str, path: Path | None) -> Recording:
        """Return what to record of an engine in SystemVerilog: a layer's signals, into an FST file.

        Args:
            design: The design.
            layer: The name of the layer, or its number, counted from 1.
            path: The FST file to write; None for ``<layer>.fst`` in the current folder.

        Raises:
            UnsupportedError: The design has no signals.
            ChoiceError: There is no such layer.
            InvalidValueError, FileAccessError: The file is not an FST file, or cannot be written.
        """

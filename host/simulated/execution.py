"""What the simulated accelerator does when it is started: the generated C++ over what DDR holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from host.contract.libraries import StoppedError, SystolicLibrary, SystolicMemory
from host.contract.systolic import SystolicManifest
from host.simulated.ddr import BusError, Ddr
from host.simulated.faults import Fault
from host.simulated.registers import AcceleratorModel


class Execution:
    """A design's simulation library, over a board's DDR. SimulationError where it cannot be loaded."""

    def __init__(self, library: Path, manifest: SystolicManifest, ddr: Ddr) -> None:
        self._library = SystolicLibrary(library, manifest)
        self._manifest, self._ddr = manifest, ddr

    def run(self, model: AcceleratorModel, registers: Mapping[str, int], hang: Fault | None) -> str:
        """The generated code over DDR; an empty sentence, or what stopped it."""

        def after_pass(index: int) -> None:
            model.show("current", index)
            if hang and index - registers["first"] >= hang.in_pass:
                model.stopped.wait()

        try:
            memory = self._memory(registers)
            current = self._library.run(memory, registers["first"], registers["count"], after_pass)
        except BusError as error:
            return str(error)
        except StoppedError as error:
            model.show("current", error.current)
            return error.sentence
        model.show("current", current)
        return ""

    def _memory(self, registers: Mapping[str, int]) -> SystolicMemory:
        """Where the registers point, to the end of what is allocated there."""
        ports = self._manifest.array.weight_ports
        weights = tuple(self._ddr.rest(pointer(registers, f"weights_{port}")) for port in range(ports))
        requantisers = self._ddr.rest(pointer(registers, "requantisers"))
        return SystolicMemory(
            self._map_arena(registers), weights, requantisers, self._ddr.rest(pointer(registers, "program"))
        )

    def _map_arena(self, registers: Mapping[str, int]) -> npt.NDArray[np.uint8]:
        """From the map pointers, which must agree, to the end of what is allocated."""
        addresses = {
            pointer(registers, f"maps_{way}_{port}")
            for port in range(self._manifest.array.map_ports)
            for way in ("read", "write")
        }
        if len(addresses) != 1:
            named = ", ".join(f"{address:#x}" for address in sorted(addresses))
            raise BusError(f"the map pointers are {named}, not one address")
        return self._ddr.from_here(addresses.pop())


def pointer(registers: Mapping[str, int], name: str) -> int:
    """Both halves of an address."""
    return registers[f"{name}_1"] | registers[f"{name}_2"] << 32

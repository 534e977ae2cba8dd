"""Both accelerator styles behind one set of functions: what is opened, executed and timed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from host.contract.manifest import read_manifest
from systolic.execution.build import Variant
from systolic.execution.simulation import Simulation
from systolic.styles.streaming.simulate import StreamingDesign, open_pipeline, simulate_pipeline
from systolic.styles.systolic.simulate import SystolicDesign, open_folder, simulate

Opened: TypeAlias = SystolicDesign | StreamingDesign
"""A generated folder, read."""


def open_design(path: Path) -> Opened:
    """HostError where ``path`` is not a generated design, SimulationError where it is not whole."""
    manifest = read_manifest(path)
    return open_pipeline(path, manifest) if manifest.style == "streaming" else open_folder(path, manifest)


def execute(
    design: Opened,
    picture: npt.NDArray[np.uint8],
    variant: Variant = Variant(),  # noqa: B008 (frozen)
    progress: Callable[[str], None] | None = None,
) -> Simulation:
    """One frame, uint8 [channels, height, width], through the generated code and the golden model."""
    if isinstance(design, StreamingDesign):
        return simulate_pipeline(design, picture, variant, progress)
    return simulate(design, picture, variant, progress)

"""Both accelerator styles behind one set of functions: what is opened, executed and timed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from systolic.execution.build import Variant
from systolic.execution.simulation import Simulation
from systolic.styles.streaming.simulate import StreamingDesign, open_pipeline, simulate_pipeline
from systolic.styles.systolic.simulate import SystolicDesign, open_folder, read_manifest, simulate

Opened: TypeAlias = SystolicDesign | StreamingDesign
"""A generated folder, read."""


def open_design(path: Path) -> Opened:
    """SimulationError where ``path`` is not a whole generated design."""
    manifest = read_manifest(path)
    return open_pipeline(path, manifest) if manifest.get("style") == "streaming" else open_folder(path)


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

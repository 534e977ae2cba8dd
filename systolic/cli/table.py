"""The commands: name → summary.

A module of ``options`` for each section of the help says what its commands take, and ``commands/NAME.py`` does it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from systolic.cli.options.form import Form

SECTIONS = {
    "start": {
        "demo": "Show the whole path with a built-in trained network and picture",
        "networks": "List the built-in networks",
        "boards": "List the boards and their facts",
    },
    "build and run an accelerator": {
        "generate": "Generate the accelerator of a network",
        "simulate": "Execute the generated code and compare every integer with the golden model",
        "run": "Find objects in pictures or a video with an accelerator",
        "check": "Derive interval, depth and clock of every loop from the generated C++",
        "package": "Package an accelerator for its board as one wheel",
        "vendor": "Compare a design's claims with the reports of Vitis HLS and Vivado",
    },
    "explore mappings": {
        "schedule": "Find the best array and tiling for a network, and say why",
        "compare": "Compare boards, arrays, formats, batches, clocks and memories",
        "pareto": "Find the Pareto front of frame rate and DSPs by a coarse search",
        "fold": "Find the folding of a network as a streaming pipeline",
    },
    "train and measure networks": {
        "evaluate": "Measure accuracy on labelled pictures, float and quantised",
        "train": "Train a network of few bits on labelled pictures",
        "export": "Write a quantised network as ONNX or as files of DAC-SDC's exporters",
    },
}
"""The commands by the section of the help."""

COMMANDS = {name: summary for section in SECTIONS.values() for name, summary in section.items()}

_MODULES = ("start", "accelerators", "mappings", "training")
_OPTIONS = {name: module for module, section in zip(_MODULES, SECTIONS.values(), strict=True) for name in section}
"""For each command the module of its options: one for each section, in their order."""


def form_of(name: str) -> Form:
    """Import the options of a command; this takes a few milliseconds."""
    form: Form = _module(f"systolic.cli.options.{_OPTIONS[name]}").FORMS[name]
    return form


def run_of(name: str) -> Callable[[Any], int]:
    """Import what a command does, with all that it needs."""
    run: Callable[[Any], int] = _module(f"systolic.cli.commands.{name}").run
    return run


def _module(name: str) -> ModuleType:
    from importlib import import_module

    return import_module(name)

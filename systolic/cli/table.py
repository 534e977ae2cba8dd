"""The commands by section of the help, each with its one-line summary.

Each section has one module in ``options`` with the options of its commands. ``commands/NAME.py`` runs a command.
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
        "demo": "Generate, simulate and run an accelerator for a built-in network and a picture",
        "networks": "List the built-in networks with their sizes, layers and bits",
        "boards": "List the boards with their parts, resources, DDR rates and clocks",
    },
    "build and run an accelerator": {
        "generate": "Generate an accelerator for a network: a systolic array or a streaming pipeline",
        "simulate": "Execute the generated code, and compare every integer with the golden model",
        "run": "Run an accelerator on a picture, a folder of pictures or a video",
        "check": "Check II, depth and clock of generated C++, or path delays of SystemVerilog",
        "package": "Package an accelerator and its host code as one Python wheel for the board",
        "vendor": "Compare declared II, resources and clock with reports of Vitis HLS and Vivado",
    },
    "explore mappings": {
        "schedule": "Find the best size and tiling of a systolic array for a network",
        "compare": "Compare schedules for several boards, array sizes, bits, batches and clocks",
        "pareto": "Find the array sizes that none beats in both frame rate and DSPs (coarse search)",
        "fold": "Find the best folding of a streaming pipeline: the parallelism of each layer",
    },
    "train and measure networks": {
        "evaluate": "Measure the accuracy of a network, float and quantised, on labelled pictures",
        "train": "Train a network with 2 to 8 bits on labelled pictures",
        "export": "Write a quantised network as ONNX, or as files of the DAC-SDC contest",
    },
}
"""Section of the help → its commands, each with its summary."""

COMMANDS = {name: summary for section in SECTIONS.values() for name, summary in section.items()}

_MODULES = ("start", "accelerators", "mappings", "training")
_OPTIONS = {name: module for module, section in zip(_MODULES, SECTIONS.values(), strict=True) for name in section}
"""Command → the module of its options; ``_MODULES`` has one module per section, in the same order."""


def form_of(name: str) -> Form:
    """Return the arguments and options of a command; importing their module takes a few milliseconds."""
    form: Form = _module(f"systolic.cli.options.{_OPTIONS[name]}").FORMS[name]
    return form


def run_of(name: str) -> Callable[[Any], int]:
    """Import a command's module with everything that it needs, and return its function ``run``."""
    run: Callable[[Any], int] = _module(f"systolic.cli.commands.{name}").run
    return run


def _module(name: str) -> ModuleType:
    from importlib import import_module

    return import_module(name)

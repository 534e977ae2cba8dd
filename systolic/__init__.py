"""Generates an FPGA accelerator from a trained CNN, and checks it before any vendor tool is run.

::

    import systolic

    network = systolic.load("yolo.cfg", weights="yolo.weights", names="voc.names")
    design = systolic.design(network, board="zcu104", calibrate=["a.jpg", "b.jpg"])
    design.report()                            # its schedule and its modelled cost
    design.simulate("dog.jpg").mismatches      # every integer of every layer against the golden model: 0
    design.cycles("dog.jpg")                   # cycles of the generated code, traced
    design.write("DIR")
    systolic.open("DIR").run("dog.jpg").draw()

A public name is imported when it is first used, so that ``import systolic`` stays fast.
"""

from __future__ import annotations

import os
import sys

from systolic.version import __version__ as __version__

TYPE_CHECKING = False  # typing.TYPE_CHECKING: importing typing takes longer than the rest of this module
if TYPE_CHECKING:
    from boards.board import Board as Board
    from boards.board import load as board
    from boards.errors import AcceleratorError as AcceleratorError
    from boards.errors import ChoiceError as ChoiceError
    from boards.errors import ConflictError as ConflictError
    from boards.errors import DamagedFileError as DamagedFileError
    from boards.errors import DoesNotFitError as DoesNotFitError
    from boards.errors import FileAccessError as FileAccessError
    from boards.errors import InvalidValueError as InvalidValueError
    from boards.errors import MismatchError as MismatchError
    from boards.errors import MissingToolError as MissingToolError
    from boards.errors import MissingValueError as MissingValueError
    from boards.errors import RangeError as RangeError
    from boards.errors import RefusedLoopError as RefusedLoopError
    from boards.errors import SeveralFaultsError as SeveralFaultsError
    from boards.errors import ShapeError as ShapeError
    from boards.errors import StateError as StateError
    from boards.errors import SystolicError as SystolicError
    from boards.errors import ToolError as ToolError
    from boards.errors import UnknownKeyError as UnknownKeyError
    from boards.errors import UnsupportedError as UnsupportedError
    from systolic.designs import Design as Design
    from systolic.designs import GeneratedDesign as GeneratedDesign
    from systolic.designs import design as design
    from systolic.designs import open_folder as open
    from systolic.explorations import compare as compare
    from systolic.explorations import compare_foldings as compare_foldings
    from systolic.explorations import fold as fold
    from systolic.explorations import pareto_front as pareto_front
    from systolic.explorations import schedule as schedule
    from systolic.loading import load_model as load
    from systolic.model import Calibration as Calibration
    from systolic.model import Model as Model
    from systolic.model import boards as boards
    from systolic.model import networks as networks
    from systolic.model import sample_pictures as samples
    from systolic.preprocessing import preprocess as preprocess
    from systolic.styles.streaming.options import StreamingOptions as StreamingOptions
    from systolic.styles.systolic.comparison import ParetoFront as ParetoFront
    from systolic.styles.systolic.options import SystolicOptions as SystolicOptions
    from systolic.trace.timing import DeadlockError as DeadlockError
    from systolic.transforming import transform as transform

    BoardError = GenerateError = HostError = LabelError = NetworkError = SystolicError
    PictureError = QuantiseError = ScheduleError = SimulationError = VendorError = SystolicError

_ROOMS = (
    "boards",
    "cnn",
    "contract",
    "hls_schedule",
    "hls_templates",
    "host",
    "rtl_templates",
    "rtl_timing",
    "scheduler",
)
"""The top-level packages that are installed with this one. Other projects may use these names as well."""


def _check_rooms() -> None:
    """Raise ImportError if Python finds another project's package under a name of ``_ROOMS``, such as ``cnn``."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    for name in _ROOMS:
        place = _place_of(name)
        if place is None or not _is_in(place, root):
            raise ImportError(
                f"systolic needs its own package {name!r} from {root}, but Python finds {place or 'no such package'}; "
                "install systolic in a separate environment (python3 -m venv)"
            )


def _place_of(name: str) -> str | None:
    """Return the file from which Python imports a package, or None if there is none.

    Equal to ``importlib.util.find_spec``, whose import takes longer.
    """
    if name in sys.modules:
        return sys.modules[name].__file__
    specs = (finder.find_spec(name, None) for finder in sys.meta_path)
    spec = next((spec for spec in specs if spec is not None), None)
    return spec.origin if spec is not None else None


def _is_in(place: str, root: str) -> bool:
    """Return whether a package's file is in ``root``, the folder in which ``systolic`` is installed.

    Args:
        place: The path of the package's ``__init__.py``.
        root: The folder that contains this package.
    """
    own = os.path.join(root, os.path.basename(os.path.dirname(place)), "__init__.py")  # noqa: PTH118, PTH119, PTH120
    return place == own or os.path.realpath(place) == os.path.realpath(own)


_check_rooms()

_PLACES = {
    **dict.fromkeys(
        (
            "AcceleratorError",
            "ChoiceError",
            "ConflictError",
            "DamagedFileError",
            "DoesNotFitError",
            "FileAccessError",
            "InvalidValueError",
            "MismatchError",
            "MissingToolError",
            "MissingValueError",
            "RangeError",
            "RefusedLoopError",
            "SeveralFaultsError",
            "ShapeError",
            "StateError",
            "SystolicError",
            "ToolError",
            "UnknownKeyError",
            "UnsupportedError",
        ),
        "boards.errors",
    ),
    **dict.fromkeys(("Board", "board"), "boards.board"),
    **dict.fromkeys(("Design", "GeneratedDesign", "design", "open"), "systolic.designs"),
    **dict.fromkeys(("compare", "compare_foldings", "fold", "pareto_front", "schedule"), "systolic.explorations"),
    **dict.fromkeys(("Calibration", "Model", "boards", "networks", "samples"), "systolic.model"),
    "DeadlockError": "systolic.trace.timing",
    "StreamingOptions": "systolic.styles.streaming.options",
    "ParetoFront": "systolic.styles.systolic.comparison",
    "load": "systolic.loading",
    "preprocess": "systolic.preprocessing",
    "SystolicOptions": "systolic.styles.systolic.options",
    "transform": "systolic.transforming",
}
"""The module that defines each public name."""

_OTHERWISE = {"board": "load", "open": "open_folder", "load": "load_model", "samples": "sample_pictures"}
"""The public names whose objects have another name in their module: public name to that name."""

_DEPRECATED = (
    "BoardError",
    "GenerateError",
    "HostError",
    "LabelError",
    "NetworkError",
    "PictureError",
    "QuantiseError",
    "ScheduleError",
    "SimulationError",
    "VendorError",
)
"""The error names of version 0.1. Each is SystolicError now, so that ``except systolic.NetworkError`` still works.

Version 0.3 removes them. Catch SystolicError instead, or the class of the error.
"""

__all__ = [
    "AcceleratorError",
    "Board",
    "Calibration",
    "ChoiceError",
    "ConflictError",
    "DamagedFileError",
    "DeadlockError",
    "Design",
    "DoesNotFitError",
    "FileAccessError",
    "GeneratedDesign",
    "InvalidValueError",
    "MismatchError",
    "MissingToolError",
    "MissingValueError",
    "Model",
    "ParetoFront",
    "RangeError",
    "RefusedLoopError",
    "SeveralFaultsError",
    "ShapeError",
    "StateError",
    "StreamingOptions",
    "SystolicError",
    "SystolicOptions",
    "ToolError",
    "UnknownKeyError",
    "UnsupportedError",
    "__version__",
    "board",
    "boards",
    "compare",
    "compare_foldings",
    "design",
    "fold",
    "load",
    "networks",
    "open",
    "pareto_front",
    "preprocess",
    "samples",
    "schedule",
    "transform",
]


def __getattr__(name: str) -> object:
    if name in _DEPRECATED:
        from warnings import warn

        warn(f"systolic.{name} is now SystolicError; version 0.3 removes the name", DeprecationWarning, stacklevel=2)
        name = "SystolicError"
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), _OTHERWISE.get(name, name))


def __dir__() -> list[str]:
    return __all__

"""What the program knows of a format of network files: its name, the options that it takes, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from boards.errors import ConflictError, cut, listed
from cnn.network import Network
from cnn.onnx.advice import Check
from systolic.model import Model

FLAGS = {"weights": "--weights", "names": "--names", "seed": "--seed", "size": "--size", "cuts": "--cut"}
"""The options that a format may take, by the fields of ``LoadOptions``, each with its flag."""


@dataclass(frozen=True)
class LoadOptions:
    """What a user gives in addition to the name of a network.

    Attributes:
        weights: The file of its numbers.
        names: The file of its labels, one per line.
        seed: Draws random numbers.
        size: The (width, height) of its input, instead of the file's.
        cuts: The tensors at which it ends.
        check: Raises an error for a network that cannot be mapped, so that an error offers only cuts that can be.
    """

    weights: Path | None = None
    names: Path | None = None
    seed: int | None = None
    size: tuple[int, int] | None = None
    cuts: tuple[str, ...] = ()
    check: Check | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """The keys of ``FLAGS`` that the user gave."""
        return tuple(name for name in FLAGS if getattr(self, name) not in (None, ()))


@dataclass(frozen=True)
class FrontEnd:
    """A format of network files.

    A design keeps the files of the model that ``read`` returns. One of them is ``model/network`` with the ending that
    the front-end is registered for. Labels are read and checked for all formats alike, after ``read``.

    Attributes:
        title: The format as sentences name it, with an article: ``an .onnx file``.
        read: Turns a file and the options that the format takes into a model.
        reread: Reads the float network again from the ``model/network`` file of a design.
        takes: The options that the format takes, keys of ``FLAGS``. Commands in which only shapes matter draw seed 1
            for a format that takes ``weights`` if neither is given (systolic/cli/inputs.py).
        holds: What a file of this format holds itself, so that no option gives it: ``numbers``.
    """

    title: str
    read: Callable[[Path, LoadOptions], Model]
    reread: Callable[[Path], Network]
    takes: tuple[str, ...] = ()
    holds: str = ""

    def check(self, name: str, options: LoadOptions) -> None:
        """Raise ConflictError if there are options that the format does not take, or two sources of numbers."""
        foreign = [FLAGS[option] for option in options.given if option not in self.takes]
        if foreign:
            own = f"holds its own {self.holds} and " if self.holds else ""
            takes = listed(FLAGS[option] for option in self.takes) or "none of these options"
            raise ConflictError(
                (f"the network {cut(name)}", *foreign),
                f"{self.title} {own}takes {takes}",
                remedy=f"leave out {' and '.join(foreign)}",
            )
        if options.weights is not None and options.seed is not None:
            raise ConflictError(("--weights", "--seed"), "the numbers are trained ones, or random ones")

"""The description of a format of network files: its name, the options that it takes, and the functions that read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from boards.errors import ConflictError, cut, listed
from cnn.network import Network
from cnn.onnx.advice import Check
from systolic.model import Model

FLAGS = {"weights": "--weights", "names": "--names", "seed": "--seed", "size": "--size", "cuts": "--cut"}
"""The options that a format may take: field of ``LoadOptions`` to command-line option."""


@dataclass(frozen=True)
class LoadOptions:
    """The options with which a network file is read: weights, labels, seed, input size and cuts.

    Attributes:
        weights: The file with the trained weights.
        names: The file with the class labels, one per line.
        seed: The seed of random weights, instead of trained ones.
        size: The (width, height) of the network's input, instead of the size in the file.
        cuts: The tensors at which the network ends. The host computes everything that follows them.
        check: Raises an error for a network that cannot be mapped. If a network is refused, the error recommends only
            cuts whose network passes this check.
    """

    weights: Path | None = None
    names: Path | None = None
    seed: int | None = None
    size: tuple[int, int] | None = None
    cuts: tuple[str, ...] = ()
    check: Check | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """The options that were given, as keys of ``FLAGS``, such as "weights"."""
        return tuple(name for name in FLAGS if getattr(self, name) not in (None, ()))


@dataclass(frozen=True)
class FrontEnd:
    """The reader of one format of network files, with the options that it takes.

    A design contains the files of the model that ``read`` returns. One of them is named ``model/network`` with the
    file extension that the front-end is registered for. ``load_named`` reads and checks the labels after ``read``, in
    the same way for all formats.

    Attributes:
        title: The name of the format in sentences, with an article: ``an .onnx file``.
        read: Returns the model of a file, loaded with the given options. Only options in ``takes`` are given.
        reread: Returns the float network of a design, read from its ``model/network`` file.
        takes: The options that the format takes, as keys of ``FLAGS``. If a format takes ``weights`` and the user gives
            neither weights nor a seed, commands in which only shapes matter use seed 1 (systolic/cli/inputs.py).
        holds: The facts that a file of this format contains itself, so that no option gives them: ``weights``. It is
            part of the error for an option that the format does not take.
    """

    title: str
    read: Callable[[Path, LoadOptions], Model]
    reread: Callable[[Path], Network]
    takes: tuple[str, ...] = ()
    holds: str = ""

    def check(self, name: str, options: LoadOptions) -> None:
        """Raise ConflictError for options that the format does not take, or if weights and a seed are both given."""
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
            raise ConflictError(("--weights", "--seed"), "the weights are either read from a file or drawn at random")

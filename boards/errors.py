"""All errors that the project raises on purpose; every room imports them from here.

The sentence of an error says what was required, what came, where, and what to do. It stays a sentence whatever came:
what a file or a caller gave goes into it by ``shown``, ``cut`` or ``listed``.
"""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterable

LONGEST_VALUE = 80
"""Characters of a value in a sentence."""

MOST_VALUES = 12
"""Values of a list in a sentence."""

MOST_FAULTS, LONGEST_FAULT = 8, 300
"""Sentences that one error is made of, and characters of each."""


def cut(text: object, longest: int = LONGEST_VALUE) -> str:
    """str of it in at most ``longest`` characters: of a longer one its beginning and its end."""
    whole = str(text)
    if len(whole) <= longest:
        return whole
    end = longest // 4
    return f"{whole[: longest - end - 1]}…{whole[len(whole) - end :]}"


def shown(value: object, longest: int = LONGEST_VALUE) -> str:
    """repr in one line of at most ``longest`` characters; of nested or long values some elements stand for all."""
    text = _SHORT.repr(value)
    return cut(" ".join(text.split()) if "\n" in text else text, longest)


def listed(values: Iterable[object], most: int = MOST_VALUES) -> str:
    """``a, b, c``; of more than ``most`` the first ones, and how many there are besides. Each is ``cut``."""
    every = values if isinstance(values, Collection) else list(values)
    names = ", ".join(cut(value) for value, _ in zip(every, range(most), strict=False))
    return names if len(every) <= most else f"{names} and {len(every) - most:,} more"


def faults(sentences: Collection[str], separator: str = "; ") -> str:
    """What is wrong with many things, a sentence each: the first ones, and how many there are besides."""
    told = [cut(sentence, LONGEST_FAULT) for sentence, _ in zip(sentences, range(MOST_FAULTS), strict=False)]
    besides = [f"and {len(sentences) - MOST_FAULTS:,} more"] * (len(sentences) > MOST_FAULTS)
    return separator.join([*told, *besides])


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = self.maxother = LONGEST_VALUE

    def repr_int(self, x: int, level: int) -> str:
        """Without its digits where it has many: Python refuses to write more than 4300."""
        return repr(x) if x.bit_length() <= 128 else f"an integer of {x.bit_length():,} bits"


_SHORT = _Short()


class SystolicError(Exception):
    """Base of every error that this project raises on purpose."""


class BoardError(SystolicError):
    """A board file or a board fact is not usable."""


class NetworkError(SystolicError):
    """A model file (cfg, weights, names, npz …) is not usable; the sentence names file and line."""


class QuantiseError(SystolicError):
    """A network cannot be quantised as asked."""


class ScheduleError(SystolicError):
    """A layer or a network does not map onto the array, buffers or board."""


class GenerateError(SystolicError):
    """The generated folder cannot be made or written."""


class SimulationError(SystolicError):
    """The generated code cannot be compiled or executed."""


class PictureError(SystolicError):
    """A file is not a picture that can be used."""


class LabelError(SystolicError):
    """What a dataset says is on its pictures is not usable; the sentence names file and line."""


class HostError(SystolicError):
    """The accelerator, on the board or simulated, did not do what the host asked."""


class VendorError(SystolicError):
    """A vendor's tool is not there or failed, or a report that it left is not usable."""

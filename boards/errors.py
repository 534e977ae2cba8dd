"""Every error that the project raises on purpose; all packages import them from here.

An error is a class with fields. A caller decides by the class and the fields; a reader reads the sentence that the
class makes of them. The sentence says where, what was required, what came and what to do. Values from files and callers
go into it through ``shown``, ``cut`` or ``listed``, so that it stays one readable sentence even for a hostile value.
"""

from __future__ import annotations

import dataclasses
import difflib
import reprlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar

MAX_VALUE_LENGTH = 80
"""Limit for the characters of a value in a sentence."""

MAX_VALUES = 12
"""Limit for the values of a list in a sentence."""

MAX_CHOICES = 20
"""Limit for the allowed names in a sentence."""

MAX_FAULTS, MAX_FAULT_LENGTH = 8, 300
"""Limits for the sentences that one error lists, and for the characters of each."""


def cut(text: object, longest: int = MAX_VALUE_LENGTH) -> str:
    """Return ``str(text)``; if it has more than ``longest`` characters, its beginning and its end."""
    whole = str(text)
    if len(whole) <= longest:
        return whole
    end = longest // 4
    return f"{whole[: longest - end - 1]}…{whole[len(whole) - end :]}"


def shown(value: object, longest: int = MAX_VALUE_LENGTH) -> str:
    """Return ``repr(value)`` in one line of at most ``longest`` characters; a long collection is abbreviated."""
    text = _SHORT.repr(value)
    return cut(" ".join(text.split()) if "\n" in text else text, longest)


def listed(values: Iterable[object], most: int = MAX_VALUES) -> str:
    """Return ``a, b, c``: the first ``most`` values, each ``cut``, and the number of values left out."""
    every = values if isinstance(values, Collection) else list(values)
    names = ", ".join(cut(value) for value, _ in zip(every, range(most), strict=False))
    return names if len(every) <= most else f"{names} and {len(every) - most:,} more"


def choices_of(got: object, choices: Sequence[object]) -> str:
    """Return the allowed values as a list.

    More than ``MAX_VALUES`` are cut. If ``got`` is a text, they are counted, the nearest spelling is first, and the cut
    is at ``MAX_CHOICES``.
    """
    if len(choices) <= MAX_VALUES or not isinstance(got, str):
        return listed(choices)
    word = difflib.SequenceMatcher(b=cut(got).lower())

    def likeness(choice: object) -> float:
        word.set_seq1(cut(choice).lower())
        return word.ratio()

    nearest_first = sorted(choices, key=likeness, reverse=True)
    return f"these {len(choices):,}, the nearest first: {listed(nearest_first, MAX_CHOICES)}"


def faults(sentences: Collection[str], separator: str = "; ") -> str:
    """Return the first sentences of a list of faults, each ``cut``, and the number of sentences left out."""
    first = [cut(sentence, MAX_FAULT_LENGTH) for sentence, _ in zip(sentences, range(MAX_FAULTS), strict=False)]
    rest = [f"and {len(sentences) - MAX_FAULTS:,} more"] * (len(sentences) > MAX_FAULTS)
    return separator.join([*first, *rest])


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = self.maxother = MAX_VALUE_LENGTH

    def repr_int(self, x: int, level: int) -> str:
        """Return a large integer without its digits: Python refuses to convert more than 4300 of them."""
        return repr(x) if x.bit_length() <= 128 else f"an integer of {x.bit_length():,} bits"


_SHORT = _Short()

_Error = TypeVar("_Error", bound="SystolicError")


def _rebuild(kind: type[_Error], fields: dict[str, Any]) -> _Error:
    return kind(**fields)


@dataclass(eq=False, init=False)
class SystolicError(Exception):
    """Base of every error that this project raises on purpose; never raised itself.

    Attributes:
        where: The place that the error is about: ``file:line``, a node, a layer, an option. Empty if the sentence
            names it.
        remedy: What the reader can do, an imperative sentence without full stop. Empty if the sentence says it.
    """

    _: KW_ONLY
    where: str = ""
    remedy: str = ""

    def message(self) -> str:
        """Return the error's sentence, what was required and what came, without its place and remedy."""
        raise NotImplementedError(f"{type(self).__name__} has no sentence")

    def at(self: _Error, where: str, remedy: str = "") -> _Error:
        """Return this error with ``where`` in front of its own place, and with ``remedy`` if it has none yet."""
        place = ": ".join(filter(None, (where, self.where)))
        return dataclasses.replace(self, where=place, remedy=self.remedy or remedy)

    def __str__(self) -> str:
        text = self.message()
        if self.where:
            text = f"{self.where}: {text}"
        end = "\n" if "\n" in text else "; "
        return f"{text}{end}{self.remedy}" if self.remedy else text

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the error as its class and fields, so that it survives pickling between processes."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return _rebuild, (type(self), fields)


@dataclass(eq=False)
class InvalidValueError(SystolicError):
    """A value is not of the required form.

    Attributes:
        what: The name of the value, with an article or in quotation marks as the sentence needs it.
        got: The value that came.
        required: What it must be: ``a list of names``.
        nearest: The allowed values next to the one that came; empty if they are not known.
    """

    what: str
    got: object
    required: str
    nearest: Sequence[object] = ()

    def message(self) -> str:
        near = f" (nearest: {listed(self.nearest)})" if self.nearest else ""
        return f"{self.what} must be {self.required}; got {shown(self.got)}{near}"


@dataclass(eq=False)
class ChoiceError(SystolicError):
    """A value is not one of the allowed ones.

    Attributes:
        what: The name of the value.
        got: The value that came.
        choices: The values that are allowed.
    """

    what: str
    got: object
    choices: Sequence[object]

    def nearest(self) -> str | None:
        """Return the choice with the most similar spelling; None if no choice is similar."""
        if not isinstance(self.got, str):
            return None
        spellings = {str(choice).lower(): str(choice) for choice in self.choices}
        near = difflib.get_close_matches(cut(self.got).lower(), spellings, 1)
        return spellings[near[0]] if near else None

    def message(self) -> str:
        near = f" (did you mean {shown(self.nearest())}?)" if self.nearest() else ""
        return f"{self.what} must be one of {choices_of(self.got, self.choices)}; got {shown(self.got)}{near}"


@dataclass(eq=False)
class RangeError(SystolicError):
    """A number is outside its range.

    Attributes:
        what: The name of the number, with its unit if it has one.
        got: The number that came.
        low: The least allowed number; None if there is none.
        high: The greatest allowed number; None if there is none.
        integer: Whether the number must be an integer.
        exclusive: Whether ``low`` itself is refused.
    """

    what: str
    got: object
    low: float | None = None
    high: float | None = None
    integer: bool = False
    exclusive: bool = False

    def message(self) -> str:
        number = "a whole number " if self.integer and self.low != self.high else ""
        if self.low == self.high:
            bounds = _number(self.low)
        elif self.low is None:
            bounds = f"at most {_number(self.high)}"
        elif self.high is None:
            bounds = f"{'above' if self.exclusive else 'at least'} {_number(self.low)}"
        elif self.exclusive:
            bounds = f"above {_number(self.low)} and at most {_number(self.high)}"
        else:
            bounds = f"between {_number(self.low)} and {_number(self.high)}"
        return f"{self.what} must be {number}{bounds}; got {shown(self.got)}"


def _number(value: float | None) -> str:
    if isinstance(value, int):
        return f"{value:,}" if value.bit_length() <= 128 else shown(value)
    return f"{value:g}"


@dataclass(eq=False)
class ShapeError(SystolicError):
    """An array or a map has another shape, data type or number of values than is required.

    Attributes:
        what: The name of the array.
        got: Its shape, data type or number of values, in words or as a tuple.
        required: The required ones, in words or as a tuple.
    """

    what: str
    got: object
    required: object

    def message(self) -> str:
        return f"{self.what} must have {_words(self.required)}; got {_words(self.got)}"


def _words(value: object) -> str:
    return cut(value) if isinstance(value, str) else f"shape {shown(value)}"


@dataclass(eq=False)
class UnknownKeyError(SystolicError):
    """A file or a table has keys that its format does not know.

    Attributes:
        keys: The unknown keys.
        known: The keys that are allowed.
    """

    keys: Sequence[str]
    known: Sequence[str]

    def message(self) -> str:
        near = difflib.get_close_matches(cut(self.keys[0]), self.known, 1)
        meant = f" (did you mean {shown(near[0])}?)" if near else ""
        noun = "key" if len(self.keys) == 1 else "keys"
        known = f"; known keys are {choices_of(self.keys[0], self.known)}" if self.known else ""
        return f"unknown {noun} {listed(shown(key) for key in self.keys)}{meant}{known}"


@dataclass(eq=False)
class MissingValueError(SystolicError):
    """A value that is needed was not given: a key, an option, an argument, an entry.

    Attributes:
        what: What is missing.
        reason: What needs it, a clause after "because"; empty if that is obvious.
    """

    what: str
    reason: str = ""

    def message(self) -> str:
        return f"{self.what} is missing" + (f" ({self.reason})" if self.reason else "")


@dataclass(eq=False)
class FileAccessError(SystolicError):
    """A file or folder cannot be found, read or written.

    Attributes:
        path: The file or folder.
        reason: What is wrong with it: ``does not exist``, ``is a folder``.
        what: The name of the file's role: ``weights file``.
    """

    path: str
    reason: str
    what: str = "file"

    def message(self) -> str:
        return f"the {self.what} {cut(self.path, MAX_FAULT_LENGTH)} {self.reason}"


@dataclass(eq=False)
class DamagedFileError(SystolicError):
    """The content of a file is not what its format promises.

    Attributes:
        path: The file.
        reason: What is wrong, a clause that follows the file's name: ``has 3 bytes after its last number``.
        place: Where in the file: a line, a key, an offset; empty if the whole file is meant.
    """

    path: str
    reason: str
    place: str = ""

    def message(self) -> str:
        place = f", {self.place}," if self.place else ""
        return f"{cut(self.path, MAX_FAULT_LENGTH)}{place} {self.reason}"


@dataclass(eq=False)
class UnsupportedError(SystolicError):
    """A layer, an operator or a combination is valid but is not supported here.

    Attributes:
        subject: What is not supported, with its name: ``LSTM 'encoder'``.
        reason: Why, a sentence without full stop.
    """

    subject: str
    reason: str

    def message(self) -> str:
        return f"{self.subject} is not supported: {self.reason}"


@dataclass(eq=False)
class RefusedLoopError(SystolicError):
    """The schedule of a pipelined loop cannot be derived from its sources.

    Attributes:
        loop: The loop: its mark as ``file:line``, with its label if it has one.
        reason: Why, a sentence without full stop.
    """

    loop: str
    reason: str

    def message(self) -> str:
        return f"no schedule is derived for the loop {self.loop}: {self.reason}"


@dataclass(eq=False)
class DoesNotFitError(SystolicError):
    """A design needs more of a resource than there is.

    Attributes:
        subject: What does not fit: a design, a layer, a buffer.
        resource: The resource, with its unit: ``DSP``, ``URAM``, ``bits of a word``.
        need: How much the subject needs; None if it is not known or no amount would do.
        have: How much there is; None if that is not a number.
        others: Further resources that are short, each with what is needed and what there is.
        nearest: What would fit and is nearest to what was asked, a noun phrase; empty if it is not known.
    """

    subject: str
    resource: str
    need: float | None
    have: float | None
    others: Sequence[tuple[str, float, float]] = ()
    nearest: str = ""

    def message(self) -> str:
        have = "" if self.have is None else _number(self.have)
        if self.need is None:
            lack = f"more {self.resource} than there are" + (f" ({have})" if have else "")
        else:
            lack = f"{_number(self.need)} {self.resource}" + (f", and there are {have}" if have else "")
        text = f"{self.subject} does not fit: it needs {lack}"
        others = ", ".join(f"{_number(need)} {name} of {_number(have)}" for name, need, have in self.others)
        also = f"; it also needs {others}" if others else ""
        near = f"; what fits: {self.nearest}" if self.nearest else ""
        return f"{text}{also}{near}"


@dataclass(eq=False)
class ConflictError(SystolicError):
    """Options or facts, each valid, exclude each other.

    Attributes:
        subjects: The options or facts.
        reason: Why they exclude each other, a sentence without full stop.
    """

    subjects: Sequence[str]
    reason: str

    def message(self) -> str:
        return f"{' and '.join(self.subjects)} exclude each other: {self.reason}"


@dataclass(eq=False)
class MismatchError(SystolicError):
    """Two things that must be equal are not: a file and its network, a library and its manifest, two models.

    Attributes:
        what: What is compared.
        got: Its value here.
        expected: Its value there.
    """

    what: str
    got: object
    expected: object

    def message(self) -> str:
        return f"{self.what} must equal {_plain(self.expected)}; got {_plain(self.got)}"


def _plain(value: object) -> str:
    return cut(value, MAX_FAULT_LENGTH) if isinstance(value, str) else shown(value)


@dataclass(eq=False)
class MissingToolError(SystolicError):
    """A program or package that is needed is not installed.

    Attributes:
        tool: The program or package.
        purpose: What it is needed for, a phrase after "to": ``read .onnx files``.
    """

    tool: str
    purpose: str

    def message(self) -> str:
        return f"{self.tool} is not installed; it is needed to {self.purpose}"


@dataclass(eq=False)
class ToolError(SystolicError):
    """A program or package that was called failed: a compiler, a simulator, a vendor's tool, an exporter.

    Attributes:
        tool: The program or package.
        reason: What it said or did, a clause that follows its name: ``ended with status 1``.
        output: The last lines that it printed; empty if none.
    """

    tool: str
    reason: str
    output: str = ""

    def message(self) -> str:
        return f"{self.tool} {self.reason}" + (f":\n{self.output}" if self.output else "")


@dataclass(eq=False)
class AcceleratorError(SystolicError):
    """The accelerator, on a board or simulated, did not do what the host asked.

    Attributes:
        reason: What happened, a sentence without full stop.
        state: The registers or counters at that moment; empty if none were read.
    """

    reason: str
    state: str = ""

    def message(self) -> str:
        return self.reason + (f" ({self.state})" if self.state else "")


@dataclass(eq=False)
class StateError(SystolicError):
    """A call is not allowed in the present state of an object: closed, busy, used already.

    Attributes:
        subject: The object.
        state: Its state, a clause that follows: ``is closed``.
    """

    subject: str
    state: str

    def message(self) -> str:
        return f"{self.subject} {self.state}"


@dataclass(eq=False)
class SeveralFaultsError(SystolicError):
    """Several things are wrong, all of them listed.

    Attributes:
        errors: The errors, in the order of the file or network.
        subject: What they are about: ``4 layers of net.onnx are not supported``; empty if each names it.
    """

    errors: Sequence[SystolicError]
    subject: str = ""

    def message(self) -> str:
        sentences = _grouped(self.errors)
        lines = "\n  " if self.subject and len(sentences) > 1 else ""
        text = faults(sentences, lines or "; ")
        return f"{self.subject}:{lines or ' '}{text}" if self.subject else text


def _grouped(errors: Sequence[SystolicError]) -> list[str]:
    """Return one sentence per fault. Nodes of one kind with the same fault share a sentence, which counts them."""
    groups: dict[tuple[str, ...], list[SystolicError]] = {}
    for error in errors:
        kind, _, name = _place(error).partition(" ")
        groups.setdefault((kind, str(_placed(error, ""))) if name else (str(error),), []).append(error)
    return [
        str(_placed(first, f"{_place(first)} (and {len(others):,} more)") if others else first)
        for first, *others in groups.values()
    ]


def _place(error: SystolicError) -> str:
    return error.subject if isinstance(error, UnsupportedError) else error.where


def _placed(error: SystolicError, place: str) -> SystolicError:
    if isinstance(error, UnsupportedError):
        return dataclasses.replace(error, subject=place)
    return dataclasses.replace(error, where=place)

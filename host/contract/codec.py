"""Frozen dataclasses ↔ JSON: fields are keys, their types and ranges what is accepted, in their order as written.

What is read is untrusted. Every value has the type of its field, or HostError names its place, what it has to be, and
what came.
"""

from __future__ import annotations

import functools
import json
import math
import stat
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from boards.errors import HostError, listed, shown

T = TypeVar("T")


@dataclass(frozen=True)
class Range:
    """Of a number, both ends included; ``unit`` is added to the sentence."""

    low: float
    high: float
    unit: str = ""

    def holds(self, value: Any) -> bool:
        return bool(self.low <= value <= self.high)

    def __str__(self) -> str:
        return f"{self.low}…{self.high} {self.unit}".rstrip()


@dataclass(frozen=True)
class OneOf:
    """The values that there are."""

    values: tuple[object, ...]

    def holds(self, value: Any) -> bool:
        return value in self.values

    def __str__(self) -> str:
        return f"one of {listed(self.values)}"


COUNT = Range(0, 1 << 48)
"""Of cycles, multiply-accumulates and whatever else is only counted."""

Count = Annotated[int, COUNT]


OPTIONAL = {"optional": True}
"""Metadata of a field that is not written where it has its default, and has it where it is not there."""


# --- reading -----------------------------------------------------------------------------------------------


def read_json(path: Path, largest: int) -> Any:
    """The JSON in a file of at most ``largest`` bytes; HostError for any other. OSError is the caller's: who wants
    the file knows what to do about it."""
    return parse_json(read_bounded(path, largest), str(path))


def read_bounded(path: Path, largest: int) -> bytes:
    """The bytes of a file of at most ``largest``; HostError for any other, and for what is no file. OSError as above.

    The size is asked first: nothing that is too large is read. A pipe would be waited for, a device has no end.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise HostError(f"{path} is no file; generate the design again")
    if status.st_size > largest:
        raise HostError(f"{path} has {status.st_size} bytes, at most {largest} are read; generate the design again")
    return path.read_bytes()


def parse_json(data: bytes, source: str) -> Any:
    """What a JSON text holds, numbers finite; HostError where it is none, or nested deeper than Python can follow."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except RecursionError as error:
        raise HostError(f"{source} is damaged: it is nested too deeply; copy or generate the design again") from error
    except ValueError as error:
        raise HostError(f"{source} is damaged, it is no JSON ({error}); copy or generate the design again") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def from_json(kind: type[T], values: object, place: str = "") -> T:
    """An instance of the dataclass ``kind`` from a JSON object that stands at ``place``; HostError else."""
    if not isinstance(values, Mapping):
        raise HostError(f"{place or 'it'} is an object, not {shown(values)}")
    reader = getattr(kind, "from_values", None)
    if reader is not None:
        return cast(T, reader(values, place))
    hints = _hints(cast(Any, kind))
    read = {}
    for key in _fields(cast(Any, kind)):
        if key.name in values:
            read[key.name] = _value(hints[key.name], values[key.name], f"{place}.{key.name}".lstrip("."))
        elif not key.metadata.get("optional"):
            raise HostError(f"{place or 'it'} lacks {key.name!r}")
    return kind(**read)


def _value(kind: Any, value: Any, place: str) -> Any:
    """``value`` as ``kind``: a type, or one with conditions (Annotated)."""
    if get_origin(kind) is Annotated:
        plain, condition = get_args(kind)
        number = _plain(plain, value, f"{place} is {condition}")
        if not condition.holds(number):
            raise HostError(f"{place} is {condition}, not {shown(value)}")
        return number
    if kind in _PLAIN:
        return _plain(kind, value, f"{place} is {_PLAIN[kind]}")
    if is_dataclass(kind):
        return from_json(cast(type[Any], kind), value, place)
    return _collection(kind, value, place)


def _collection(kind: Any, value: Any, place: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (types.UnionType, Union):  # only with None, which stands for a key that is not there
        return _value(arguments[0], value, place)
    if origin is tuple:
        if not isinstance(value, list):
            raise HostError(f"{place} is a list, not {shown(value)}")
        return tuple(_value(arguments[0], element, f"{place}[{index}]") for index, element in enumerate(value))
    if not isinstance(value, Mapping):
        raise HostError(f"{place} is an object, not {shown(value)}")
    return {str(key): _value(arguments[1], element, f"{place}[{shown(key)}]") for key, element in value.items()}


_PLAIN: Mapping[type, str] = {int: "a whole number", float: "a finite number", str: "a text", bool: "true or false"}


def _plain(kind: Any, value: Any, sentence: str) -> Any:
    if kind is float and type(value) is int and abs(value) < 1 << 1000:
        value = float(value)
    if type(value) is not kind or (kind is float and not math.isfinite(value)):
        raise HostError(f"{sentence}, not {shown(value)}")
    return value


# --- writing -----------------------------------------------------------------------------------------------


def to_json(value: Any) -> Any:
    """What ``from_json`` reads: dataclasses as objects, tuples as lists."""
    if hasattr(value, "to_values"):
        return value.to_values()
    if is_dataclass(value):
        written = {
            key.name: getattr(value, key.name) for key in _fields(cast(Any, type(value))) if _is_written(key, value)
        }
        return {name: to_json(element) for name, element in written.items()}
    if isinstance(value, Mapping):
        return {key: to_json(element) for key, element in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_json(element) for element in value]
    return value


def _is_written(key: Field[Any], value: Any) -> bool:
    return not key.metadata.get("optional") or getattr(value, key.name) != key.default


# --- dataclasses -------------------------------------------------------------------------------------------


@functools.cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=True)


@functools.cache
def _fields(kind: Any) -> tuple[Field[Any], ...]:
    """Those that have no default and those that are optional: what else has a default is not of the JSON."""
    return tuple(key for key in fields(kind) if key.default is MISSING or key.metadata.get("optional"))

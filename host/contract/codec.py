"""Conversion between frozen dataclasses and JSON. Fields are keys; field types and ranges define what is accepted.

Input is untrusted. A value of the wrong type or outside its range is refused. The error gives the place, the
requirement and the value.
"""

from __future__ import annotations

import functools
import math
import stat
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from boards import json_text
from boards.errors import (
    FileAccessError,
    InvalidValueError,
    MissingValueError,
    RangeError,
    SystolicError,
    shown,
)
from boards.ranges import OneOf as OneOf
from boards.ranges import Range as Range

T = TypeVar("T")


COUNT = Range(0, 1 << 48)
"""Range of numbers that are only counted, such as cycles and multiply-accumulates."""

Count = Annotated[int, COUNT]


OPTIONAL = {"optional": True}
"""Metadata of a field that a file may omit. A missing key takes the default, and a default value is not written."""


# --- reading -----------------------------------------------------------------------------------------------


def read_json(path: Path, largest: int) -> Any:
    """Read a JSON file of at most ``largest`` bytes and return its content."""
    return parse_json(read_bounded(path, largest), str(path))


def read_bounded(path: Path, largest: int) -> bytes:
    """Return the bytes of a regular file of at most ``largest`` bytes.

    The size is checked before reading. Reading a pipe would block, and reading a device would never end.

    Raises:
        RangeError: The file is larger.
        FileAccessError: The path is a folder, a pipe or a device.
        OSError: The file cannot be read. The caller reports it, because it knows what the file is for.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise FileAccessError(str(path), "is not a regular file", remedy="generate the design again")
    if status.st_size > largest:
        raise RangeError(
            "the number of bytes", status.st_size, high=largest, where=str(path), remedy="generate the design again"
        )
    return path.read_bytes()


def parse_json(data: bytes, source: str) -> Any:
    """Parse a JSON text (bytes) and return its content. All its numbers must be finite.

    DamagedFileError if it is not JSON, or nested too deeply.
    """
    return json_text.parse_json(data, source, remedy="copy or generate the design again", finite=True)


def from_json(
    kind: type[T], values: object, place: str = "", places: Mapping[str, str] = types.MappingProxyType({})
) -> T:
    """Return an instance of the dataclass ``kind`` from a JSON object.

    Errors have the place of the wrong value as ``where``.

    Args:
        place: The object's place in the file.
        places: {field: place in the file} of the fields whose place is not ``place.field``.

    Raises:
        InvalidValueError: A value has the wrong type.
        RangeError, ChoiceError: A value is outside its field's range or choices.
        MissingValueError: A key is missing.
    """
    if not isinstance(values, Mapping):
        raise InvalidValueError("the value", values, "an object", where=place)
    reader = getattr(kind, "from_values", None)
    if reader is not None:
        return cast(T, reader(values, place))
    hints = _hints(cast(Any, kind))
    read = {}
    for key in _fields(cast(Any, kind)):
        where = places.get(key.name, f"{place}.{key.name}".lstrip("."))
        if key.name in values:
            read[key.name] = _value(hints[key.name], values[key.name], where)
        elif not key.metadata.get("optional"):
            owner, _, name = where.rpartition(".")
            raise MissingValueError(f"{name!r}", where=owner)
    try:
        return kind(**read)
    except SystolicError as error:  # raised by the dataclass, which does not know its place in the file
        raise error.at(place) from error


def _value(kind: Any, value: Any, place: str) -> Any:
    """Return a JSON value converted to ``kind``, which is a type, or a type with a range or choices (``Annotated``)."""
    if get_origin(kind) is Annotated:
        plain, condition = get_args(kind)
        stored = _as_plain(int if plain is bool else plain, value)  # a flag with a choice is 1 or 0
        if stored is None or not condition.holds(stored):
            raise condition.refusal(plain, value, place)
        return plain(stored)
    if kind in _PLAIN:
        plain_value = _as_plain(kind, value)
        if plain_value is None:
            raise InvalidValueError("the value", value, _PLAIN[kind], where=place)
        return plain_value
    if is_dataclass(kind):
        return from_json(cast(type[Any], kind), value, place)
    return _collection(kind, value, place)


def _collection(kind: Any, value: Any, place: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (types.UnionType, Union):  # only unions with None occur; None means that the key is missing
        return _value(arguments[0], value, place)
    if origin is tuple:
        if not isinstance(value, list):
            raise InvalidValueError("the value", value, "a list", where=place)
        return tuple(_value(arguments[0], element, f"{place}[{index}]") for index, element in enumerate(value))
    if not isinstance(value, Mapping):
        raise InvalidValueError("the value", value, "an object", where=place)
    return {str(key): _value(arguments[1], element, f"{place}[{shown(key)}]") for key, element in value.items()}


_PLAIN: Mapping[type, str] = {int: "a whole number", float: "a finite number", str: "a text", bool: "true or false"}


def _as_plain(kind: Any, value: Any) -> Any:
    """Return a JSON value as an int, float, str or bool (``kind``). None if it has another type, or is not finite."""
    if kind is float and type(value) is int and abs(value) < 1 << 1000:
        value = float(value)
    if type(value) is not kind or (kind is float and not math.isfinite(value)):
        return None
    return value


# --- writing -----------------------------------------------------------------------------------------------


def to_json(value: Any) -> Any:
    """Return a value as the JSON that ``from_json`` reads: dataclasses as objects, tuples as lists."""
    if hasattr(value, "to_values"):
        return value.to_values()
    if is_dataclass(value):
        hints, keys = _hints(cast(Any, type(value))), _fields(cast(Any, type(value)))
        written = {key.name: getattr(value, key.name) for key in keys if _is_written(key, value)}
        flags = {name for name in written if get_args(hints[name])[:1] == (bool,)}
        return {name: int(element) if name in flags else to_json(element) for name, element in written.items()}
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
    """Return the fields of a dataclass that are keys of its JSON object.

    A field with a default is a key only if its metadata has "optional". Otherwise it is neither read nor written.
    """
    return tuple(key for key in fields(kind) if key.default is MISSING or "optional" in key.metadata)

"""The parser of JSON files that anyone may have written: a bad file raises DamagedFileError, never a Python error."""

from __future__ import annotations

import json
from typing import Any

from boards.errors import MAX_FAULT_LENGTH, DamagedFileError, cut


def parse_json(text: str | bytes, source: str, *, remedy: str = "", finite: bool = False) -> Any:
    """Return the parsed content of a JSON text; DamagedFileError if it is not valid JSON.

    Args:
        text: The text, or its bytes in UTF-8.
        source: The name of the file, which the error states.
        remedy: The advice at the end of the error, such as to generate the design again.
        finite: Whether to refuse NaN and Infinity, which are not JSON but which Python's parser accepts.

    Raises:
        DamagedFileError: The text is not JSON, or is nested too deeply for the parser.
    """
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(decoded, parse_constant=_refuse_constant if finite else None)
    except RecursionError as error:
        raise DamagedFileError(source, "is nested too deeply", remedy=remedy) from error
    except ValueError as error:  # not UTF-8, not JSON, or an integer of thousands of digits
        raise DamagedFileError(source, f"is not JSON: {cut(error, MAX_FAULT_LENGTH)}", remedy=remedy) from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")

"""An assertion on an error's class and fields."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from boards.errors import SystolicError

_Error = TypeVar("_Error", bound=SystolicError)


@contextmanager
def raises(kind: type[_Error], **fields: object) -> Iterator[pytest.ExceptionInfo[_Error]]:
    """Expect an error of exactly this class, and compare the given fields with ==."""
    with pytest.raises(kind) as caught:
        yield caught
    assert type(caught.value) is kind, f"{type(caught.value).__name__}: {caught.value}"
    assert {name: getattr(caught.value, name) for name in fields} == fields

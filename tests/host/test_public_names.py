"""Names of ``import host``: all exist, and modules that a board's image lacks are loaded on demand."""

from __future__ import annotations

import subprocess
import sys

import pytest

import host
from boards import errors


def test_public_names_are_found_where_they_are_defined() -> None:
    for name in host.__all__:
        assert getattr(host, name).__name__ == name
    for name in ("RangeError", "SystolicError"):
        assert getattr(host, name) is getattr(errors, name)
    assert host.HostError is errors.SystolicError, "the name of 0.1"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = host.nonsense


def test_import_of_host_imports_neither_boards_nor_numpy() -> None:
    code = "import sys, host; print({name.split('.')[0] for name in sys.modules} & {'host', 'boards', 'numpy'})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{'host'}\n"

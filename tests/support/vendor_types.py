"""The vendor's own ap_int.h and hls_stream.h, for tests that compile against them."""

from __future__ import annotations

from pathlib import Path

import pytest

from boards.errors import MissingToolError
from systolic.execution.build import ap_int_folder


def vendor_types() -> Path:
    """Return the folder of both headers; skip the test if one of them is absent."""
    try:
        folder = ap_int_folder()
    except MissingToolError as error:
        pytest.skip(str(error))
    if not (folder / "hls_stream.h").is_file():
        pytest.skip(f"{folder} holds ap_int.h alone; pip install --no-deps hls4ml brings hls_stream.h as well")
    return folder

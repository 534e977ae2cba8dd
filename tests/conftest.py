"""What every room's tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No example is refused for the seconds it took; where CI is set, every run draws the same ones.
settings.register_profile(
    "systolic", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("systolic")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write what tests/golden compares with anew, to be read as a diff"
    )


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real networks, pictures and expected values; skips where it is absent."""
    beside = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("SYSTOLIC_SHARED", beside))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data at {folder}: set SYSTOLIC_SHARED to the folder that holds data/")
    return folder

"""Makes the session's fixtures once, for instance generated and compiled designs, before the mutants are tried."""

from __future__ import annotations

import pytest
from _pytest.fixtures import FixtureDef
from _pytest.runner import runtestprotocol


def make_fixtures(session: pytest.Session) -> None:
    """Make every session fixture that a test uses. A fixture that cannot be made is left to the tests.

    The process of each mutant inherits the fixtures, and no mutant affects them.
    """
    fixtures: set[str] = set()
    session.config.option.setuponly = True
    for item in session.items:
        names = _of_session(item) - fixtures
        if names:
            fixtures |= names
            runtestprotocol(item, log=False, nextitem=session)  # type: ignore[arg-type]
    session.config.option.setuponly = False


def _of_session(item: pytest.Item) -> set[str]:
    info = getattr(item, "_fixtureinfo", None)
    definitions: dict[str, tuple[FixtureDef[object], ...]] = getattr(info, "name2fixturedefs", {})
    return {name for name, sources in definitions.items() if sources[-1].scope == "session"}

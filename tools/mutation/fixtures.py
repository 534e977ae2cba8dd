"""What all tests share, made once: designs that are generated and compiled, for instance."""

from __future__ import annotations

import pytest
from _pytest.fixtures import FixtureDef
from _pytest.runner import runtestprotocol


def make_fixtures(session: pytest.Session) -> None:
    """Every fixture of the whole session that a test asks for; one that cannot be made is left to the tests.

    Each mutant's process has them then, and nothing of the mutant is in them.
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

"""Old names of options and commands. They still work, are not shown, and say what to write instead."""

from __future__ import annotations

REMOVED_IN = "0.3"
"""The version that no longer knows the old names."""

OPTIONS = {"--threshold": "--conf", "--overlap": "--iou", "--rate": "--lr"}
"""Old option → new option: values and their meaning are the same."""

COMMANDS = {"generate list": "networks"}
"""Old command → new command."""


def note(old: str, new: str) -> str:
    """Return the sentence for whoever writes an old name."""
    return f"{old} is called {new} now; version {REMOVED_IN} will not know the old name"

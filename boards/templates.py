"""Generated text: templates decide the text, Python decides the numbers.

Every name that a template uses must have a value. Every text that a template pastes into C++ or Tcl must pass
``identifier`` or ``comment``, because a network's names and labels are untrusted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import jinja2

from boards.errors import DamagedFileError, InvalidValueError

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}\Z")


def identifier(text: str) -> str:
    """Return ``text`` if it is a plain identifier of C++ and Tcl; raise InvalidValueError otherwise."""
    if not _IDENTIFIER.match(text):
        raise InvalidValueError("an identifier", text, "a letter, then letters, digits or '_' (63 at most)")
    return text


def comment(text: str) -> str:
    """Return ``text`` as one line of printable characters that cannot end, continue or escape a comment."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return re.sub(r"[\\?$\[\]{}\"`]|\*/|/\*", "_", line)[:400]


class Templates:
    """The Jinja2 templates of a folder. Each may use the filters ``identifier`` and ``comment``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _environment(self) -> jinja2.Environment:
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(self._folder),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
        )
        environment.filters.update(identifier=identifier, comment=comment)
        return environment

    def render(self, template: str, values: Mapping[str, object]) -> str:
        """Return the text that a template of the folder gives for these values.

        Raises:
            DamagedFileError: The template is invalid or uses a name without a value; the error names its line if known.
        """
        try:
            return self._environment.get_template(template).render(values)
        except jinja2.TemplateSyntaxError as error:
            path, line = error.filename or template, f"line {error.lineno}"
            raise DamagedFileError(path, f"is not a template: {error.message}", line) from error
        except jinja2.UndefinedError as error:
            raise DamagedFileError(template, f"cannot be rendered: {error.message}") from error

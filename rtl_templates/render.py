"""Templates decide text; Python decides numbers: the text of a template with every name that it uses given."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import jinja2

from boards.errors import GenerateError

FOLDER = Path(__file__).parent

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}\Z")


def identifier(text: str) -> str:
    """``text`` where it is a plain identifier; GenerateError else."""
    if not _IDENTIFIER.match(text):
        raise GenerateError(f"an identifier is a letter, then letters, digits or '_' (63 at most), not {text!r}")
    return text


def comment(text: str) -> str:
    """``text`` on one line of printable characters without what ends, splices or escapes a comment."""
    line = "".join(character if character.isprintable() else " " for character in text)
    return re.sub(r"[\\?$\[\]{}\"`]|\*/|/\*", "_", line)[:400]


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def render(template: str, values: Mapping[str, object]) -> str:
    """The text of ``templates/<template>``; GenerateError names template and line."""
    try:
        return _environment().get_template(template).render(values)
    except jinja2.TemplateSyntaxError as error:
        raise GenerateError(f"template {error.filename or template}:{error.lineno}: {error.message}") from error
    except jinja2.UndefinedError as error:
        raise GenerateError(f"template {template}: {error.message}") from error

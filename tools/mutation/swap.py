"""Puts a mutant in place of a loaded module: its code into every live function, its values by name."""

from __future__ import annotations

import gc
import importlib.machinery
import sys
from collections.abc import Iterator
from functools import _lru_cache_wrapper
from types import CodeType, FunctionType, ModuleType
from typing import Any

_PLAIN = (bool, int, float, str, bytes, tuple, frozenset, type(None))


class StillbornError(Exception):
    """The mutant does not compile, or does not load."""


class UnreachableError(Exception):
    """The mutant changes nothing in the loaded module."""


def apply_mutation(module: ModuleType, loaded: str, text: str) -> None:
    """Change the loaded module as if its file had contained the mutated text.

    Args:
        module: The loaded module.
        loaded: The text it was loaded from.
        text: The mutated text.

    Raises:
        StillbornError: The mutant does not compile or load.
        UnreachableError: The change is in a table that was built when the module was loaded.
    """
    _forget_results()
    try:
        original = compile(loaded, str(module.__file__), "exec", dont_inherit=True)
        mutated = compile(text, str(module.__file__), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise StillbornError from error
    exchanged = dict(_changed(original, mutated))
    count = 0
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__ in exchanged:
            function.__code__ = exchanged[function.__code__]
            count += 1
    if not count and not _put_values(module, mutated):
        raise UnreachableError


def _forget_results() -> None:
    for wrapper in gc.get_objects():
        if isinstance(wrapper, _lru_cache_wrapper):
            wrapper.cache_clear()


def _nested(code: CodeType) -> dict[tuple[str, int, int], CodeType]:
    """Return the code objects in a code object, by name, first line and number among equals."""
    nested: dict[tuple[str, int, int], CodeType] = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            place = constant.co_name, constant.co_firstlineno
            nested[place[0], place[1], sum(key[:2] == place for key in nested)] = constant
    return nested


def _changed(original: CodeType, mutated: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield old and new code of every function that differs.

    If a mutation removes a loop's iterable, its code is gone.
    """
    after = _nested(mutated)
    for key, old in _nested(original).items():
        new = after.get(key)
        if new is not None and new != old:
            yield old, new
            yield from _changed(old, new)


def _put_values(module: ModuleType, mutated: CodeType) -> bool:
    """Set the defaults, constants and class fields that differ. Return whether any does."""
    loader = importlib.machinery.SourceFileLoader(module.__name__, module.__file__ or "")
    fresh = ModuleType(module.__name__)
    fresh.__dict__.update(__file__=module.__file__, __loader__=loader, __package__=module.__package__)
    loaded = sys.modules[module.__name__]
    sys.modules[module.__name__] = fresh  # dataclasses look up types there
    try:
        exec(mutated, fresh.__dict__)
    except Exception as error:
        raise StillbornError from error
    finally:
        sys.modules[module.__name__] = loaded
    return _put_all(module, fresh)


def _put_all(owner: Any, fresh: Any) -> bool:
    names = [name for name in vars(fresh) if not name.startswith("__") or name == "__init__"]
    return max([_put(owner, name, vars(fresh)[name]) for name in names], default=False)


def _put(owner: Any, name: str, new: Any) -> bool:
    """Set one value if it differs, in every module that imported it. Return whether it does."""
    old, new = _unwrapped(vars(owner).get(name)), _unwrapped(new)
    if isinstance(old, FunctionType) and isinstance(new, FunctionType):
        return _put_defaults(old, new)
    if isinstance(old, type) and isinstance(new, type):
        return old is not new and old.__module__ == new.__module__ and _put_all(old, new)
    if repr(old) == repr(new) or " at 0x" in repr(new):
        return False
    if isinstance(owner, type):
        setattr(owner, name, new)
        return isinstance(new, _PLAIN)
    for module in list(sys.modules.values()):
        if vars(module).get(name) is old:
            setattr(module, name, new)
    return True


def _unwrapped(value: Any) -> Any:
    """Return the function that a cache or a context manager wraps."""
    return getattr(value, "__wrapped__", value)


def _put_defaults(old: FunctionType, new: FunctionType) -> bool:
    if repr((old.__defaults__, old.__kwdefaults__)) == repr((new.__defaults__, new.__kwdefaults__)):
        return False
    old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
    return True

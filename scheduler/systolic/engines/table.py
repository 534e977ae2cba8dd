"""The engines by name, as an array and its files state it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from scheduler.systolic.engines.engine import Engine
from scheduler.systolic.engines.hls.engine import HlsEngine
from scheduler.systolic.engines.rtl.engine import RtlEngine

_ENGINES: tuple[Engine[Any], ...] = (HlsEngine(), RtlEngine())

ENGINE_NAMED: Mapping[str, Engine[Any]] = MappingProxyType({engine.language.name: engine for engine in _ENGINES})

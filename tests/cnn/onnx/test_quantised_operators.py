"""Tests of single operators on integers, against onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tests.support.cases import cases
from tests.support.onnx.integers import INTEGERS
from tests.support.onnx.quantising import steps_on_noise

Array = np.ndarray[Any, Any]


@cases("name", INTEGERS)
def test_integer_operator_is_within_a_step_of_onnxruntime(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.onnx"
    onnx.save(INTEGERS[name](), path)
    steps = steps_on_noise(path)
    assert len(steps) >= 1
    assert max(steps.values()) <= 1, steps

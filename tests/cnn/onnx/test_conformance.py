"""Tests with the backend test cases of the package onnx."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest

from boards.errors import SystolicError
from tests.support.onnx.conformance import (
    COMPUTED,
    COUNTED,
    PRINTED,
    SKIPPED,
    TOLERANCE,
    cases,
    difference,
    mismatches,
    skipped,
    summary_text,
)

EXECUTED = ("test_Conv1d_dilated", "test_convinteger_with_padding")
"""Cases with weights whose designs are executed. ``python -m tests.support.onnx.conformance systolic streaming``
executes all."""


def test_backend_case_is_computed_or_refused_with_a_known_reason() -> None:
    errors: dict[str, float] = {}
    reasons: dict[str, list[str]] = {}
    for case in cases():
        try:
            errors[case.name] = difference(case)
        except SystolicError as error:
            reasons.setdefault(skipped(error), []).append(case.name)
    summary = summary_text(len(errors), reasons)
    print(summary)
    assert {name: error for name, error in errors.items() if not error <= PRINTED.get(name, TOLERANCE)} == {}
    if onnx.__version__.startswith(COUNTED):
        counts = {reason.sentence: reason.count for reason in SKIPPED}
        update = f"if that is right, put these counts into COMPUTED and SKIPPED of conformance.py:\n{summary}"
        assert (len(errors), {reason: len(names) for reason, names in reasons.items()}) == (COMPUTED, counts), update
    kinds = {re.split(r"_|[12]d", name.removeprefix("test_"))[0].lower() for name in errors}
    assert kinds >= {"batchnorm", "basic", "conv", "globalaveragepool", "maxpool", "spacetodepth", "relu"}
    assert kinds >= {
        "convinteger",
        "matmulinteger",
        "qlinearconv",
        "gemm",
        "linear",
        "max",
        "sub",
        "prelu",
        "zeropad",
    }


@pytest.mark.engine
@pytest.mark.parametrize("style", ["systolic", "streaming"])
@pytest.mark.parametrize("name", EXECUTED)
def test_design_of_a_case_with_weights_equals_golden_model(name: str, style: str, tmp_path: Path) -> None:
    (case,) = (case for case in cases() if case.name == name)
    assert case.weighted
    compared, wrong = mismatches(case, tmp_path, style)
    assert wrong == 0 < compared

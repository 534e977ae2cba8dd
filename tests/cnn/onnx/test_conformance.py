"""The cases that the package onnx brings for its backends."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from boards.errors import NetworkError
from tests.cnn.onnx.conformance import PRINTED, SKIPPED, TOLERANCE, cases, difference, mismatches, skipped, told

EXECUTED = ("test_Conv1d_dilated", "test_convinteger_with_padding")
"""Of those with weights; python -m tests.cnn.onnx.conformance systolic streaming executes all."""


def test_every_case_is_right_or_refused_with_a_reason_that_is_known() -> None:
    errors: dict[str, float] = {}
    reasons: dict[str, list[str]] = {}
    for case in cases():
        try:
            errors[case.name] = difference(case)
        except NetworkError as error:
            reasons.setdefault(skipped(error), []).append(case.name)
    print(told(len(errors), reasons))
    assert {name: error for name, error in errors.items() if not error <= PRINTED.get(name, TOLERANCE)} == {}
    assert len(errors) >= 220
    assert set(reasons) == {reason for reason, *_ in SKIPPED}  # no reason stays in the list that is none any more
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


@pytest.mark.parametrize("style", ["systolic", "streaming"])
@pytest.mark.parametrize("name", EXECUTED)
def test_designs_of_cases_with_weights_are_golden(name: str, style: str, tmp_path: Path) -> None:
    (case,) = (case for case in cases() if case.name == name)
    assert case.weighted
    compared, wrong = mismatches(case, tmp_path, style)
    assert wrong == 0 < compared

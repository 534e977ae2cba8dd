"""The cases that the package onnx brings for its backends."""

from __future__ import annotations

import re

from boards.errors import NetworkError
from tests.cnn.onnx.conformance import TOLERANCE, cases, difference

REFUSED = (
    "an average with padding counts it",
    "an average's windows lie within the padded map",
    "it must be exported for inference",
    "padding is with zeros",
    "a network needs at least one layer behind its input",
    "its output must have the batch of 1 in front",
    "the matrix has two sides",
    "a pool's dilations must be 1",
    "a pool's window is square",
    "where the greatest was is not told",
    "a map has one scale",
    "pixels are repeated",
    "height and width grow by one whole factor",
    "there must be a factor for each of four sides",
    "coordinate_transformation_mode",
    "changes the order of the values",
    "it is over the channels of one position",
    "a mean is taken over height and width",
    "one slope for all channels is needed",
)
"""Why a case is no network here."""


def test_every_case_is_right_or_refused_with_a_reason_that_is_known() -> None:
    errors, reasons = {}, []
    for case in cases():
        try:
            errors[case.name] = difference(case)
        except NetworkError as error:
            reasons.append(str(error))
    assert {name: error for name, error in errors.items() if not error <= TOLERANCE} == {}
    assert [reason for reason in reasons if not any(known in reason for known in REFUSED)] == []
    assert len(errors) >= 40
    kinds = {re.split(r"_|2d", name.removeprefix("test_"))[0].lower() for name in errors}
    assert kinds >= {"batchnorm", "basic", "conv", "globalaveragepool", "maxpool", "spacetodepth", "relu"}

"""Tests of the learning rate over the course of a training."""

from __future__ import annotations

import pytest

from cnn.training import learning_rate_factor


def test_learning_rate_factor_rises_then_falls() -> None:
    assert learning_rate_factor(0) == 0
    assert learning_rate_factor(0.05) == pytest.approx(1, abs=0.002)
    assert learning_rate_factor(0.5) > learning_rate_factor(0.9) > learning_rate_factor(1.0) > 0

"""Random networks with random legal foldings, far from a search's choices: every bit of every layer is right."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from scheduler.streaming.lower import lower
from systolic.styles.streaming.simulate import simulate
from tests.support.drawn_pipelines import FORMATS, STEPS, drawn_network
from tests.support.foldings import drawn_folding
from tests.support.pipelines import BOARD, make

pytestmark = pytest.mark.engine


@settings(
    max_examples=6,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)
@given(
    st.lists(st.sampled_from(STEPS), min_size=2, max_size=4),
    st.sampled_from(FORMATS),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
)
def test_random_networks_under_random_foldings_are_right(
    steps: list[str], formats: tuple[str, str], network_seed: int, fold_seed: int
) -> None:
    network = drawn_network(steps, formats, network_seed)
    folding = drawn_folding(lower(network), BOARD, fold_seed)
    with tempfile.TemporaryDirectory() as work:
        made = make(network, folding, Path(work) / "design")
        result = simulate(made.pipeline, made.picture)
    assert [(layer.name, layer.mismatches) for layer in result.layers if layer.mismatches] == []

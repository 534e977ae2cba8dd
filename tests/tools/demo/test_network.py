"""The network that is trained."""

from __future__ import annotations

import pytest

from tools.demo.network import build_network

pytestmark = pytest.mark.engine


def test_sixth_pool_pads_right_and_bottom_with_values_below_any_input() -> None:
    torch = pytest.importorskip("torch", reason="training needs PyTorch: pip install -e '.[train]'")
    pad, pool = list(build_network())[23:25]
    values = -torch.arange(1.0, 10.0).view(1, 1, 3, 3)
    assert pool(pad(values))[0, 0].tolist() == [[-1, -2, -3], [-4, -5, -6], [-7, -8, -9]]

"""The limits of a frame rate: formulas against counts by hand, and engines that stay below them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boards.board import load as load_board
from cnn import zoo
from cnn.network import Network
from systolic.explorations import schedule
from systolic.loading import load_model
from tools.bounds import command, engines
from tools.bounds.engines import EngineRate, engine_rate, rate_of
from tools.bounds.layers import Layer, layers_of
from tools.bounds.limits import Format, Limits, Speed, ddr_bytes_of, limits_of, macs_per_second, products_per_dsp
from tools.networks.writer import Layers

ROOT = Path(__file__).resolve().parents[2]


Read = Callable[[Layers, str], Network]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that reads a network under construction, which ends at a tensor, with the front-end."""

    def network(layers: Layers, end: str) -> Network:
        path = tmp_path / "net.onnx"
        path.write_bytes(layers.model(end).SerializeToString())
        return load_model(path).network

    return network


def test_layers_of_a_chain_read_and_write_each_map_once(read: Read) -> None:
    layers = Layers(3, 8, 6)
    x = layers.max_pool(layers.conv(layers.picture, 4, 3), 2, 2)
    first, second = layers_of(read(layers, layers.conv(x, 5)))
    assert first == Layer(first.name, macs=8 * 6 * 4 * 27, weights=4 * 27, picture=3 * 8 * 6, writes=4 * 4 * 3)
    assert second == Layer(second.name, macs=4 * 3 * 5 * 4, weights=5 * 4, reads=4 * 4 * 3, results=5 * 4 * 3)


def test_layers_of_a_residual_block_read_the_shortcut_once_more(read: Read) -> None:
    layers = Layers(3, 4, 4)
    x = layers.conv(layers.picture, 8)
    y = layers.activated(layers.added(layers.conv(x, 8, 3), x), "relu")
    one, two, three = layers_of(read(layers, layers.conv(y, 2)))
    assert (one.reads, one.writes) == (0, 8 * 16)
    assert (two.reads, two.writes) == (8 * 16, 8 * 16)  # the convolution and the addition read one map
    assert (three.reads, three.results) == (8 * 16, 2 * 16)


def test_layers_of_a_concat_are_read_part_by_part(read: Read) -> None:
    layers = Layers(3, 4, 4)
    parts = [layers.conv(layers.picture, 2), layers.conv(layers.picture, 6)]
    one, two, last = layers_of(read(layers, layers.conv(layers.joined(*parts), 3)))
    assert (one.picture, two.picture) == (48, 48)
    assert (one.writes, two.writes, last.reads) == (2 * 16, 6 * 16, 8 * 16)


def test_layers_read_an_enlarged_map_before_it_is_enlarged(read: Read) -> None:
    layers = Layers(3, 4, 4)
    _, last = layers_of(read(layers, layers.conv(layers.enlarged(layers.conv(layers.picture, 2)), 3, 3)))
    assert last.reads == 2 * 16


def test_layers_with_windows_apart_read_only_the_values_in_windows(read: Read) -> None:
    layers = Layers(3, 8, 8)
    x = layers.conv(layers.picture, 4)
    _, last = layers_of(read(layers, layers.conv(x, 5, 1, 2)))
    assert last.reads == 4 * 4 * 4


def test_layers_of_a_network_with_a_head_end_before_the_host() -> None:
    layers = layers_of(zoo.load("tiny-yolov2-voc", seed=1))
    assert [layer.results for layer in layers] == [0] * 8 + [125 * 13 * 13]
    assert layers[-1].writes == 0


LAYERS = (
    Layer("one", macs=8_000, weights=100, picture=300, writes=400),
    Layer("two", macs=2_000, weights=900, reads=400, results=100),
)


def test_ddr_bytes_follow_bits_batch_and_place_of_maps() -> None:
    assert ddr_bytes_of(LAYERS[0], Format(8), maps_in_ddr=False) == 100 + 300
    assert ddr_bytes_of(LAYERS[0], Format(8), maps_in_ddr=True) == 100 + 300 + 400
    assert ddr_bytes_of(LAYERS[0], Format(16), maps_in_ddr=True) == 200 + 300 + 800
    assert ddr_bytes_of(LAYERS[1], Format(4, batch=9), maps_in_ddr=True) == 50 + 50 + 200


def test_limits_of_two_layers_are_those_of_a_hand_calculation() -> None:
    assert limits_of(LAYERS, Speed(macs=10_000, ddr_bytes=1_000), Format(8)) == Limits(
        macs=1 / (0.8 + 0.2),
        frame=1 / (0.4 + 1.0),
        layers=1 / (0.8 + 1.0),
        layers_in_ddr=1 / (0.8 + 1.4),
    )
    assert limits_of(LAYERS, Speed(macs=10_000, ddr_bytes=1e9), Format(8)) == pytest.approx(Limits(1, 1, 1, 1), abs=0)


def test_products_per_dsp_are_the_most_that_a_packing_has() -> None:
    assert [products_per_dsp("DSP48E2", bits) for bits in (4, 8, 16)] == [6, 2, 1]
    assert [products_per_dsp("DSP48E1", bits) for bits in (4, 8, 16)] == [4, 2, 1]
    assert macs_per_second(load_board("zcu104"), 8, 600) == 1728 * 2 * 600e6


def limits_on_zcu104(network: Network, dsp_mhz: float) -> Limits:
    board = load_board("zcu104")
    speed = Speed(macs_per_second(board, 8, dsp_mhz), board.ddr.preset_gbps * board.ddr.share() * 1e9)
    return limits_of(layers_of(network), speed, Format(8))


def test_traced_rates_of_the_pages_stay_below_every_limit_with_maps_on_chip() -> None:
    recorded = json.loads((ROOT / "tools/figures/figures.json").read_text("utf-8"))["figures"]["networks"]
    named = {name.replace("-", "_"): name for name in zoo.names()}
    rates = {named[key[:-4]]: rate for key, rate in recorded.items() if key.endswith("_fps") and key[:-4] in named}
    assert len(rates) >= 9
    for name, fps in rates.items():
        limits = limits_on_zcu104(zoo.load(name, seed=1), 300)
        assert fps < limits.layers <= limits.frame <= limits.macs, name


@pytest.mark.parametrize(("name", "array"), [("resnet8", "17x16x16"), ("tiny-yolov2-voc", "13x32x16")])
def test_modelled_rates_with_doubled_dsps_stay_below_every_limit_with_maps_on_chip(name: str, array: str) -> None:
    model = load_model(name, seed=1)
    found = schedule(model, "zcu104", engine="rtl", array=array, pins={"dsp_clock": 2})
    assert found.frames_per_second < limits_on_zcu104(model.network, 600).layers


FOUND: dict[str, Any] = {
    "batch": 2,
    "clock_mhz": 300.0,
    "array": {"rows": 13, "columns": 16, "lanes": 8},
    "ddr_profiles": [
        {"profile": "measured", "frames_per_second": 75.0},
        {"profile": "optimistic", "frames_per_second": 85.0},
    ],
    "layers": [{"parts": {"compute": 2_000_000, "fill": 9}}, {"parts": {"compute": 4_000_000, "fill": 9}}],
}


def test_rate_of_an_engine_by_its_steps_alone_ignores_all_other_cycles() -> None:
    rates = {"measured": 75.0, "optimistic": 85.0}
    assert rate_of(FOUND) == EngineRate(array="13×16×8", fps=rates, array_fps=300e6 / 3_000_000)


def test_engine_rate_of_a_refused_network_is_the_sentence_of_the_error() -> None:
    reason = engine_rate("resnet8", "no-board", 8, 1, 1)
    assert isinstance(reason, str)
    assert "no-board" in reason


def test_engine_rate_gives_up_after_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "SECONDS", 0.01)
    assert engine_rate("resnet8", "zcu104", 8, 1, 1) == "the search takes more than 0.01 s"


def test_command_writes_limits_with_their_origin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "limits.json"
    assert command.main(["resnet8", "-o", str(path)]) == 0
    assert "ResNet8" in capsys.readouterr().out
    answer = json.loads(path.read_text("utf-8"))
    (network,) = answer["networks"]
    assert network["macs"] == 12_501_632
    doubled, single = network["limits"]
    assert doubled["source"] == single["source"] == "derived"
    assert doubled["macs_fps"] == pytest.approx(1728 * 2 * 600e6 / 12_501_632)
    assert single["macs_fps"] == pytest.approx(doubled["macs_fps"] / 2)
    assert [profile["profile"] for profile in doubled["profiles"]] == ["measured", "optimistic"]


def test_command_with_an_unknown_board_returns_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["resnet8", "--board", "no-board"]) == 1
    assert "no-board" in capsys.readouterr().err

"""The choice of bits per layer (``--mixed``): the least loss among the folding results that reach the rate.

The board's budget is so small that the area decides which layers keep more bits.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import systolic
from boards import board as board_room
from boards.errors import ChoiceError, ConflictError, DoesNotFitError, MissingValueError, RangeError, UnsupportedError
from cnn.maps import Shape
from cnn.network import Network
from cnn.ops import QConvolution
from cnn.quantisation.calibration import observe
from cnn.quantisation.mixed import LayerBits, quantise_mixed, uniform_bits
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.budget import Budget
from systolic.evaluation.mixed import CHOICES, Pipeline, Trial, quantise_for
from systolic.loading import load_model
from systolic.model import Calibration, sample_pictures
from systolic.styles.streaming.exploration import explore
from systolic.styles.streaming.options import StreamingOptions
from tests.support import networks
from tests.support.cases import cases
from tests.support.command_line import call, refused
from tests.support.errors import raises

pytest.importorskip("ortools", reason="exact folding needs OR-tools: pip install -e '.[solver]'")

FEW, WIDE, MOST = CHOICES
TIGHT = StreamingOptions(budget=Budget(lut=0.1, dsp=0.1), deadline=None)
"""A small budget without a deadline, so that a busy machine does not change the result of the search."""
PIPELINE = Pipeline(board_room.load("pynq-z2"), None, TIGHT)
TIGHT_FLAGS = ("--board", "pynq-z2", "--lut-share", 0.1, "--dsp-share", 0.1, "--deadline", 3600)

CFG = """[net]
width=8
height=8
channels=3
""" + "".join(f"[convolutional]\nfilters={filters}\nsize=3\nstride=1\npad=1\nactivation=leaky\n" for filters in (8, 6))


@pytest.fixture(scope="module")
def three_layers() -> Network:
    random, shape = np.random.default_rng(3), Shape(3, 8, 8)
    return networks.network(
        shape,
        ("first", networks.convolution(random, 3, 8), [0], Shape(8, 8, 8)),
        ("second", networks.convolution(random, 8, 12), [1], Shape(12, 8, 8)),
        ("third", networks.convolution(random, 12, 8), [2], Shape(8, 8, 8)),
    )


@pytest.fixture(scope="module")
def trial(three_layers: Network) -> Trial:
    pictures = networks.pictures(three_layers.input_shape, 2)
    return Trial(observe(three_layers, pictures), "max", [(255 * picture).astype(np.uint8) for picture in pictures])


def bits_of(integers: QuantizedNetwork) -> list[LayerBits]:
    """Return the bits of the weights and the input map of each convolution, the one that reads the picture included."""
    layers = [(node.op, node.inputs[0]) for node in integers.nodes if isinstance(node.op, QConvolution)]
    return [LayerBits(op.weight_type.bits, integers.nodes[source].type.datatype.bits) for op, source in layers]


def cycles_of(network: Network, trial: Trial, *bits: LayerBits) -> int:
    """Return the cycles per frame of the folding that the search finds if the layers after the first have ``bits``."""
    integers = quantise_mixed(network, trial.statistics, trial.method, (MOST, *bits))
    return explore(integers, PIPELINE.board, None, TIGHT).cycles_per_frame


@pytest.mark.engine
def test_quantise_for_keeps_the_most_bits_that_reach_the_rate(three_layers: Network, trial: Trial) -> None:
    told: list[str] = []
    integers = quantise_for(three_layers, trial, 0.6, PIPELINE, told.append)
    assert bits_of(integers) == [MOST, MOST, FEW]
    most = cycles_of(three_layers, trial, FEW, FEW, FEW) / 0.6
    assert cycles_of(three_layers, trial, MOST, MOST, FEW) <= most
    assert cycles_of(three_layers, trial, MOST, MOST, WIDE) > most
    assert told[0] == "folding 4 bits on PYNQ-Z2"
    assert "trying fewer bits in third, 66%" in told
    assert told[-1] == "making the integers of the chosen bits"


@pytest.mark.engine
def test_quantise_for_a_greater_share_chooses_fewer_bits(three_layers: Network, trial: Trial) -> None:
    integers = quantise_for(three_layers, trial, 0.7, PIPELINE)
    assert bits_of(integers) == [MOST, WIDE, FEW]


def test_quantise_for_a_large_board_chooses_most_bits_at_once(three_layers: Network, trial: Trial) -> None:
    told: list[str] = []
    integers = quantise_for(three_layers, trial, 1.0, Pipeline(board_room.load("zcu104")), told.append)
    assert bits_of(integers) == [MOST] * 3
    assert told == ["folding 4 bits on ZCU104", "making the integers of the chosen bits"]


@cases("share", [0, -0.5, 1.01, 2])
def test_quantise_for_refuses_a_share_outside_0_to_1(three_layers: Network, trial: Trial, share: float) -> None:
    with raises(RangeError, got=share, low=0, high=1, exclusive=True):
        quantise_for(three_layers, trial, share, PIPELINE)


@pytest.mark.engine
def test_quantise_for_a_board_too_small_for_four_bits_is_refused(three_layers: Network, trial: Trial) -> None:
    tiny = replace(PIPELINE, options=replace(TIGHT, budget=Budget(lut=0.01)))
    with raises(DoesNotFitError, resource="LUT", nearest="ZCU102 (--board zcu102)"):
        quantise_for(three_layers, trial, 0.8, tiny)


def test_layer_areas_grow_with_the_bits(three_layers: Network, trial: Trial) -> None:
    """Layers of more bits need more area, and a rate that no folding reaches has an infinite area."""
    integers = [
        quantise_mixed(three_layers, trial.statistics, "max", uniform_bits(three_layers, bits)) for bits in CHOICES
    ]
    few, wide, most = (PIPELINE.layer_areas(network, 2000) for network in integers)
    assert set(few) == {1, 2, 3}
    assert all(few[layer] < wide[layer] < most[layer] for layer in (2, 3))
    assert few[1] <= wide[1] < most[1]  # the first layer reads the 8-bit picture, so that only its output differs
    assert set(PIPELINE.layer_areas(integers[0], 1).values()) == {np.inf}


# --- from the command line, and from Python ---------------------------------------------------------------------------


@pytest.fixture
def cfg(tmp_path: Path) -> Path:
    path = tmp_path / "two.cfg"
    path.write_text(CFG)
    return path


@pytest.mark.engine
def test_fold_and_generate_choose_the_same_bits(cfg: Path, tmp_path: Path) -> None:
    mixed = ("--seed", 1, "--mixed", 0.6, *TIGHT_FLAGS)
    done = call("fold", cfg, *mixed)
    assert (done.code, done.error) == (0, "")
    line = "bits of weights, inputs: 8, 8 in conv1; 4, 8 in conv2"
    assert line in done.out.splitlines()
    made = call("generate", cfg, *mixed, "--style", "streaming", "--estimated-fifos", "-o", tmp_path / "out")
    assert made.code == 0
    assert line in made.out
    model = load_model(cfg, seed=1)
    folding = systolic.fold(
        model, "pynq-z2", calibration=Calibration(sample_pictures(), mixed=0.6), budget=TIGHT.budget, deadline=None
    )
    assert line in folding.text()
    assert "bits of weights, inputs" not in call("fold", cfg, "--seed", 1, "--bits", 4, *TIGHT_FLAGS).out


def test_mixed_bits_of_the_systolic_style_are_refused(cfg: Path, tmp_path: Path) -> None:
    done = call("generate", cfg, "--seed", 1, "--mixed", 0.6, "-o", tmp_path / "out")
    refused(done, UnsupportedError, remedy="take --style streaming, or --bits")
    with raises(UnsupportedError, remedy="take --style streaming, or --bits"):
        systolic.design(load_model(cfg, seed=1), calibrate=Calibration(sample_pictures(), mixed=0.6))


def test_options_that_need_mixed_without_it_are_refused(cfg: Path, tmp_path: Path) -> None:
    picture = sample_pictures()[0]
    done = call("fold", cfg, "--calibrate", picture, "--fit", "plain")
    refused(done, MissingValueError, what="--mixed SHARE")
    assert "--calibrate and --fit" in done.error
    done = call("fold", cfg, "--seed", 1, "--mixed", 0.6, "--bits", 4)
    refused(done, ConflictError, subjects=("--mixed", "--bits"))
    refused(call("fold", cfg, "--mixed", 0.6), MissingValueError, what="the weights file of two.cfg")
    data = ("--data", picture.parent, "--seed", 1)
    refused(call("evaluate", cfg, *data, "--board", "pynq-z2"), MissingValueError, what="--mixed SHARE")
    refused(call("evaluate", cfg, *data, "--mixed", 0.6, "--board", "none"), ChoiceError, got="none")


def test_evaluate_with_mixed_chooses_bits_for_the_board(cfg: Path) -> None:
    mixed = ("--data", sample_pictures()[0].parent, "--pictures", 1, "--seed", 1, "--mixed", 1, "--workers", 1)
    for board, second in (("zcu104", 8), ("pynq-z2", 4)):
        values = call("evaluate", cfg, *mixed, "--board", board, "--json", "-").json
        assert values["bits_by_layer"] == {"conv1": 8, "conv2": second}

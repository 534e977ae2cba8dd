"""The trainer of the demo's network: its command line, and the files that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cnn.darknet.files import read_darknet
from tools.demo import train


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        train.parse(["--help"])
    assert "python -m tools.demo.train --out /tmp/shapes --minutes 25" in " ".join(capsys.readouterr().out.split())


def test_settings_are_read() -> None:
    settings = train.parse(["--out", "x", "--minutes", "1.5", "--seed", "9"])
    assert (settings.out, settings.minutes, settings.seed) == (Path("x"), 1.5, 9)


@pytest.mark.engine
def test_train_short_run_writes_readable_darknet_files(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="training needs PyTorch: pip install -e '.[train]'")
    loss = train.train(train.Settings(tmp_path, minutes=0.001, scenes=32, fresh=8, batch=16))
    assert loss > 0
    network = read_darknet(tmp_path / "shapes.cfg", tmp_path / "shapes.weights", tmp_path / "shapes.names")
    assert len(network.labels) == 6

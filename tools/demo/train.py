"""Train the network of cnn/models/shapes: tiny-YOLOv2 with fewer filters, on scenes drawn from a seed.

This module, ``network`` and ``batches`` need PyTorch (the extra ``train``). The other modules of tools/demo do not.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cnn.training import check_pytorch, learning_rate_factor
from cnn.training.grid import tensor
from cnn.training.loss import region_loss
from tools.demo.batches import Pool, draw_many, to_batch
from tools.demo.darknet_files import write_model
from tools.demo.network import GRID, build_network
from tools.demo.scenes import Scene
from tools.parser import Parser

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]

EXAMPLE = "example: python -m tools.demo.train --out /tmp/shapes --minutes 25"


@dataclass(frozen=True)
class Settings:
    """Settings of the training.

    Attributes:
        out: Output folder.
        minutes: Training time.
        scenes: Number of scenes kept in memory.
        fresh: Number of scenes replaced per epoch.
        seed: Seed of the scenes and the initial weights.
        threads: Threads of PyTorch.
        batch: Pictures per step.
        rate: Highest learning rate.
    """

    out: Path
    minutes: float = 25.0
    scenes: int = 10000
    fresh: int = 2000
    seed: int = 1
    threads: int = 1
    batch: int = 32
    rate: float = 4e-3


def train(settings: Settings) -> float:
    """Train for ``settings.minutes``, write the model after every epoch, and return its final loss on other scenes."""
    import torch

    settings.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(settings.seed)
    torch.set_num_threads(settings.threads)
    checks = draw_many(5_000_000, 200)
    network = build_network().to(memory_format=torch.channels_last)  # type: ignore[call-overload, unused-ignore]
    parameters = sum(p.numel() for p in network.parameters())
    print(f"{parameters} parameters; drawing {settings.scenes} scenes", flush=True)
    with ProcessPoolExecutor(1) as executor:
        pool = Pool(settings.scenes, settings.fresh, settings.seed * 10_000_000, executor)
        return _epochs(settings, network, pool, checks)


def _epochs(settings: Settings, network: torch.nn.Sequential, pool: Pool, checks: list[Scene]) -> float:
    random = np.random.default_rng(settings.seed)
    optimiser = _optimiser(network, settings.rate)
    start, pictures, epoch, share, checked = time.monotonic(), 0, 0, 0.0, 0.0
    while share < 1:
        loss = 0.0
        for scenes in pool.batches(random, settings.batch):
            share = (time.monotonic() - start) / (60 * settings.minutes)
            _set_rate(optimiser, settings.rate * learning_rate_factor(share))
            loss += (_step(network, optimiser, scenes, random) - loss) * 0.02
            pictures += len(scenes)
            if share >= 1:
                break
        epoch += 1
        checked = loss_on(network, checks)
        write_model(settings.out, network, pictures)
        minutes = (time.monotonic() - start) / 60
        print(
            f"epoch {epoch:3}  {minutes:5.1f} min  loss {loss:7.3f}, on {len(checks)} other scenes {checked:7.3f}",
            flush=True,
        )
        pool.renew()
    return checked


def loss_on(network: torch.nn.Sequential, scenes: list[Scene]) -> float:
    """Return the loss of the network in evaluation mode over letterboxed scenes."""
    import torch

    network.eval()
    with torch.no_grad():
        pictures = np.stack([scene.picture for scene in scenes]).transpose(0, 3, 1, 2)
        parts = [network(tensor(pictures[first : first + 50]) / 255) for first in range(0, len(scenes), 50)]
        loss = float(region_loss(torch.cat(parts), [scene.truths for scene in scenes], GRID))
    network.train()
    return loss


def _optimiser(network: torch.nn.Sequential, rate: float) -> torch.optim.Optimizer:
    """Return the optimiser. Only weights decay; batch-norm scales and biases do not."""
    import torch

    weights = [p for p in network.parameters() if p.ndim > 1]
    vectors = [p for p in network.parameters() if p.ndim == 1]
    return torch.optim.AdamW(
        [{"params": weights, "weight_decay": 0.02}, {"params": vectors, "weight_decay": 0.0}], lr=rate
    )


def _set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate


def _step(
    network: torch.nn.Sequential,
    optimiser: torch.optim.Optimizer,
    scenes: list[Scene],
    random: np.random.Generator,
) -> float:
    import torch

    pictures, truths = to_batch(scenes, random)
    optimiser.zero_grad()
    loss = region_loss(network(pictures.contiguous(memory_format=torch.channels_last)), truths, GRID)
    loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
    torch.nn.utils.clip_grad_norm_(network.parameters(), 20.0)
    optimiser.step()
    return float(loss.detach())


def parse(arguments: list[str]) -> Settings:
    """Return the settings of a command line. Exit with help if the command line is wrong."""
    defaults = Settings(Path("shapes"))
    parser = Parser("python -m tools.demo.train", description=__doc__, epilog=EXAMPLE)
    parser.add_argument(
        "--out", type=Path, default=defaults.out, help="folder for cfg, weights and names (%(default)s)"
    )
    parser.add_argument("--minutes", type=float, default=defaults.minutes, help="training time (%(default)s)")
    parser.add_argument("--scenes", type=int, default=defaults.scenes, help="scenes kept in memory (%(default)s)")
    parser.add_argument("--fresh", type=int, default=defaults.fresh, help="scenes replaced per epoch (%(default)s)")
    parser.add_argument("--seed", type=int, default=defaults.seed, help="seed of scenes and weights (%(default)s)")
    parser.add_argument("--threads", type=int, default=defaults.threads, help="threads of PyTorch (%(default)s)")
    parser.add_argument("--batch", type=int, default=defaults.batch, help="pictures per step (%(default)s)")
    parser.add_argument("--rate", type=float, default=defaults.rate, help="highest learning rate (%(default)s)")
    return Settings(**vars(parser.parse_args(arguments)))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. MissingToolError if PyTorch is not installed."""
    settings = parse(sys.argv[1:] if arguments is None else arguments)
    check_pytorch()
    print(f"loss {train(settings):.4f} on other scenes; written to {settings.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Batches of training scenes as tensors. Another process draws new scenes during training."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tools.demo.network import SIZE
from tools.demo.scenes import Scene, letterboxed

if TYPE_CHECKING:
    from torch import Tensor  # type: ignore[import-not-found, unused-ignore]


def draw_many(first_seed: int, count: int) -> list[Scene]:
    """Return letterboxed scenes of SIZE × SIZE pixels, one for each of ``count`` seeds from ``first_seed`` on."""
    return [letterboxed(seed, SIZE) for seed in range(first_seed, first_seed + count)]


class Pool:
    """The scenes of the training, which are replaced part by part.

    Args:
        count: Number of scenes kept in memory.
        fresh: Number of scenes that each ``renew`` replaces, the oldest first.
        first_seed: Seed of the first scene. Each later scene has the next seed.
        executor: Draws new scenes in another process.
    """

    def __init__(self, count: int, fresh: int, first_seed: int, executor: Executor) -> None:
        self._fresh, self._executor, self._next_seed = fresh, executor, first_seed
        self._oldest = 0
        self.scenes = self._draw(count).result()
        self._drawing = self._draw(self._fresh)

    def _draw(self, count: int) -> Future[list[Scene]]:
        first_seed = self._next_seed
        self._next_seed += count
        return self._executor.submit(draw_many, first_seed, count)

    def renew(self) -> None:
        """Replace the oldest scenes by the scenes drawn meanwhile, and start drawing the next ones."""
        for scene in self._drawing.result():
            self.scenes[self._oldest] = scene
            self._oldest = (self._oldest + 1) % len(self.scenes)
        self._drawing = self._draw(self._fresh)

    def batches(self, random: np.random.Generator, size: int) -> Iterator[list[Scene]]:
        """Yield all scenes in random order, ``size`` at a time. An incomplete last batch is left out."""
        order = random.permutation(len(self.scenes))
        for start in range(0, len(order) - size + 1, size):
            yield [self.scenes[i] for i in order[start : start + size]]


def to_batch(scenes: list[Scene], random: np.random.Generator) -> tuple[Tensor, list[npt.NDArray[np.float32]]]:
    """Return pictures, float32 ``(n, 3, SIZE, SIZE)`` of 0 … 1, and each picture's truths, float32 ``(objects, 5)``.

    Brightness and contrast are varied at random, and half of the scenes are mirrored.
    """
    import torch

    flips = random.random(len(scenes)) < 0.5
    pictures = np.stack([s.picture[:, ::-1] if f else s.picture for s, f in zip(scenes, flips, strict=True)])
    gain = random.uniform(0.75, 1.25, (len(scenes), 1, 1, 3)) ** [0.3, 0.3, 0.3] * random.uniform(
        0.75, 1.25, (len(scenes), 1, 1, 1)
    )
    lift = random.uniform(-0.08, 0.08, (len(scenes), 1, 1, 1))
    values = np.clip(pictures.astype(np.float32) / 255 * gain.astype(np.float32) + lift.astype(np.float32), 0, 1)
    truths = [mirrored(s.truths) if f else s.truths for s, f in zip(scenes, flips, strict=True)]
    return torch.from_numpy(np.ascontiguousarray(values.transpose(0, 3, 1, 2))), truths


def mirrored(truths: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the truths ``(objects, 5)`` (class, x0, y0, x1, y1 in pixels) of the picture mirrored left to right."""
    return np.stack([truths[:, 0], SIZE - truths[:, 3], truths[:, 2], SIZE - truths[:, 1], truths[:, 4]], 1)

"""Train the network of cnn/models/shapes: tiny-YOLOv2 at reduced width, on scenes drawn from a seed.

Needs PyTorch (the extra ``train``); everything else in cnn/training does without.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from boards.errors import NetworkError
from cnn.training.objects import LABELS
from cnn.training.precision import Precision, iou, mean_average_precision, wholly_right
from cnn.training.scenes import Scene, letterboxed

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]
    from torch import Tensor

SIZE = 160  # the network's input, pixels
CELLS = SIZE // 32
WIDTHS = (8, 16, 32, 48, 64, 96, 128, 128)
ANCHORS = (
    (0.8, 0.85),
    (1.05, 1.25),
    (1.5, 0.9),
    (1.4, 1.6),
    (1.95, 1.95),
)  # width, height in cells of 32 pixels
CLASSES = len(LABELS)
TORCH_EPSILON = 1e-5
DARKNET_EPSILON = 1e-6
EXAMPLE = "example: python -m cnn.training.train --out /tmp/shapes --minutes 25"


@dataclass(frozen=True)
class Settings:
    """``scenes``: how many are kept in memory; ``fresh``: how many of these are drawn anew an epoch."""

    out: Path
    minutes: float = 25.0
    scenes: int = 10000
    fresh: int = 2000
    seed: int = 1
    threads: int = 1
    batch: int = 32
    rate: float = 4e-3


# ---------------------------------------------------------------- scenes as tensors


def draw_many(first: int, count: int) -> list[Scene]:
    return [letterboxed(seed, SIZE) for seed in range(first, first + count)]


class Pool:
    """The training scenes, drawn beside the training by one more process and renewed every epoch."""

    def __init__(self, settings: Settings, executor: Executor) -> None:
        self._fresh, self._executor, self._next = settings.fresh, executor, settings.seed * 10_000_000
        self._oldest = 0
        self.scenes = self._draw(settings.scenes).result()
        self._coming = self._draw(self._fresh)

    def _draw(self, count: int) -> Any:
        self._next += count
        return self._executor.submit(draw_many, self._next - count, count)

    def renew(self) -> None:
        for scene in self._coming.result():
            self.scenes[self._oldest] = scene
            self._oldest = (self._oldest + 1) % len(self.scenes)
        self._coming = self._draw(self._fresh)

    def batches(self, random: np.random.Generator, size: int) -> Iterator[list[Scene]]:
        order = random.permutation(len(self.scenes))
        for start in range(0, len(order) - size + 1, size):
            yield [self.scenes[i] for i in order[start : start + size]]


def to_batch(scenes: list[Scene], random: np.random.Generator) -> tuple[Tensor, list[npt.NDArray[np.float32]]]:
    """Pictures [n, 3, size, size] of 0…1 with changed light, contrast and side; and their truths."""
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
    return np.stack([truths[:, 0], SIZE - truths[:, 3], truths[:, 2], SIZE - truths[:, 1], truths[:, 4]], 1)


# ---------------------------------------------------------------- network


def build_network() -> torch.nn.Sequential:
    """6 × (convolution, batch norm, leaky, pool), 2 × without pool, linear 1×1 head."""
    from torch import nn

    layers: list[nn.Module] = []
    channels = 3
    for i, width in enumerate(WIDTHS):
        layers += [
            nn.Conv2d(channels, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width, eps=TORCH_EPSILON),
            nn.LeakyReLU(0.1),
        ]
        if i < 5:
            layers.append(nn.MaxPool2d(2, 2))
        if i == 5:  # darknet's size 2 stride 1: pads right and bottom, and padding never wins
            layers += [nn.ConstantPad2d((0, 1, 0, 1), float("-inf")), nn.MaxPool2d(2, 1)]
        channels = width
    layers.append(nn.Conv2d(channels, len(ANCHORS) * (5 + CLASSES), 1))
    return nn.Sequential(*layers)


def region_loss(output: Tensor, truths: list[npt.NDArray[np.float32]]) -> Tensor:
    """YOLOv2's loss: position and size where an object is, objectness everywhere, class by softmax.

    output [n, anchors · (5 + classes), cells, cells]; Redmon and Farhadi, "YOLO9000", 2016, section 2.
    """
    import torch
    from torch.nn import functional  # type: ignore[import-not-found, unused-ignore]

    grid = output.view(len(truths), len(ANCHORS), 5 + CLASSES, CELLS, CELLS).permute(0, 1, 3, 4, 2)
    where, goal, labels, weight = targets(truths)
    mine, boxes = grid[where], decode_boxes(grid)
    position = functional.binary_cross_entropy_with_logits(mine[:, :2], goal[:, :2], reduction="none").sum(1)
    extent = ((mine[:, 2:4] - goal[:, 2:]) ** 2).sum(1)
    apart = 1 - generalised_iou(boxes[where], _tensor(np.concatenate([t[:, 1:] for t in truths])))
    objects = functional.binary_cross_entropy_with_logits(mine[:, 4], torch.ones(len(mine)), reduction="none")
    empty = functional.binary_cross_entropy_with_logits(grid[..., 4], torch.zeros(grid.shape[:-1]), reduction="none")
    kinds = functional.cross_entropy(mine[:, 5:], labels, reduction="none")
    near, near_labels = near_truths(boxes.detach(), truths, where)
    alike = functional.cross_entropy(grid[near][:, 5:], near_labels, reduction="sum")
    empty = empty * ~near
    empty[where] = 0.0
    counted = (weight * (position + 2.0 * extent + 4.0 * apart) + 2.0 * objects + kinds).sum()
    return (counted + alike + empty.sum()) / len(truths)


def generalised_iou(one: Tensor, other: Tensor) -> Tensor:
    """IoU less the share of the hull that neither box covers, −1…1; Rezatofighi et al., CVPR 2019.

    The squared errors of position and size alone leave boxes that pass at IoU 0.5 but look loose.
    """
    import torch

    common, union = common_and_union(one, other)
    hull = (torch.maximum(one[..., 2:], other[..., 2:]) - torch.minimum(one[..., :2], other[..., :2])).prod(-1)
    return common / union - (hull - union) / hull


def common_and_union(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Areas of the intersection and of the union of boxes [..., 4] as x0, y0, x1, y1."""
    import torch

    sides = torch.minimum(one[..., 2:], other[..., 2:]) - torch.maximum(one[..., :2], other[..., :2])
    common = sides.clamp(min=0).prod(-1)
    areas = (one[..., 2:] - one[..., :2]).prod(-1) + (other[..., 2:] - other[..., :2]).prod(-1)
    return common, areas - common


def targets(truths: list[npt.NDArray[np.float32]]) -> tuple[Any, Tensor, Tensor, Tensor]:
    """For each truth its place (picture, anchor, row, column), goal (x, y, log w, log h), class and weight.

    The anchor is the one of most like shape; small boxes weigh more, as 2 − area.
    """
    import torch

    rows = np.concatenate([np.c_[np.full(len(t), i), t] for i, t in enumerate(truths)])
    boxes = rows[:, 2:] / 32
    centre, size = (boxes[:, :2] + boxes[:, 2:]) / 2, np.maximum(boxes[:, 2:] - boxes[:, :2], 0.05)
    cell = np.clip(np.floor(centre), 0, CELLS - 1)
    anchors = np.array(ANCHORS)
    anchor = np.argmax([iou(np.r_[0, 0, s], np.c_[np.zeros_like(anchors), anchors]) for s in size], axis=1)
    goal = np.c_[centre - cell, np.log(size / anchors[anchor])]
    where = tuple(torch.from_numpy(a.astype(np.int64)) for a in (rows[:, 0], anchor, cell[:, 1], cell[:, 0]))
    weight = 2 - np.prod(size, axis=1) / CELLS**2
    return where, _tensor(goal), torch.from_numpy(rows[:, 1].astype(np.int64)), _tensor(weight)


def _tensor(values: npt.NDArray[Any]) -> Tensor:
    import torch

    return torch.from_numpy(values.astype(np.float32))


def near_truths(boxes: Tensor, truths: list[npt.NDArray[np.float32]], where: Any) -> tuple[Tensor, Tensor]:
    """Which predicted boxes overlap a truth by 0.6 without being its own, and that truth's class for each.

    Darknet only excuses these from saying "empty". Their class is then never learnt, so that a second box of
    another class appears on an object, which suppression within a class cannot remove: so teach it.
    """
    import torch

    padded = np.zeros((len(truths), 1, 1, 1, max(len(t) for t in truths), 5), np.float32)
    for i, t in enumerate(truths):
        padded[i, 0, 0, 0, : len(t)] = t
    all_truths = _tensor(padded)
    common, union = common_and_union(boxes[..., None, :], all_truths[..., 1:])
    overlap, index = (common / union).max(-1)
    near = overlap >= 0.6
    near[where] = False
    labels = all_truths[..., 0].expand(*index.shape, -1).gather(-1, index[..., None])[..., 0]
    return near, labels[near].to(torch.int64)


def decode_boxes(grid: Tensor) -> Tensor:
    """Boxes in pixels [n, anchors, rows, columns, 4] as x0, y0, x1, y1; source: darknet's region layer."""
    import torch

    column = torch.arange(CELLS).view(1, 1, 1, -1)
    row = torch.arange(CELLS).view(1, 1, -1, 1)
    anchors = torch.tensor(ANCHORS).view(1, -1, 1, 1, 2)
    centre = torch.stack([column + grid[..., 0].sigmoid(), row + grid[..., 1].sigmoid()], -1)
    half = grid[..., 2:4].clamp(max=4).exp() * anchors / 2
    return torch.cat([centre - half, centre + half], -1) * 32


def detect(output: Tensor, least: float = 0.01) -> list[npt.NDArray[np.float32]]:
    """Detections of each picture of a batch: every class above ``least``, non-maximum suppression at 0.45."""
    import torch

    grid = output.view(len(output), len(ANCHORS), 5 + CLASSES, CELLS, CELLS).permute(0, 1, 3, 4, 2)
    boxes = decode_boxes(grid).reshape(len(output), -1, 4).numpy()
    probability = (
        (grid[..., 4:5].sigmoid() * torch.softmax(grid[..., 5:], -1)).reshape(len(output), -1, CLASSES).numpy()
    )
    return [_picture_detections(b, p, least) for b, p in zip(boxes, probability, strict=True)]


def _picture_detections(
    boxes: npt.NDArray[Any], probability: npt.NDArray[Any], least: float
) -> npt.NDArray[np.float32]:
    rows = [
        np.r_[label, probability[i, label], boxes[i]]
        for label in range(CLASSES)
        for i in _kept(boxes, probability[:, label], least)
    ]
    return np.array(rows, np.float32).reshape(-1, 6)


def _kept(boxes: npt.NDArray[Any], probability: npt.NDArray[Any], least: float) -> list[int]:
    kept: list[int] = []
    for i in np.argsort(-probability, kind="stable"):
        if probability[i] > least and (not kept or iou(boxes[i], boxes[kept]).max() <= 0.45):
            kept.append(int(i))
    return kept


def precision_of(network: torch.nn.Sequential, scenes: list[Scene]) -> tuple[Precision, float]:
    """mAP of the float network on letterboxed scenes, and the share of them that is wholly right."""
    import torch

    network.eval()
    found: list[npt.NDArray[np.float32]] = []
    with torch.no_grad():
        for start in range(0, len(scenes), 50):
            pictures = np.stack([s.picture for s in scenes[start : start + 50]]).astype(np.float32) / 255
            found += detect(network(_tensor(pictures.transpose(0, 3, 1, 2))))
    network.train()
    truths = [s.truths for s in scenes]
    return mean_average_precision(found, truths, CLASSES), wholly_right(found, truths)


# ---------------------------------------------------------------- darknet files


def darknet_weights(network: torch.nn.Sequential, seen: int) -> bytes:
    """The weights file: a header of 20 bytes, then for each convolution
    biases, [scales, means, variances], weights.

    The variance is rewritten so that darknet's (x − mean) / (sqrt(variance) + 1e-6) equals PyTorch's
    (x − mean) / sqrt(variance + 1e-5).
    """
    from torch import nn

    parts = [np.array([0, 2, 0], "<i4").tobytes(), np.array([seen], "<u8").tobytes()]
    layers = list(network)
    for i, layer in enumerate(layers):
        if not isinstance(layer, nn.Conv2d):
            continue
        norm = layers[i + 1] if i + 1 < len(layers) else None
        if isinstance(norm, nn.BatchNorm2d):
            arrays = [norm.bias, norm.weight, norm.running_mean, _darknet_variance(norm.running_var)]
        else:
            arrays = [layer.bias]
        parts += [_little_endian(a) for a in [*arrays, layer.weight]]
    return b"".join(parts)


def _darknet_variance(variance: Any) -> npt.NDArray[np.float64]:
    deviation = np.sqrt(variance.numpy().astype(np.float64) + TORCH_EPSILON)
    return np.asarray((deviation - DARKNET_EPSILON) ** 2)


def _little_endian(values: Any) -> bytes:
    array = values if isinstance(values, np.ndarray) else values.detach().numpy()
    return array.astype("<f4").tobytes()


def darknet_cfg() -> str:
    """The network in darknet's cfg syntax."""
    parts = [f"[net]\nbatch=1\nsubdivisions=1\nwidth={SIZE}\nheight={SIZE}\nchannels=3\n"]
    for i, width in enumerate(WIDTHS):
        parts.append(
            f"[convolutional]\nbatch_normalize=1\nfilters={width}\nsize=3\nstride=1\npad=1\nactivation=leaky\n"
        )
        if i < 6:
            parts.append(f"[maxpool]\nsize=2\nstride={2 if i < 5 else 1}\n")
    head = len(ANCHORS) * (5 + CLASSES)
    parts.append(f"[convolutional]\nfilters={head}\nsize=1\nstride=1\npad=1\nactivation=linear\n")
    anchors = ", ".join(f"{w:g},{h:g}" for w, h in ANCHORS)
    parts.append(
        f"[region]\nanchors={anchors}\nbias_match=1\nclasses={CLASSES}\ncoords=4\nnum={len(ANCHORS)}\n"
        f"softmax=1\njitter=.0\nrescore=0\nthresh=.6\nabsolute=1\nrandom=0\n"
    )
    return "\n".join(parts)


def write_model(folder: Path, network: torch.nn.Sequential, seen: int) -> None:
    """shapes.cfg, shapes.weights and shapes.names into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shapes.cfg").write_text(darknet_cfg())
    (folder / "shapes.names").write_text("".join(f"{label}\n" for label in LABELS))
    (folder / "shapes.weights").write_bytes(darknet_weights(network, seen))


# ---------------------------------------------------------------- training


def train(settings: Settings) -> float:
    """Train for ``settings.minutes`` and write the model after every epoch; the last mAP."""
    import torch

    torch.manual_seed(settings.seed)
    torch.set_num_threads(settings.threads)
    random = np.random.default_rng(settings.seed)
    checks = draw_many(5_000_000, 200)
    network = build_network().to(memory_format=torch.channels_last)  # type: ignore[call-overload, unused-ignore]
    print(
        f"{sum(p.numel() for p in network.parameters())} parameters; drawing {settings.scenes} scenes",
        flush=True,
    )
    with ProcessPoolExecutor(1) as executor:
        pool = Pool(settings, executor)
        return _epochs(settings, network, pool, random, checks)


def _epochs(
    settings: Settings,
    network: torch.nn.Sequential,
    pool: Pool,
    random: np.random.Generator,
    checks: list[Scene],
) -> float:
    optimiser = _optimiser(network, settings.rate)
    start, seen, epoch, share, precision = time.monotonic(), 0, 0, 0.0, 0.0
    while share < 1:
        loss = 0.0
        for scenes in pool.batches(random, settings.batch):
            share = (time.monotonic() - start) / (60 * settings.minutes)
            _set_rate(optimiser, settings.rate * schedule(share))
            loss += (_step(network, optimiser, scenes, random) - loss) * 0.02
            seen += len(scenes)
            if share >= 1:
                break
        epoch += 1
        measured, right = precision_of(network, checks)
        precision = measured.mean
        write_model(settings.out, network, seen)
        minutes = (time.monotonic() - start) / 60
        print(
            f"epoch {epoch:3}  {minutes:5.1f} min  loss {loss:7.3f}  mAP@0.5 {precision:.4f}  wholly right {right:.3f}",
            flush=True,
        )
        pool.renew()
    return precision


def schedule(share: float) -> float:
    """The learning rate's factor: up over the first 5 % of the time, then half a cosine down."""
    return share / 0.05 if share < 0.05 else 0.5 * (1 + float(np.cos(np.pi * min(1.0, (share - 0.05) / 0.95)))) + 1e-3


def _optimiser(network: torch.nn.Sequential, rate: float) -> torch.optim.Optimizer:
    """Decay on weights only: biases and batch-norm scales stay free, and no scale runs away."""
    import torch

    weights = [p for p in network.parameters() if p.ndim > 1]
    others = [p for p in network.parameters() if p.ndim == 1]
    return torch.optim.AdamW(
        [{"params": weights, "weight_decay": 0.02}, {"params": others, "weight_decay": 0.0}], lr=rate
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
    loss = region_loss(network(pictures.contiguous(memory_format=torch.channels_last)), truths)
    loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
    torch.nn.utils.clip_grad_norm_(network.parameters(), 20.0)
    optimiser.step()
    return float(loss.detach())


def parse(arguments: list[str]) -> Settings:
    defaults = Settings(Path("shapes"))
    parser = argparse.ArgumentParser("python -m cnn.training.train", description=__doc__, epilog=EXAMPLE)
    parser.add_argument(
        "--out", type=Path, default=defaults.out, help="folder for cfg, weights and names (%(default)s)"
    )
    parser.add_argument("--minutes", type=float, default=defaults.minutes, help="training time (%(default)s)")
    parser.add_argument("--scenes", type=int, default=defaults.scenes, help="scenes kept in memory (%(default)s)")
    parser.add_argument("--fresh", type=int, default=defaults.fresh, help="scenes drawn anew an epoch (%(default)s)")
    parser.add_argument("--seed", type=int, default=defaults.seed, help="of scenes and weights (%(default)s)")
    parser.add_argument("--threads", type=int, default=defaults.threads, help="for PyTorch (%(default)s)")
    parser.add_argument("--batch", type=int, default=defaults.batch, help="pictures a step (%(default)s)")
    parser.add_argument("--rate", type=float, default=defaults.rate, help="highest learning rate (%(default)s)")
    return Settings(**vars(parser.parse_args(arguments)))


def main(arguments: list[str] | None = None) -> int:
    settings = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise NetworkError(
            "Training needs PyTorch, which is not installed; install the extra: pip install -e '.[train]'."
        ) from error
    print(f"mAP@0.5 {train(settings):.4f} on 200 scenes; written to {settings.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The training loop: it writes a checkpoint and the files of the network after each epoch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from boards.errors import MissingToolError, RangeError
from boards.progress import Progress, ProgressStep
from cnn.darknet.files import identifier
from cnn.exported.network import make_exported
from cnn.exported.topology import Sum, Topology
from cnn.exported.topology_writer import topology_text
from cnn.maps import FloatArray
from cnn.network import Network
from cnn.stored.npz import write_arrays
from cnn.training import learning_rate_factor
from cnn.training.conversion import initialise, normalised, topology_of
from cnn.training.network import QuantisedNetwork
from cnn.training.pruning import pruned
from host.whole_file import write_whole
from systolic.model import Model
from systolic.training import checkpoint
from systolic.training.darknet import darknet_files
from systolic.training.data import Batch, TrainingData
from systolic.training.losses import loss_of

CHECKPOINT = "checkpoint.npz"
FROZEN_NORM_SHARE = 0.25
"""The last share of the training, in which batch norms use their fixed means and variances, as the integers do."""
MAX_GRADIENT_NORM = 20.0
"""The norm at which the gradient is clipped."""
CALIBRATION_PICTURES = 32
"""The number of pictures from which the initial quantisation steps are chosen."""


@dataclass(frozen=True)
class Settings:
    """The options of a training, as ``systolic train`` takes them.

    Attributes:
        bits: The bits of weights and activations, 2 to 8.
        method: lsq or dorefa.
        batch: The number of pictures per step.
        rate: The peak learning rate.
        order: The seed of the order of the pictures and of all other random choices.
        threads: The number of PyTorch's threads.
        device: cpu, cuda, or auto for a GPU if there is one.
        name: The name of the trained network; None for the name of the original one.
        prune: The share of filters that is removed before the training.
    """

    bits: int = 4
    method: str = "lsq"
    epochs: int = 10
    batch: int = 32
    rate: float = 1e-3
    order: int = 1
    threads: int = 1
    device: str = "auto"
    name: str | None = None
    prune: float = 0.0


@dataclass(frozen=True)
class Trained:
    """The files that a training wrote, and its loss per epoch.

    Attributes:
        topology: The file NAME.json.
        numbers: The file NAME.npz, with the weights.
        losses: The mean loss of each epoch of this run.
    """

    topology: Path
    numbers: Path
    losses: tuple[float, ...]


def train(
    model: Model, data: TrainingData, settings: Settings, folder: Path, progress: Progress, log: Progress
) -> Trained:
    """Train a network, and write NAME.json and NAME.npz into ``folder`` after each epoch.

    If ``folder`` has the checkpoint of a stopped training, the training resumes from it.

    Args:
        log: The function that receives one line per epoch.

    Raises:
        UnsupportedError: The network cannot be trained.
        RangeError: The loss is not finite, or there are fewer pictures than one batch needs.
        SystolicError: A picture or the checkpoint cannot be used; see ``TrainingData`` and ``restore``.
    """
    torch.manual_seed(settings.order)
    torch.set_num_threads(settings.threads)
    device = _device(settings.device)
    network = pruned(model.network, settings.prune)
    topology = topology_of(network, settings.bits, data.fit)
    trained = QuantisedNetwork(topology, settings.method, normalised(network, topology))
    loss = loss_of(topology)
    data.steps(settings.batch)
    progress("choosing the initial quantisation steps")
    random = np.random.default_rng([settings.order, 0])
    first = random.permutation(len(data.pictures))[:CALIBRATION_PICTURES]
    initialise(trained, network, _pictures(np.stack([data.example(int(i)).pixels for i in first]) / np.float32(255)))
    trained = trained.to(device)
    optimiser = torch.optim.AdamW(trained.parameters(), settings.rate, weight_decay=0.0)
    options = _decisive_options(model, data, settings)
    title = settings.name or network.name
    folder.mkdir(parents=True, exist_ok=True)
    first_epoch = checkpoint.restore(folder / CHECKPOINT, trained, optimiser, options)
    if first_epoch:
        log(f"resuming after epoch {first_epoch} of {settings.epochs}")
    losses = []
    for epoch in range(first_epoch, settings.epochs):
        course = _Epoch(settings, epoch, device, progress)
        losses.append(course.run(trained, optimiser, data, loss))
        write_files(trained, folder, title)
        checkpoint.save(folder / CHECKPOINT, trained, optimiser, checkpoint.TrainingProgress(epoch + 1, options))
        log(f"epoch {epoch + 1} of {settings.epochs}: loss {losses[-1]:.4f}")
    topology_file, numbers = write_files(trained, folder, title)
    _write_darknet(model, network, trained, folder / title)
    return Trained(topology_file, numbers, tuple(losses))


@dataclass(frozen=True)
class _Epoch:
    """One epoch of a training; ``run`` carries it out."""

    settings: Settings
    epoch: int
    device: torch.device
    progress: Progress

    def run(self, trained: QuantisedNetwork, optimiser: torch.optim.Optimizer, data: TrainingData, loss: Any) -> float:
        """Train for one epoch, and return its mean loss per step."""
        trained.train()
        steps, total = data.steps(self.settings.batch), 0.0
        random = np.random.default_rng([self.settings.order, 1 + self.epoch])
        for step, batch in enumerate(data.epoch(random, self.settings.batch)):
            share = (self.epoch + step / steps) / self.settings.epochs
            trained.freeze_batch_norms(share >= 1 - FROZEN_NORM_SHARE)
            for group in optimiser.param_groups:
                group["lr"] = self.settings.rate * learning_rate_factor(share + 0.5 / (steps * self.settings.epochs))
            total += self._step(trained, optimiser, batch, loss)
            mean = total / (step + 1)
            self.progress(
                ProgressStep(f"training, epoch {self.epoch + 1} of {self.settings.epochs}, loss {mean:.4f}", share)
            )
        return total / steps

    def _step(self, trained: QuantisedNetwork, optimiser: torch.optim.Optimizer, batch: Batch, loss: Any) -> float:
        optimiser.zero_grad()
        value = loss(trained(_pictures(batch.pictures).to(self.device)), batch)
        value.backward()
        torch.nn.utils.clip_grad_norm_(trained.parameters(), MAX_GRADIENT_NORM)
        optimiser.step()
        wrong = float(value.detach())
        if not np.isfinite(wrong):
            what, largest = f"the loss in epoch {self.epoch + 1}", float(np.finfo(np.float32).max)
            raise RangeError(what, wrong, 0, largest, remedy="give a lower --lr")
        return wrong


def write_files(trained: QuantisedNetwork, folder: Path, name: str) -> tuple[Path, Path]:
    """Write NAME.json and NAME.npz, which ``generate`` and ``evaluate`` read; OSError if that fails."""
    topology, arrays = trained.exported()
    topology = replace(topology, name=identifier(name))
    make_exported(topology, arrays)  # raises an error before a network is written that breaks the arithmetic contract
    files = folder / f"{name}.json", folder / f"{name}.npz"
    write_whole(files[0], topology_text(topology).encode())
    write_whole(files[1], write_arrays(_narrow(topology, arrays)))
    return files


def _write_darknet(model: Model, network: Network, trained: QuantisedNetwork, place: Path) -> None:
    """Write NAME-float.cfg and NAME-float.weights if the training started from a cfg without residual additions.

    Residual additions are excluded, because the trained network clips their sums and darknet does not.
    """
    cfg = model.files.get("model/network.cfg")
    if cfg is not None and not any(isinstance(layer.op, Sum) for layer in trained.topology.layers):
        files = darknet_files(cfg.decode(), network, make_exported(*trained.exported()))
        for ending, data in zip(("cfg", "weights"), files, strict=True):
            write_whole(place.with_name(f"{place.name}-float.{ending}"), data)


def _narrow(topology: Topology, arrays: Mapping[str, FloatArray]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of the .npz file, with integer weights as float16, which represents them exactly."""
    integers = {f"conv{kernel.number}_w" for _, kernel in topology.kernels if kernel.integers}
    return {name: values.astype(np.float16) if name in integers else values for name, values in arrays.items()}


def _pictures(values: Any) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, np.float32))


def _decisive_options(model: Model, data: TrainingData, settings: Settings) -> dict[str, Any]:
    digest = hashlib.sha256(b"".join(model.files[name] for name in sorted(model.files))).hexdigest()
    decisive = {name: value for name, value in asdict(settings).items() if name not in ("threads", "device", "name")}
    return {**decisive, "network": digest, "pictures": len(data.pictures), "fit": data.fit}


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise MissingToolError("a GPU that PyTorch can use", "train with --device cuda", remedy="leave it out")
    return torch.device(name)

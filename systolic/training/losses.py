"""How wrong a network's answers are, by its heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from boards.errors import NetworkError
from cnn.exported.topology import Topology
from cnn.network import Detection
from cnn.training.grid import grid_of
from cnn.training.loss import head_losses
from systolic.training.data import Batch

Loss = Callable[[Sequence[Tensor], Batch], Tensor]
"""What the heads read, and the truth → a scalar."""


def loss_of(topology: Topology) -> Loss:
    """Of detection heads, all of one kind, or of a classifier. NetworkError for a network that ends otherwise."""
    heads = [layer for layer in topology.layers if isinstance(layer.op, Detection)]
    if not heads:
        shape = topology.layers[-1].shape
        if shape.height != 1 or shape.width != 1:
            raise NetworkError(
                f"{topology.name} must end in region or yolo heads, or in one value a class, to be trained; "
                f"it ends in {topology.layers[-1].name!r} of {shape}"
            )
        return _classification
    grids = [
        grid_of(head.op, topology.shape_of(head.inputs[0]), topology.input)
        for head in heads
        if isinstance(head.op, Detection)
    ]
    return lambda outputs, batch: torch.stack(head_losses(outputs, batch.truths, grids)).sum()


def _classification(outputs: Sequence[Tensor], batch: Batch) -> Tensor:
    categories = torch.from_numpy(batch.categories).to(outputs[0].device)
    loss: Tensor = functional.cross_entropy(outputs[0].flatten(1), categories)
    return loss

"""The training loss of a network: it depends on whether the network is a detector or a classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from boards.errors import UnsupportedError
from cnn.exported.topology import Topology
from cnn.ops import Detection, OneObject
from cnn.training.grid import HeadGrid, grid_of
from cnn.training.loss import head_losses, one_object_loss
from systolic.training.data import Batch

Loss = Callable[[Sequence[Tensor], Batch], Tensor]
"""(inputs of the heads, batch with the truths) → scalar loss."""


def loss_of(topology: Topology) -> Loss:
    """Return the loss function (head inputs, batch) → scalar for a detector or a classifier.

    Raises:
        UnsupportedError: The network ends neither in detection heads of one kind nor in one value per class.
    """
    heads = [layer for layer in topology.layers if isinstance(layer.op, Detection)]
    if not heads:
        shape = topology.layers[-1].shape
        if shape.height != 1 or shape.width != 1:
            raise UnsupportedError(
                f"training {topology.name}",
                f"it must end in region or yolo heads, or in one value per class; it ends in "
                f"{topology.layers[-1].name!r} of {shape}",
            )
        return _classification
    grids = [_grid(topology, layer.inputs[0], layer.op) for layer in heads if isinstance(layer.op, Detection)]
    sees_one = [isinstance(layer.op, OneObject) for layer in heads]
    if sees_one == [True]:
        return lambda outputs, batch: one_object_loss(outputs[0], batch.truths, grids[0])
    if any(sees_one):
        reason = f"it must have one head that sees one object, or only heads of other kinds; {sum(sees_one)} of its "
        raise UnsupportedError(f"training {topology.name}", f"{reason}{len(heads)} heads see one object")
    return lambda outputs, batch: torch.stack(head_losses(outputs, batch.truths, grids)).sum()


def _grid(topology: Topology, source: int, head: Detection) -> HeadGrid:
    return grid_of(head, topology.shape_of(source), topology.input)


def _classification(outputs: Sequence[Tensor], batch: Batch) -> Tensor:
    categories = torch.from_numpy(batch.categories).to(outputs[0].device)
    loss: Tensor = functional.cross_entropy(outputs[0].flatten(1), categories)
    return loss

"""A network as the layers that an array executes: lowered once, and passed down from there."""

from __future__ import annotations

from dataclasses import dataclass

from cnn.quantized import QuantizedNetwork
from scheduler.systolic.layers import lower
from scheduler.systolic.network.layer import Layer


@dataclass(frozen=True, eq=False)
class Workload:
    """A quantised network lowered to the layers that the array executes.

    Attributes:
        network: The network.
        layers: Its layers, in execution order.
        batch: Frames that go through each layer before the next layer starts.
        fused: Whether the output stage adds maps where it can.
    """

    network: QuantizedNetwork
    layers: tuple[Layer, ...]
    batch: int = 1
    fused: bool = False


def workload_of(network: QuantizedNetwork, batch: int = 1, fused: bool = False) -> Workload:
    """Return the network lowered to array layers for a batch; raise the errors of ``lower``."""
    return Workload(network, lower(network, batch, fused), batch, fused)

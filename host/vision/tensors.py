"""The outputs of a network by the names in its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from host.contract.named_outputs import OutputTensor, Sides, Values, run_steps, sides_of
from host.contract.parts import Manifest
from host.vision.heads.head import FloatArray


class Tensors(Mapping[str, Values]):
    """A mapping from the name of each output of the network's file to its values, float32 or, for labels, int64.

    An output is computed when it is first read, so code that reads boxes alone does not wait for it.

    Args:
        manifest: The design's manifest.
        maps: Real numbers ``(channels, height, width)`` of each layer that the host reads, by its index in the
            manifest.
    """

    def __init__(self, manifest: Manifest, maps: Mapping[int, FloatArray]) -> None:
        self._outputs: Mapping[str, OutputTensor] = {output.name: output for output in manifest.tensors}
        self._maps = maps
        self._done: dict[str, Values] = {}
        if not manifest.tensors:
            self._done = {manifest.layers[index].name: array for index, array in maps.items()}

    def __getitem__(self, name: str) -> Values:
        if name not in self._done:
            output = self._outputs[name]
            self._done[name] = run_steps(output.steps, [self._maps[layer] for layer in output.layers])
        return self._done[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._outputs or self._done)

    def __len__(self) -> int:
        return len(self._outputs or self._done)

    def sides(self) -> dict[str, Sides]:
        """Return the shape of each output of the network's file by name, without computing any."""
        if not self._outputs:
            return {name: array.shape for name, array in self._done.items()}
        maps = {index: (1, *array.shape) for index, array in self._maps.items()}
        return {
            name: sides_of(output.steps, [maps[layer] for layer in output.layers])
            for name, output in self._outputs.items()
        }

"""What a training that was stopped goes on from: one .npz, without pickle, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from boards.errors import DamagedFileError, MismatchError, cut
from cnn.stored.npz import write_arrays
from host.whole_file import write_whole

FORMAT = "systolic training 1"
_HEADER, _MODEL, _OPTIMISER = "header", "model.", "optimiser."


@dataclass(frozen=True)
class TrainingProgress:
    """epoch: how many are done. wishes: what decides the course of the training, which must be the same to go on."""

    epoch: int
    wishes: Mapping[str, Any]


def save(path: Path, model: torch.nn.Module, optimiser: torch.optim.Optimizer, progress: TrainingProgress) -> None:
    """Write the checkpoint; OSError if that fails."""
    header = json.dumps({"format": FORMAT, "epoch": progress.epoch, "wishes": progress.wishes}, sort_keys=True)
    arrays: dict[str, npt.NDArray[Any]] = {_HEADER: np.frombuffer(header.encode(), np.uint8)}
    arrays.update({_MODEL + name: values.cpu().numpy() for name, values in model.state_dict().items()})
    for index, state in optimiser.state_dict()["state"].items():
        arrays.update({f"{_OPTIMISER}{index}.{name}": values.cpu().numpy() for name, values in state.items()})
    write_whole(path, write_arrays(arrays))


def restore(path: Path, model: torch.nn.Module, optimiser: torch.optim.Optimizer, wishes: Mapping[str, Any]) -> int:
    """How many epochs are done: 0 where there is no file, else model and optimiser are as they were.

    Raises:
        DamagedFileError: The file is not a checkpoint.
        MismatchError: It is of another training.
    """
    if not path.is_file():
        return 0
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(bytes(arrays.pop(_HEADER)))
        found, wanted = (header["format"], header["wishes"]), (FORMAT, json.loads(json.dumps(wishes)))
        epoch = int(header["epoch"])
    except Exception as error:  # zipfile and numpy raise nearly anything where an archive is damaged
        reason = f"is not a checkpoint of a training ({cut(error)})"
        raise DamagedFileError(str(path), reason, remedy="remove it to begin anew") from error
    if found != wanted:
        remedy = "give those, name another folder, or remove it to begin anew"
        what = f"the network, the pictures or the options of the training in {path}"
        raise MismatchError(what, wanted, found, remedy=remedy)
    model.load_state_dict(_tensors(arrays, _MODEL))
    states: dict[int, dict[str, torch.Tensor]] = {}
    for name, values in _tensors(arrays, _OPTIMISER).items():
        index, _, part = name.partition(".")
        states.setdefault(int(index), {})[part] = values
    optimiser.load_state_dict({**optimiser.state_dict(), "state": states})
    return epoch


def _tensors(arrays: Mapping[str, npt.NDArray[Any]], prefix: str) -> dict[str, torch.Tensor]:
    return {
        name.removeprefix(prefix): torch.from_numpy(np.array(values))
        for name, values in arrays.items()
        if name.startswith(prefix)
    }

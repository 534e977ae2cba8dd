"""The checkpoint from which a stopped training resumes: one .npz file without pickle."""

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
    """The number of finished epochs, and the options that a resumed training must have again.

    Attributes:
        epoch: The number of finished epochs.
        options: The options and inputs that determine the result. A training resumes only if they are unchanged.
    """

    epoch: int
    options: Mapping[str, Any]


def save(path: Path, model: torch.nn.Module, optimiser: torch.optim.Optimizer, progress: TrainingProgress) -> None:
    """Write the checkpoint: weights, optimiser state and progress. An older file is replaced only when it is complete.

    Raises:
        OSError: The file cannot be written.
    """
    header = json.dumps({"format": FORMAT, "epoch": progress.epoch, "wishes": progress.options}, sort_keys=True)
    arrays: dict[str, npt.NDArray[Any]] = {_HEADER: np.frombuffer(header.encode(), np.uint8)}
    arrays.update({_MODEL + name: values.cpu().numpy() for name, values in model.state_dict().items()})
    for index, state in optimiser.state_dict()["state"].items():
        arrays.update({f"{_OPTIMISER}{index}.{name}": values.cpu().numpy() for name, values in state.items()})
    write_whole(path, write_arrays(arrays))


def restore(path: Path, model: torch.nn.Module, optimiser: torch.optim.Optimizer, options: Mapping[str, Any]) -> int:
    """Load a checkpoint, if there is one, into model and optimiser; return the number of finished epochs.

    Raises:
        DamagedFileError: The file is not a checkpoint.
        MismatchError: The file belongs to another training.
    """
    if not path.is_file():
        return 0
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(bytes(arrays.pop(_HEADER)))
        found, wanted = (header["format"], header["wishes"]), (FORMAT, json.loads(json.dumps(options)))
        epoch = int(header["epoch"])
    except Exception as error:  # zipfile and numpy raise nearly any exception for a damaged archive
        reason = f"is not a checkpoint of a training ({cut(error)})"
        raise DamagedFileError(str(path), reason, remedy="delete it to start again") from error
    if found != wanted:
        remedy = "give the values of the checkpoint, choose another folder, or delete the file to start again"
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

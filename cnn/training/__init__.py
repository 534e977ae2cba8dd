"""Training in low precision: PyTorch modules whose forward pass computes the golden model's integers exactly.

``conversion`` makes a topology of a float network, and ``pruning`` removes filters before that. ``network`` is a module
of all layers of a topology, and ``convolution`` is one of its layers. ``straight_through`` rounds values but passes
gradients through unchanged. ``grid`` decodes the maps of a detection head, and ``loss`` computes their loss. These
modules need PyTorch.
"""

import math
from importlib.util import find_spec

from boards.errors import MissingToolError


def check_pytorch() -> None:
    """Raise MissingToolError if PyTorch is not installed.

    The function is in this module so that a command line can ask without importing the modules that train.
    """
    if find_spec("torch") is None:
        raise MissingToolError("PyTorch", "train networks", remedy="install the extra: pip install -e '.[train]'")


def learning_rate_factor(share: float) -> float:
    """Return the learning rate as a share of its peak, at the progress ``share`` of the training, 0…1.

    It rises over the first 5 %, and then falls as half a cosine.
    """
    return share / 0.05 if share < 0.05 else 0.5 * (1 + math.cos(math.pi * min(1.0, (share - 0.05) / 0.95))) + 1e-3

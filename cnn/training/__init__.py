"""How the network of cnn/models/shapes was trained: a seed goes in, darknet's cfg, weights and names come out.

scenes draws the pictures and knows where the objects are (objects and backgrounds hold what it draws), batches hands
them to PyTorch, model is the network, grid what its output means, loss what it is trained by, and darknet_files writes
it. Open train first: its command line runs them all. folders writes scenes for ``systolic train`` and ``evaluate``.
"""

from importlib.util import find_spec

from boards.errors import NetworkError


def check_pytorch() -> None:
    """NetworkError where PyTorch is not installed. It stands here so that a command line asks without importing what
    trains."""
    if find_spec("torch") is None:
        raise NetworkError(
            "training needs PyTorch, which is not installed; install the extra: pip install -e '.[train]'"
        )

"""How the network of cnn/models/shapes was trained: a seed goes in, darknet's cfg, weights and names come out.

scenes draws the pictures and knows where the objects are (objects and backgrounds hold what it draws), batches hands
them to PyTorch, model is the network, grid what its output means, loss what it is trained by, and darknet_files writes
it. Open train first: its command line runs them all. folders writes scenes for ``systolic train`` and ``evaluate``.
"""

from importlib.util import find_spec

from boards.errors import MissingToolError


def check_pytorch() -> None:
    """Raise MissingToolError if PyTorch is not installed.

    The function is in this module so that a command line can ask without importing the modules that train.
    """
    if find_spec("torch") is None:
        raise MissingToolError("PyTorch", "train networks", remedy="install the extra: pip install -e '.[train]'")

"""Who searches: this process, several of this machine, or a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import parent_process
from threading import Thread
from typing import Any

from boards.errors import MissingToolError, ToolError, cut


@contextmanager
def workers(count: int = 1, dask: str | None = None, seconds: float = 10) -> Iterator[Executor | None]:
    """An executor for the search: processes of this machine, or a Dask cluster's; None for one process.

    seconds: how long a Dask scheduler may take to answer.

    Raises:
        MissingToolError: The package distributed is not installed.
        ToolError: No Dask scheduler answers.
    """
    if dask is not None:
        with _dask(dask, seconds) as executor:
            yield executor
    elif count > 1:
        from concurrent.futures import ProcessPoolExecutor

        with ProcessPoolExecutor(count, initializer=_end_with_parent) as pool:
            try:
                yield pool
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    else:
        yield None


def _end_with_parent() -> None:
    """In a worker: it ends when the process that gives it work is killed, which else nobody tells it."""

    def wait() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=wait, daemon=True).start()


@contextmanager
def _dask(address: str, seconds: float) -> Iterator[Executor]:
    try:
        distributed: Any = import_module("distributed")  # partly typed, and an extra
    except ImportError as error:
        raise MissingToolError(
            "the package distributed", "search on a Dask cluster (--dask)", remedy="pip install -e '.[dask]'"
        ) from error
    try:
        client = distributed.Client(address, timeout=seconds)
    except (OSError, ValueError) as error:
        remedy = "start one with: dask scheduler"
        raise ToolError(f"the Dask scheduler at {address}", f"does not answer: {cut(error)}", remedy=remedy) from error
    with client:
        # Not pure: a task that is given again after its worker died is to run again, and not to be the one that failed.
        yield client.get_executor(pure=False)

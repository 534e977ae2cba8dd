"""The processes that run a schedule search: this one, several on this machine, or a Dask cluster."""

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
    """Yield an executor with ``count`` processes or a Dask cluster; None if the search runs in this process alone.

    Args:
        count: The number of processes on this machine.
        dask: The address of a Dask scheduler, whose cluster is used instead; None for this machine.
        seconds: The time that a Dask scheduler has to answer, in seconds.

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
    """Make a worker process exit when its parent dies: a killed parent cannot stop its workers itself."""

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
        # pure=False, because a task that is submitted again after its worker died must run again. Dask would answer a
        # pure task with the earlier failure.
        yield client.get_executor(pure=False)

"""A gang of processes that torch.distributed connects over loopback, for tests of what its ranks do together."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from ces_testbed.spec import LOCALHOST, free_port


def together(size: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What ``function(gang, *arguments)``, of a module that can be imported, returns at every rank."""
    port = free_port(LOCALHOST, set())
    with ProcessPoolExecutor(size, multiprocessing.get_context("spawn")) as pool:
        ranks = [pool.submit(_rank, rank, size, port, function, arguments) for rank in range(size)]
        return [rank.result() for rank in ranks]


def _rank(rank: int, size: int, port: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    where = {"MASTER_ADDR": LOCALHOST, "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(size)}
    os.environ.update(where)
    import torch

    from ces_rl.gang import joined

    torch.set_num_threads(1)
    gang = joined()
    try:
        return function(gang, *arguments)
    finally:
        if size > 1:
            torch.distributed.destroy_process_group()

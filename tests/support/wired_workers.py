"""Workers of one process, joined by sockets: what their algorithms and links are tested with."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from ces_workloads.connections import Connections
from ces_workloads.data import Dataset, Images
from ces_workloads.peers import Flow, Membership, Peer
from ces_workloads.replica import Settings

T = TypeVar("T")
Pairs = Sequence[tuple[int, int]]


def member(rank: int, world_size: int, pairs: Pairs = ()) -> Membership:
    """A worker as it finds itself in a job with flows between these pairs of ranks; it sees only its own."""
    peers = tuple(Peer(r, f"worker-{r}", f"127.0.0.{r + 1}", 29400, f"n{r}") for r in range(world_size))
    flows = tuple(Flow(f"worker-{a}", f"worker-{b}", 10**7) for a, b in pairs if rank in (a, b))
    return Membership("job", rank, peers[rank].address, 29400, peers, flows)


@contextmanager
def wired(n: int, pairs: Pairs, patience: float = 20, leaving: float = 20) -> Iterator[list[Connections]]:
    """Connections of n workers with one connection for each directed pair; a worker alone is its own neighbour.

    Workers that wait for each other fail a test within ``patience`` or ``leaving`` seconds and do not hang it.
    """
    wires = {pair: socket.socketpair() for pair in (pairs if n > 1 else [(0, 0)])}
    links = [
        Connections(
            member(rank, n, pairs),
            {b: ends[0] for (a, b), ends in wires.items() if a == rank},
            {a: ends[1] for (a, b), ends in wires.items() if b == rank},
            patience,
            leaving,
        )
        for rank in range(n)
    ]
    try:
        yield links
    finally:
        for link in links:
            link.close()


def together(n: int, work: Callable[[int], T]) -> list[T]:
    """What each rank's work gives, all at work at the same time."""
    with ThreadPoolExecutor(n) as threads:
        return [future.result(timeout=30) for future in [threads.submit(work, rank) for rank in range(n)]]


def small_settings(**changes: object) -> Settings:
    """A network that takes no time to train."""
    values = {"rounds": 3, "until_accuracy": None, "hidden": (5,), "batch": 8, "learning_rate": 0.05, "seed": 7}
    return Settings(**(values | changes))


def small_data(images: int = 53, pixels: int = 6) -> Dataset:
    """Images of noise with random labels: enough to compute with."""
    generator = np.random.default_rng(11)

    def some(count: int) -> Images:
        return Images(generator.random((count, pixels), dtype=np.float32), generator.integers(0, 10, count))

    return Dataset(train=some(images), test=some(images // 2))

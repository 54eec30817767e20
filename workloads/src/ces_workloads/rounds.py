"""What all algorithms share: going through the rounds, telling of each, and knowing when to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from ces_workloads.connections import Connections, Exchange
from ces_workloads.data import Dataset
from ces_workloads.overlay import MissingFlow, Neighbours
from ces_workloads.peers import Membership
from ces_workloads.replica import Settings
from ces_workloads.report import Progress, Reporter, Result


class TrainingFailed(Exception):
    """The training ran but its outcome is worthless: it diverged, or the replicas differ."""


@dataclass(frozen=True)
class Outcome:
    """Of a round: ``loss`` and ``accuracy`` as :class:`Progress` has them; ``over``: a neighbour has stopped."""

    loss: float
    accuracy: float
    over: bool = False


class Algorithm(Protocol):
    """One worker's part in training together; its methods raise whatever its connections raise."""

    def round(self, number: int) -> Outcome:
        """Train and exchange once; rounds count from 1."""

    def end(self) -> str:
        """Say what is left to say after the last round; gives the digest of the parameters."""


class Kind(Protocol):
    """An algorithm's class."""

    def connections(self, members: Membership) -> Neighbours:
        """Whom the worker sends to and hears from; raises :class:`~ces_workloads.overlay.MissingFlow`."""

    def __call__(self, settings: Settings, data: Dataset, members: Membership, connections: Exchange) -> Algorithm:
        """One worker's part, which may already talk over the connections."""


class Traffic(Protocol):
    """What was carried so far."""

    bytes_sent: int
    bytes_received: int
    seconds: float


@contextmanager
def taking_part(connections: Connections) -> Iterator[None]:
    """Close ``connections`` after the block: in order after a result, and after an error that every worker finds by
    itself.

    The first worker to find such an error would else be taken for lost by those that are about to. After any other
    error the connections drop at once, which the neighbours shall see.
    """
    try:
        try:
            yield
        except (MissingFlow, TrainingFailed):
            connections.finish()
            raise
        connections.finish()
    finally:
        connections.close()


def train(
    name: str,
    algorithm: Algorithm,
    settings: Settings,
    rank: int,
    world_size: int,
    connections: Traffic,
    reporter: Reporter,
) -> Result:
    """Train until the last round, or until the accuracy asked for is reached.

    Raises :class:`TrainingFailed` and whatever ``connections`` raises.
    """
    sent, received, communicated = connections.bytes_sent, connections.bytes_received, connections.seconds
    start = round_start = time.perf_counter()
    for number in range(1, settings.rounds + 1):
        outcome = algorithm.round(number)
        if not math.isfinite(outcome.loss):
            raise TrainingFailed(f"the loss is {outcome.loss} in round {number}: the learning rate is too high")
        now = time.perf_counter()
        reporter.progress(
            Progress(
                round=number,
                rounds=settings.rounds,
                step=number,
                loss=outcome.loss,
                accuracy=outcome.accuracy,
                bytes_sent=connections.bytes_sent - sent,
                bytes_received=connections.bytes_received - received,
                seconds=now - start,
                seconds_round=now - round_start,
                seconds_communicating=connections.seconds - communicated,
            )
        )
        round_start = now
        if settings.until_accuracy is not None and outcome.accuracy >= settings.until_accuracy:
            reporter.log(f"reached accuracy {outcome.accuracy:.4f} in round {number}")
            break
        if outcome.over:
            reporter.log(f"stops in round {number}: a neighbour has reached the accuracy")
            break
    digest = algorithm.end()
    return Result(
        algorithm=name,
        rank=rank,
        world_size=world_size,
        rounds=number,
        loss=outcome.loss,
        accuracy=outcome.accuracy,
        digest=digest,
        bytes_sent=connections.bytes_sent - sent,
        bytes_received=connections.bytes_received - received,
        seconds=time.perf_counter() - start,
        seconds_communicating=connections.seconds - communicated,
    )

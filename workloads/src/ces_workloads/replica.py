"""One replica of data-parallel training: each round averages the gradients of all workers over a ring."""

from __future__ import annotations

import hashlib
import math
import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ces_workloads import model
from ces_workloads.data import CLASSES, Dataset, batches, shard
from ces_workloads.model import Vector
from ces_workloads.report import Progress, Reporter, Result
from ces_workloads.ring import Neighbours, Ring

_MOMENTUM = np.float32(0.9)


class TrainingFailed(Exception):
    """The training ran but its outcome is worthless: it diverged, or the replicas differ."""


class Links(Neighbours, Protocol):
    """Neighbours that count what was sent to them, in bytes."""

    bytes_sent: int


@dataclass(frozen=True)
class Settings:
    """What to train and for how long; the same at every worker of a job."""

    rounds: int
    target_accuracy: float | None
    hidden: tuple[int, ...]
    batch: int
    learning_rate: float
    seed: int


def train_ring(
    settings: Settings, data: Dataset, rank: int, world_size: int, links: Links, reporter: Reporter
) -> Result:
    """Train synchronously until the last round, or until the target accuracy is reached.

    Raises :class:`TrainingFailed` and whatever ``links`` raises.
    """
    ring = Ring(rank, world_size, links)
    sizes = (data.train.pixels.shape[1], *settings.hidden, CLASSES)
    own_train = shard(data.train, rank, world_size, settings.seed)
    own_test = shard(data.test, rank, world_size, settings.seed)
    parameters = model.initial_parameters(sizes, settings.seed)
    velocity = np.zeros_like(parameters)
    learning_rate = np.float32(settings.learning_rate)

    start = time.perf_counter()
    communicating = 0.0
    batch_stream = batches(own_train, settings.batch, seed=settings.seed * world_size + rank)
    for number in range(1, settings.rounds + 1):
        batch = next(batch_stream)
        loss, gradient = model.loss_and_gradient(sizes, parameters, batch.pixels, batch.labels)
        communicating += _timed_all_reduce(ring, gradient)
        # Separate elementwise steps round alike everywhere: replicas stay bit-identical across processors.
        gradient /= np.float32(world_size)
        velocity *= _MOMENTUM
        velocity += gradient
        parameters -= learning_rate * velocity

        # Measured in parts and summed over the ring, so that all workers see one number and stop together.
        correct = model.count_correct(sizes, parameters, own_test.pixels, own_test.labels)
        totals = np.array([loss, correct], dtype=np.float64)
        communicating += _timed_all_reduce(ring, totals)
        mean_loss, accuracy = float(totals[0]) / world_size, float(totals[1]) / len(data.test)
        if not math.isfinite(mean_loss):
            raise TrainingFailed(f"the loss is {mean_loss} in round {number}: the learning rate is too high")
        reporter.progress(
            Progress(
                round=number,
                rounds=settings.rounds,
                loss=mean_loss,
                accuracy=accuracy,
                bytes_sent=links.bytes_sent,
                seconds=time.perf_counter() - start,
                seconds_communicating=communicating,
            )
        )
        if settings.target_accuracy is not None and accuracy >= settings.target_accuracy:
            reporter.log(f"reached accuracy {accuracy:.4f} in round {number}")
            break
    return Result(
        algorithm="ring",
        rank=rank,
        world_size=world_size,
        rounds=number,
        loss=mean_loss,
        accuracy=accuracy,
        digest=agreed_digest(ring, parameters, rank),
        bytes_sent=links.bytes_sent,
        seconds=time.perf_counter() - start,
        seconds_communicating=communicating,
    )


def agreed_digest(ring: Ring, parameters: Vector, rank: int) -> str:
    """The SHA-256 of the parameters, once all ranks have the same; raises :class:`TrainingFailed` if not."""
    digest = hashlib.sha256(parameters.tobytes()).digest()
    others = [other for other, theirs in enumerate(ring.all_gather(digest)) if theirs != digest]
    if others:
        raise TrainingFailed(f"the replicas differ: the parameters of ranks {others} are not those of rank {rank}")
    return digest.hex()


def _timed_all_reduce(ring: Ring, vector: Vector) -> float:
    start = time.perf_counter()
    ring.all_reduce(vector)
    return time.perf_counter() - start

"""One worker's copy of the model, its optimiser, and the images that are its own."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from ces_workloads import model
from ces_workloads.data import CLASSES, Dataset, batches, shard
from ces_workloads.model import Vector

_MOMENTUM = np.float32(0.9)


@dataclass(frozen=True)
class Settings:
    """What to train and for how long; the same at every worker of a job."""

    rounds: int
    until_accuracy: float | None
    hidden: tuple[int, ...]
    batch: int
    learning_rate: float
    seed: int


class Replica:
    """The model's parameters and stochastic gradient descent with momentum. The first parameters follow the seed."""

    def __init__(self, settings: Settings, data: Dataset) -> None:
        self._sizes = (data.train.pixels.shape[1], *settings.hidden, CLASSES)
        self._learning_rate = np.float32(settings.learning_rate)
        self.parameters = model.initial_parameters(self._sizes, settings.seed)
        self._velocity = np.zeros_like(self.parameters)

    def update(self, gradient: Vector) -> None:
        """One step against ``gradient``."""
        # Separate elementwise steps round alike everywhere: replicas stay bit-identical across processors.
        self._velocity *= _MOMENTUM
        self._velocity += gradient
        self.parameters -= self._learning_rate * self._velocity

    def digest(self) -> str:
        """The SHA-256 of the parameters."""
        return hashlib.sha256(self.parameters.tobytes()).hexdigest()


class Learner(Replica):
    """A replica with share ``share`` of ``shares`` of the images: some to train on, some to measure accuracy on."""

    def __init__(self, settings: Settings, data: Dataset, share: int, shares: int) -> None:
        super().__init__(settings, data)
        train = shard(data.train, share, shares, settings.seed)
        self._test = shard(data.test, share, shares, settings.seed)
        self._batches = batches(train, settings.batch, seed=settings.seed * shares + share)
        self.images = len(train)

    def gradient(self) -> tuple[float, Vector]:
        """Mean loss over the next batch, and its gradient."""
        batch = next(self._batches)
        return model.loss_and_gradient(self._sizes, self.parameters, batch.pixels, batch.labels)

    def step(self) -> float:
        """Train on the next batch alone; the loss before that."""
        loss, gradient = self.gradient()
        self.update(gradient)
        return loss

    def count_correct(self) -> int:
        """How many of its own held-out images the model gets right as it is."""
        return model.count_correct(self._sizes, self.parameters, self._test.pixels, self._test.labels)

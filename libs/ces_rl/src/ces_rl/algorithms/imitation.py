"""Imitation of an expert by dataset aggregation (DAgger: Ross, Gordon, Bagnell, AISTATS 2011), in one file.

The student plays episodes by itself, some hotter and some colder, and the environment's expert judges every action that
it could have taken, so that it learns to act where its own mistakes lead. All that was judged so far is the dataset.
The student learns to make its expected regret small with its entropy held up: ``p . regret / unit - H(p)`` is least for
``p ~ exp(-regret / unit)``. So scores have a unit, and a temperature has a meaning. The same seed gives the same run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ces_rl.algorithms.base import Length, RefusedError
from ces_rl.algorithms.policy_run import Pair, PolicyRun
from ces_rl.envs.base import Environment
from ces_rl.needs import torch
from ces_rl.schedules import linear
from ces_sim.rounds import derived_seed

if TYPE_CHECKING:
    from torch import Tensor

HALF = np.float16
"""The dataset is kept at half precision: a hundred thousand decisions on ten nodes take 80 MB."""


@dataclass(frozen=True)
class ImitationSettings(Length):
    """Pairs are (in the first update, in the last) and change linearly over the run."""

    episodes: Annotated[int, Field(ge=1, description="episodes of an update, each of a problem of its own")] = 384
    temperatures: Annotated[
        tuple[float, ...], Field(min_length=1, description="each episode is played at one of them, by chance")
    ] = (0.5, 1.0, 2.0, 4.0)
    limit: Annotated[
        int, Field(ge=1, description="partial plans that the expert looks at for an action: seldom all are needed")
    ] = 10_000
    regret_cap: Annotated[float, Field(gt=0, description="the largest regret, and that of a dead end")] = 0.1
    unit: Annotated[
        Pair, Field(description="the regret that a score of 1 stands for: fine differences are learned last")
    ] = (0.004, 0.0015)
    gradient_steps: Annotated[int, Field(ge=1, description="of an update, over the whole dataset")] = 250
    batch_size: Annotated[int, Field(ge=1, description="decisions of a gradient step")] = 512
    learning_rate: Annotated[Pair, Field(description="of Adam")] = (1.5e-3, 2e-5)
    max_grad_norm: Annotated[float, Field(gt=0, description="the largest norm of a gradient")] = 1.0
    threads: Annotated[int, Field(ge=1, description="that the expert searches in; changes no result")] = 2


class Dataset(NamedTuple):
    """N judged decisions."""

    observations: tuple[NDArray[Any], ...]  # (N, ...) each
    mask: NDArray[Any]  # (N, actions)
    regret: NDArray[Any]  # (N, actions)

    @staticmethod
    def together(parts: list[Dataset]) -> Dataset:
        observations, masks, regrets = zip(*parts, strict=True)
        columns = (np.concatenate(column) for column in zip(*observations, strict=True))
        return Dataset(tuple(columns), np.concatenate(masks), np.concatenate(regrets))


class Imitation(PolicyRun):
    """One run of imitation."""

    Settings = ImitationSettings
    use_instead = "it has no decisions that an expert could judge: use cem or es"
    settings: ImitationSettings

    def __init__(self, env: Environment, settings: ImitationSettings, seed: int) -> None:
        super().__init__(env, settings, seed, settings.episodes)
        self.dataset: Dataset | None = None
        if self._expert() is None:
            raise RefusedError("nobody can say what its actions cost in the end: use ppo or es")

    def update(self) -> dict[str, float]:
        """Plays, has it judged, learns from all that was judged so far, and says how it went."""
        self.begin_update(self.settings.episodes)
        progress = self.updates / self.settings.updates
        judged, measured = self._play()
        judged = Dataset.together(self.gang.gathered(judged))
        self.steps += len(judged.mask)
        self.dataset = judged if self.dataset is None else Dataset.together([self.dataset, judged])
        measured |= {"imitation_loss": self._learn(self.dataset, progress), "dataset": float(len(self.dataset.mask))}
        self.updates += 1
        if self.updates == self.settings.updates:
            self.dataset = None  # the run is over, and a checkpoint need not carry it
        return measured | {"steps": float(self.steps)}

    def _expert(self) -> Any:
        settings = self.settings
        return self.env.expert(
            self.vector, limit=settings.limit, regret_cap=settings.regret_cap, threads=settings.threads
        )

    def _play(self) -> tuple[Dataset, dict[str, float]]:
        vector, parts, shortfall = self.vector, [], []
        vector.reset(1.0)
        temperature = self.rng.choice(self.settings.temperatures, size=vector.slots)
        with self._expert() as expert:
            while vector.running.any():
                rows = np.flatnonzero(vector.running)
                regret, best = expert.judge(rows)
                observations, mask = vector.observe(rows), vector.mask[rows]
                with torch.no_grad():
                    found = self.policy(*(torch.from_numpy(part) for part in observations))[0].numpy()
                scores = np.where(mask, found / temperature[rows, None], -np.inf)
                known = np.isfinite(best)
                kept = tuple(_halved(column[known]) for column in observations)
                parts.append(Dataset(kept, mask[known], _halved(regret[known])))
                first = regret[np.arange(len(rows)), np.argmax(scores, axis=1)]
                shortfall.append(first[known])
                actions = np.zeros(vector.slots, dtype=np.int64)
                actions[rows] = np.argmax(scores + self.rng.gumbel(size=mask.shape), axis=1)
                vector.step(actions)
        regret = np.concatenate(shortfall)
        measured = self.gang.mean({"regret": float(regret.mean())}, len(regret))
        return Dataset.together(parts), self.outcome() | measured

    def _learn(self, dataset: Dataset, progress: float) -> float:
        settings = self.settings
        self.set_learning_rate(linear(settings.learning_rate, progress))
        unit = linear(settings.unit, progress)
        total, gang = 0.0, self.gang
        rng = np.random.default_rng(derived_seed(self.seed, 3, self.updates)) if gang.malleable else self.rng
        for _ in range(settings.gradient_steps):
            rows = rng.integers(len(dataset.mask), size=settings.batch_size)[gang.rank :: gang.size]
            if not len(rows):
                self.descend(None, 0.0)
                continue
            observations = (torch.from_numpy(_whole(column[rows])) for column in dataset.observations)
            mask, regret = (torch.from_numpy(column[rows].astype(np.float32)) for column in dataset[1:])
            scores, _ = self.policy(*observations)
            loss = expected_regret(scores, mask, regret, unit).mean()
            self.descend(loss, len(rows))
            total += loss.item()
        return gang.mean({"loss": total / settings.gradient_steps}, len(rows))["loss"]

    def state(self) -> dict[str, Any]:
        found = super().state()
        if self.dataset is not None:
            columns = (*self.dataset.observations, self.dataset.mask, self.dataset.regret)
            found["dataset"] = [torch.from_numpy(column) for column in columns]
        return found

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        columns = [column.numpy() for column in state.get("dataset", ())]
        self.dataset = Dataset(tuple(columns[:-2]), columns[-2], columns[-1]) if columns else None


def expected_regret(scores: Tensor, mask: Tensor, regret: Tensor, unit: float) -> Tensor:
    """(B,) ``p . regret / unit - H(p)`` of the odds that ``scores`` (B, actions) give."""
    logs = torch.log_softmax(scores, -1)
    return (logs.exp() * (regret / unit + logs) * mask).sum(-1)


def _halved(column: NDArray[Any]) -> NDArray[Any]:
    return column.astype(HALF) if column.dtype.kind == "f" else column


def _whole(column: NDArray[Any]) -> NDArray[Any]:
    return column.astype(np.float32) if column.dtype == HALF else column

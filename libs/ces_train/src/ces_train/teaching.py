"""The first part of a run: the policy is taught what each node costs in the end, before it plays for reward.

It plays games by itself, some hotter and some colder, and :mod:`ces_train.teacher` judges every node that it could have
chosen, so that it learns to act where its own mistakes lead (DAgger: Ross, Gordon, Bagnell, AISTATS 2011). It learns to
make the regret small that it may expect, with its entropy held up: ``p . regret / unit - H(p)`` is least for
``p ~ exp(-expected regret / unit)``. So scores have a unit, and a temperature has a meaning.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ces_core.policy.features import CONTEXT_WIDTH, NODE_WIDTH
from ces_core.topology import IntArray
from ces_train.drawing import draw, kinds
from ces_train.games import WON, Games, Most
from ces_train.network import PointerPolicy
from ces_train.settings import Settings, between
from ces_train.teacher import judge

Rows = NDArray[Any]
HALF = np.float16
"""Lessons are kept at half precision: a hundred thousand of them take 80 MB."""


class Lessons(NamedTuple):
    """N decisions and what they would have come to."""

    nodes: NDArray[Any]  # (N, C, features)
    context: NDArray[Any]  # (N, features)
    mask: NDArray[Any]  # (N, C)
    regret: NDArray[Any]  # (N, C)

    @staticmethod
    def none(candidates: int) -> Lessons:
        return Lessons(
            np.zeros((0, candidates, NODE_WIDTH), dtype=HALF),
            np.zeros((0, CONTEXT_WIDTH), dtype=HALF),
            np.zeros((0, candidates), dtype=np.bool_),
            np.zeros((0, candidates), dtype=HALF),
        )

    @staticmethod
    def together(parts: list[Lessons]) -> Lessons:
        return Lessons(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def expected_regret(scores: Tensor, mask: Tensor, regret: Tensor, unit: float) -> Tensor:
    """(B,) ``p . regret / unit - H(p)`` of the odds that ``scores`` (B, N) give."""
    logs = torch.log_softmax(scores, -1)
    return (logs.exp() * (regret / unit + logs) * mask).sum(-1)


class Pupil(Protocol):
    """Whose policy is taught."""

    settings: Settings
    policy: PointerPolicy
    optimizer: torch.optim.Optimizer
    random: IntArray
    rng: np.random.Generator

    def scores(self, nodes: Rows, context: Rows, mask: Rows) -> NDArray[np.float32]: ...


class School:
    """Teaches a policy round by round, from all that was judged so far."""

    def __init__(self, pupil: Pupil) -> None:
        self._pupil, self._settings = pupil, pupil.settings.teaching
        self._nodes = pupil.settings.nodes[1]
        self._games = Games(self._settings.instances, Most.complete(pupil.settings.tasks[1], self._nodes))
        self.forget()

    def forget(self) -> None:
        self.lessons = Lessons.none(self._nodes)

    def round(self, done: float) -> dict[str, float]:
        """Plays, has it judged, learns, and says how it went. ``done``: the share of the rounds that lies behind."""
        news, measured = self._play()
        self.lessons = Lessons.together([self.lessons, news])
        return measured | {"lesson-loss": self._learn(done), "lessons": float(len(self.lessons.mask))}

    def _play(self) -> tuple[Lessons, dict[str, float]]:
        pupil, settings, games = self._pupil, self._settings, self._games
        count = settings.instances
        whole = kinds(pupil.settings.odds, pupil.settings.nodes, pupil.settings.tasks)
        games.start(draw(pupil.random, whole, count), np.arange(count))
        heat = pupil.rng.choice(settings.heats, size=count)
        parts, shortfall = [], []
        with ThreadPoolExecutor(settings.threads) as threads:
            while games.playing.any():
                active = np.flatnonzero(games.playing)
                seats = games.seats
                regret, best = judge(games, active, settings.limit, settings.cut, threads)
                nodes, context, mask = seats.nodes[active], seats.context[active], seats.mask[active]
                scores = np.where(mask, pupil.scores(nodes, context, mask) / heat[active, None], -np.inf)
                known = np.isfinite(best)
                columns = nodes.astype(HALF), context.astype(HALF), mask, regret.astype(HALF)
                parts.append(Lessons(*(column[known] for column in columns)))
                first = regret[np.arange(len(active)), np.argmax(scores, axis=1)]
                shortfall.append(first[known])
                chosen = np.argmax(scores + pupil.rng.gumbel(size=mask.shape), axis=1)
                actions = np.zeros(count, dtype=np.int64)
                actions[active] = chosen
                games.step(actions)
        won = games.seats.status == WON
        measured = {
            "won": float(won.mean()),
            "composite": float(games.seats.worth[won].mean()) if won.any() else 0.0,
            "shortfall": float(np.concatenate(shortfall).mean()),
        }
        return Lessons.together(parts), measured

    def _learn(self, done: float) -> float:
        pupil, settings, lessons = self._pupil, self._settings, self.lessons
        for group in pupil.optimizer.param_groups:
            group["lr"] = between(settings.rate, done)
        unit = between(settings.unit, done)
        total = 0.0
        for _ in range(settings.steps):
            rows = pupil.rng.integers(len(lessons.mask), size=settings.batch)
            nodes, context, mask, regret = (torch.from_numpy(part[rows].astype(np.float32)) for part in lessons)
            scores, _ = pupil.policy(nodes, context, mask)
            loss = expected_regret(scores, mask, regret, unit).mean()
            pupil.optimizer.zero_grad()
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(pupil.policy.parameters(), settings.gradient)
            pupil.optimizer.step()
            total += loss.item()
        return total / settings.steps

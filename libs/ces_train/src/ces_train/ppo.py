"""Proximal policy optimisation (Schulman et al., 2017; thesis eqs 4-33..4-35) of the size-agnostic policy, in one file.

Where the settings say so, the first updates teach the policy what nodes cost (:mod:`ces_train.teaching`). Every other
update draws problems, plays each of them several times with the policy as it is, and learns from these games for a few
epochs. Only the end of a game says what it was worth; what counts is how much better it went than the other games
of the same problem, so that easy and hard problems teach alike. The same seed gives the same run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ces_core.policy.schema import schema_hash
from ces_core.topology import IntArray
from ces_train.drawing import Kinds, draw, kinds, new_random
from ces_train.games import WON, Games, Most
from ces_train.network import PointerPolicy
from ces_train.settings import Settings, between
from ces_train.teaching import Lessons, School

Rows = NDArray[Any]


@dataclass
class Batch:
    """The decisions of one update, N in all. ``game`` and ``turn`` say whose and which; turns count from 0."""

    nodes: Rows  # (N, C, features)
    context: Rows  # (N, features)
    mask: Rows  # (N, C)
    action: IntArray
    chance: Rows  # (N,) log probability
    value: Rows  # (N,)
    game: IntArray
    turn: IntArray


def lesson(settings: Settings, done: float) -> Kinds:
    """What is drawn when the share ``done`` of the updates lies behind: task counts and scarcity rise."""
    grown = min(done / settings.curriculum, 1.0) if settings.curriculum > 0 else 1.0
    least, most = settings.tasks
    ceiling = round(least + (most - least) * (0.4 + 0.6 * grown))
    names = list(settings.odds)
    odds = {name: settings.odds[name] * (1.0 if i == 0 else 0.2 + 0.8 * grown) for i, name in enumerate(names)}
    return kinds(odds, settings.nodes, (least, max(ceiling, least)))


class Trainer:
    """One run. :meth:`update` goes one step; :meth:`state` and :meth:`restore` take it up elsewhere."""

    def __init__(self, settings: Settings, seed: int) -> None:
        torch.manual_seed(seed)
        self.settings, self.seed = settings, seed
        self.policy = PointerPolicy(settings.width)
        self.optimizer: torch.optim.Optimizer = torch.optim.Adam(
            self.policy.parameters(), lr=settings.rate[0], eps=1e-5
        )
        self.random = new_random(seed)
        self.rng = np.random.default_rng(seed)
        self.updates = self.steps = 0
        self._school = School(self)
        self.entropy_weight = settings.entropy_weight[0]
        most = Most.complete(settings.tasks[1], settings.nodes[1])
        self._games = Games(settings.instances * settings.group, most)

    @property
    def done(self) -> float:
        """The share of the updates after the teaching that lies behind."""
        rounds = self.settings.teaching.rounds
        return (self.updates - rounds) / max(self.settings.updates - rounds, 1)

    def update(self) -> dict[str, float]:
        """Plays, learns, and says how it went."""
        settings, done = self.settings, self.done
        if done < 0.0:
            return self._be_taught()
        temperature = between(settings.temperature, done)
        for group in self.optimizer.param_groups:
            group["lr"] = between(settings.rate, done)
        pool = draw(self.random, lesson(settings, done), settings.instances)
        games = self._games
        games.start(pool, np.repeat(np.arange(settings.instances), settings.group))
        batch = self._play(temperature)
        won = games.seats.status == WON
        advantage, target = self._advantages(batch, self._among_group(games.seats.worth, won))
        news = self._learn(batch, advantage, target, temperature)
        _, least, most = settings.entropy_weight
        rising = news["entropy"] < between(settings.entropy, done)
        step = settings.entropy_step if rising else 1.0 / settings.entropy_step
        self.entropy_weight = min(max(self.entropy_weight * step, least), most)
        self.updates += 1
        self.steps += len(batch.action)
        worth = games.seats.worth[won]
        return news | {
            "won": float(won.mean()),
            "composite": float(worth.mean()) if len(worth) else 0.0,
            "steps": float(self.steps),
        }

    def _be_taught(self) -> dict[str, float]:
        rounds, before = self.settings.teaching.rounds, len(self._school.lessons.mask)
        measured = self._school.round(self.updates / rounds)
        self.updates += 1
        self.steps += len(self._school.lessons.mask) - before
        if self.updates == rounds:
            self._school.forget()
        return measured | {"steps": float(self.steps)}

    def _play(self, temperature: float) -> Batch:
        games, parts, turn = self._games, [], 0
        while games.playing.any():
            active = np.flatnonzero(games.playing)
            seats = games.seats
            nodes, context, mask = seats.nodes[active], seats.context[active], seats.mask[active]
            with torch.no_grad():
                scores, value = self.policy(
                    *(torch.from_numpy(part.astype(np.float32)) for part in (nodes, context, mask))
                )
            logits = torch.log_softmax(scores / temperature, -1).numpy()
            noise = self.rng.gumbel(size=logits.shape)
            chosen = np.argmax(np.where(mask, logits + noise, -np.inf), axis=1)
            actions = np.zeros(len(seats.status), dtype=np.int64)
            actions[active] = chosen
            games.step(actions)
            chance = logits[np.arange(len(active)), chosen]
            turns = np.full(len(active), turn)
            parts.append((nodes, context, mask, chosen, chance, value.numpy(), active, turns))
            turn += 1
        return Batch(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _among_group(self, worth: Rows, won: Rows) -> Rows:
        """(games,) how much better each went than its group, in deviations."""
        settings = self.settings
        worth, won = worth.reshape(-1, settings.group), won.reshape(-1, settings.group)
        worst = np.where(won, worth, np.inf).min(axis=1, keepdims=True)
        worst = np.where(np.isfinite(worst), worst, settings.loss_below_worst)
        worth = np.where(won, worth, worst - settings.loss_below_worst)
        spread = worth.std(axis=1, keepdims=True) + settings.spread_floor
        normal: Rows = ((worth - worth.mean(axis=1, keepdims=True)) / spread).reshape(-1).astype(np.float32)
        return normal

    def _advantages(self, batch: Batch, final: Rows) -> tuple[Rows, Rows]:
        """Generalised advantage estimates (eqs 4-34, 4-35) and what values should have been."""
        settings = self.settings
        advantage = np.zeros(len(batch.action), dtype=np.float32)
        games = len(final)
        later_value = np.zeros(games, dtype=np.float32)
        later_advantage = np.zeros(games, dtype=np.float32)
        ended = np.zeros(games, dtype=np.bool_)
        for turn in range(int(batch.turn.max()), -1, -1):
            rows = np.flatnonzero(batch.turn == turn)
            game = batch.game[rows]
            reward = np.where(ended[game], 0.0, final[game])
            delta = reward + settings.discount * later_value[game] - batch.value[rows]
            advantage[rows] = delta + settings.discount * settings.trace * later_advantage[game]
            later_value[game], later_advantage[game], ended[game] = batch.value[rows], advantage[rows], True
        return advantage, advantage + batch.value

    def _learn(self, batch: Batch, advantage: Rows, target: Rows, temperature: float) -> dict[str, float]:
        settings = self.settings
        columns = (batch.nodes, batch.context, batch.mask.astype(np.float32), batch.action, batch.chance, batch.value)
        nodes, context, mask, action, chance, value = (torch.from_numpy(column) for column in columns)
        goal = torch.from_numpy(target)
        gain = torch.from_numpy((advantage - advantage.mean()) / (advantage.std() + 1e-8))
        sums = np.zeros(5)
        rounds = 0
        for _ in range(settings.epochs):
            order = self.rng.permutation(len(batch.action))
            for first in range(0, len(order), settings.minibatch):
                rows = torch.from_numpy(order[first : first + settings.minibatch])
                scores, now = self.policy(nodes[rows], context[rows], mask[rows])
                logits = torch.log_softmax(scores / temperature, -1)
                ratio = torch.exp(logits.gather(1, action[rows, None]).squeeze(1) - chance[rows])
                better = torch.min(
                    ratio * gain[rows], ratio.clamp(1.0 - settings.clip, 1.0 + settings.clip) * gain[rows]
                ).mean()
                entropy = -(logits.exp() * logits * mask[rows]).sum(-1).mean()
                worse = self._value_loss(now, value[rows], goal[rows])
                loss = settings.value_weight * worse - better - self.entropy_weight * entropy
                self.optimizer.zero_grad()
                torch.autograd.backward(loss)
                nn.utils.clip_grad_norm_(self.policy.parameters(), settings.gradient)
                self.optimizer.step()
                with torch.no_grad():
                    moved = (ratio - 1.0 - torch.log(ratio)).mean()
                    clipped = ((ratio - 1.0).abs() > settings.clip).float().mean()
                sums += [part.item() for part in (better, worse, entropy, moved, clipped)]
                rounds += 1
        names = ("gain", "value-loss", "entropy", "divergence", "clipped")
        return dict(zip(names, (sums / rounds).tolist(), strict=True))

    def _value_loss(self, now: Tensor, before: Tensor, goal: Tensor) -> Tensor:
        near = before + (now - before).clamp(-self.settings.clip, self.settings.clip)
        return 0.5 * torch.max((now - goal) ** 2, (near - goal) ** 2).mean()

    def scores(self, nodes: Rows, context: Rows, mask: Rows) -> NDArray[np.float32]:
        """As :data:`ces_train.evaluation.Scorer`."""
        with torch.no_grad():
            inputs = (torch.from_numpy(part.astype(np.float32)) for part in (nodes, context, mask))
            found: NDArray[np.float32] = self.policy(*inputs)[0].numpy()
        return found

    def state(self) -> dict[str, Any]:
        """Everything that the next update depends on."""
        return {
            "schema": schema_hash(),
            "settings": asdict(self.settings),
            "seed": self.seed,
            "policy": self.policy.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": self.random.tolist(),
            "rng": self.rng.bit_generator.state,
            "updates": self.updates,
            "steps": self.steps,
            "entropy_weight": self.entropy_weight,
            "lessons": [torch.from_numpy(part) for part in self._school.lessons],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Raises ValueError for the state of another kind of run."""
        if state["schema"] != schema_hash():
            raise ValueError("the checkpoint was made with other features")
        if state["settings"] != asdict(self.settings) or state["seed"] != self.seed:
            raise ValueError("the checkpoint was made with other settings or another seed")
        self.policy.load_state_dict(state["policy"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.random[:] = state["random"]
        self.rng.bit_generator.state = state["rng"]
        self.updates, self.steps = state["updates"], state["steps"]
        self.entropy_weight = state["entropy_weight"]
        self._school.lessons = Lessons(*(part.numpy() for part in state["lessons"]))


class Trainable(Protocol):
    """What can be trained update by update, and kept in a checkpoint."""

    seed: int
    updates: int
    steps: int

    @property
    def settings(self) -> Any: ...
    @property
    def policy(self) -> nn.Module: ...
    def update(self) -> dict[str, float]: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...


def run(trainer: Trainable, checkpoint: Path, deadline: float | None, each: Callable[[dict[str, float]], None]) -> None:
    """Updates until the run is complete or ``deadline`` (of ``time.monotonic``) has passed; ``each`` hears of every
    update. The checkpoint is written whole or not at all."""
    while trainer.updates < trainer.settings.updates and (deadline is None or time.monotonic() < deadline):
        each(trainer.update())
        if trainer.updates % trainer.settings.evaluate_every == 0:
            save(trainer, checkpoint)
    save(trainer, checkpoint)


def save(trainer: Trainable, checkpoint: Path) -> None:
    part = checkpoint.with_suffix(".part")
    torch.save(trainer.state(), part)
    part.replace(checkpoint)

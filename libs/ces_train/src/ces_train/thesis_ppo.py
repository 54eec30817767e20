"""Proximal policy optimisation as the thesis has it (4.2.4, 4.2.5), in one file: its network in its two phases.

An update draws problems, plays each once with the policy as it is, and learns from these games for a few epochs.
Rewards come with every step: R_total = R_step + lambda * R_heuristic + R_final (eq. 4-25). The same
seed gives the same run.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ces_core.policy.thesis_schema import schema_hash
from ces_core.topology import IntArray
from ces_train.drawing import Kinds, draw, kinds, new_random
from ces_train.games import WON, Most
from ces_train.thesis_games import ThesisGames
from ces_train.thesis_network import ThesisPolicy
from ces_train.thesis_settings import ThesisSettings

Rows = NDArray[Any]


@dataclass
class Batch:
    """The decisions of one update, N in all. ``game`` and ``turn`` say whose and which; turns count from 0."""

    state: Rows  # (N, WIDTH)
    phase: IntArray  # (N,)
    mask: Rows  # (N, ACTIONS)
    action: IntArray
    chance: Rows  # (N,) log probability
    value: Rows  # (N,)
    game: IntArray
    turn: IntArray
    reward: Rows  # (N,)


def between(pair: tuple[float, float], done: float) -> float:
    """What a pair of :class:`ThesisSettings` has come to."""
    return pair[0] + (pair[1] - pair[0]) * min(max(done, 0.0), 1.0)


def lesson(settings: ThesisSettings, done: float) -> Kinds:
    """What is drawn when the share ``done`` of the updates lies behind: task counts and scarcity rise."""
    grown = min(done / settings.curriculum, 1.0) if settings.curriculum > 0 else 1.0
    least, most = settings.tasks
    first, *others = settings.odds
    odds = {first: settings.odds[first]} | {name: settings.odds[name] * grown for name in others}
    return kinds(odds, settings.nodes, (least, round(least + (most - least) * grown)))


class ThesisTrainer:
    """One run. :meth:`update` goes one step; :meth:`state` and :meth:`restore` take it up elsewhere."""

    def __init__(self, settings: ThesisSettings, seed: int) -> None:
        torch.manual_seed(seed)
        self.settings, self.seed = settings, seed
        self.policy = ThesisPolicy(settings.width, bandwidth=settings.bandwidth)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=settings.rate[0], eps=1e-5)
        self.random = new_random(seed)
        self.rng = np.random.default_rng(seed)
        self.updates = self.steps = 0
        most = Most.complete(settings.tasks[1], settings.nodes[1])
        self._games = ThesisGames(settings.games, most, bandwidth=settings.bandwidth)

    def update(self) -> dict[str, float]:
        """Plays, learns, and says how it went."""
        settings, games = self.settings, self._games
        done = self.updates / settings.updates
        temperature = between(settings.temperature, done)
        for group in self.optimizer.param_groups:
            group["lr"] = between(settings.rate, done)
        pool = draw(self.random, lesson(settings, done), settings.games)
        games.start(pool, np.arange(settings.games))
        batch = self._play(temperature, between(settings.heuristic, done))
        advantage, target = self._advantages(batch)
        news = self._learn(batch, advantage, target, temperature, between(settings.entropy_weight, done))
        self.updates += 1
        self.steps += len(batch.action)
        won = games.seats.status == WON
        composite = float(games.worth[won].mean()) if won.any() else 0.0
        return news | {"won": float(won.mean()), "composite": composite, "steps": float(self.steps)}

    def _play(self, temperature: float, heuristic: float) -> Batch:
        games, parts, turn = self._games, [], 0
        seats, settings = games.seats, self.settings
        weights = np.array([settings.base_weight, *(heuristic * eta for eta in settings.heuristic_weights)])
        even, satisfied, used = settings.final_weights
        while games.playing.any():
            active = np.flatnonzero(games.playing)
            state, phase, mask = seats.state[active], seats.phase[active], seats.mask[active]
            with torch.no_grad():
                scores, value = self.policy(*(torch.from_numpy(part) for part in (state, phase, mask)))
                logits = torch.log_softmax(scores / temperature, -1).numpy()
            noise = self.rng.gumbel(size=logits.shape)
            chosen = np.argmax(np.where(mask, logits + noise, -np.inf), axis=1)
            actions = np.zeros(len(seats.status), dtype=np.int64)
            actions[active] = chosen
            games.step(actions)
            imbalance, satisfaction, use = seats.outcome[active].T
            final = even * (1.0 - imbalance) + satisfied * satisfaction + used * use
            reward = seats.terms[active] @ weights + np.where(seats.status[active] == WON, final, 0.0)
            chance = logits[np.arange(len(active)), chosen]
            turns = np.full(len(active), turn)
            parts.append((state, phase, mask, chosen, chance, value.numpy(), active, turns, reward.astype(np.float32)))
            turn += 1
        return Batch(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _advantages(self, batch: Batch) -> tuple[Rows, Rows]:
        """Generalised advantage estimates (eqs 4-34, 4-35) and what values should have been."""
        settings = self.settings
        advantage = np.zeros(len(batch.action), dtype=np.float32)
        later_value, later_advantage = np.zeros((2, int(batch.game.max()) + 1), dtype=np.float32)
        for turn in range(int(batch.turn.max()), -1, -1):
            rows = np.flatnonzero(batch.turn == turn)
            game = batch.game[rows]
            delta = batch.reward[rows] + settings.discount * later_value[game] - batch.value[rows]
            advantage[rows] = delta + settings.discount * settings.trace * later_advantage[game]
            later_value[game], later_advantage[game] = batch.value[rows], advantage[rows]
        return advantage, advantage + batch.value

    def _learn(
        self, batch: Batch, advantage: Rows, target: Rows, temperature: float, entropy_weight: float
    ) -> dict[str, float]:
        settings = self.settings
        columns = (batch.state, batch.phase, batch.mask, batch.action, batch.chance, batch.value)
        state, phase, mask, action, chance, value = (torch.from_numpy(column) for column in columns)
        goal = torch.from_numpy(target)
        gain = torch.from_numpy((advantage - advantage.mean()) / (advantage.std() + 1e-8))
        sums = np.zeros(5)
        rounds = 0
        for _ in range(settings.epochs):
            order = self.rng.permutation(len(batch.action))
            for first in range(0, len(order), settings.minibatch):
                rows = torch.from_numpy(order[first : first + settings.minibatch])
                scores, now = self.policy(state[rows], phase[rows], mask[rows])
                logits = torch.log_softmax(scores / temperature, -1)
                ratio = torch.exp(logits.gather(1, action[rows, None]).squeeze(1) - chance[rows])
                near = ratio.clamp(1.0 - settings.clip, 1.0 + settings.clip)
                better = torch.min(ratio * gain[rows], near * gain[rows]).mean()
                entropy = -(logits.exp() * logits * mask[rows]).sum(-1).mean()
                worse = self._value_loss(now, value[rows], goal[rows])
                loss = settings.value_weight * worse - better - entropy_weight * entropy
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
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Raises ValueError for the state of another kind of run."""
        if state["schema"] != schema_hash():
            raise ValueError("the checkpoint was made with another state")
        if state["settings"] != asdict(self.settings) or state["seed"] != self.seed:
            raise ValueError("the checkpoint was made with other settings or another seed")
        self.policy.load_state_dict(state["policy"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.random[:] = state["random"]
        self.rng.bit_generator.state = state["rng"]
        self.updates, self.steps = state["updates"], state["steps"]

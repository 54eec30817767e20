"""Proximal policy optimisation with masked actions (Schulman et al., 2017; thesis eqs 4-33..4-35), in one file.

An update draws problems, plays episodes with the policy as it is, and learns from them for a few epochs. With ``group``
above 1 each problem is played by several slots, and the only reward is how much better an episode went than the others
of its problem, in deviations, so that easy and hard problems teach alike. The same seed gives the same run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ces_core.model.topology import IntArray
from ces_rl.algorithms.base import Length
from ces_rl.algorithms.policy_run import Pair, PolicyRun
from ces_rl.envs.base import Environment
from ces_rl.needs import torch
from ces_rl.schedules import linear

Rows = NDArray[Any]


@dataclass(frozen=True)
class PpoSettings(Length):
    """Pairs are (at first, at last) and change linearly over the run."""

    problems: Annotated[int, Field(ge=1, description="problems of one update")] = 256
    group: Annotated[int, Field(ge=1, description="slots that play each problem; above 1, rewards are relative")] = 1
    group_std_floor: Annotated[
        float, Field(gt=0, description="added to a group's deviation: where episodes end alike, differences are noise")
    ] = 0.004
    failure_margin: Annotated[
        float, Field(ge=0, description="how far below the worst of its group a failed episode counts")
    ] = 0.1
    gamma: Annotated[float, Field(ge=0, le=1, description="discount")] = 0.99
    gae_lambda: Annotated[float, Field(ge=0, le=1, description="lambda of the advantage estimate (eq. 4-34)")] = 0.95
    clip_coef: Annotated[float, Field(gt=0, description="how far a probability ratio, or a value, may move")] = 0.2
    vf_coef: Annotated[float, Field(ge=0, description="weight of the value loss")] = 0.5
    ent_coef: Annotated[Pair, Field(description="weight of the entropy; with ent_target it begins with the first")] = (
        0.01,
        0.0,
    )
    ent_target: Annotated[
        Pair | None,
        Field(description="entropy to hold, in nats, by letting ent_coef follow; or none"),
    ] = None
    ent_coef_range: Annotated[Pair, Field(description="least and most that ent_coef may follow to")] = (1e-3, 5.0)
    ent_coef_step: Annotated[float, Field(gt=1, description="factor by which ent_coef follows, each update")] = 1.1
    temperature: Annotated[Pair, Field(description="scores are divided by it before actions are drawn")] = (1.0, 1.0)
    learning_rate: Annotated[Pair, Field(description="of Adam")] = (1e-3, 1e-5)
    update_epochs: Annotated[int, Field(ge=1, description="times that an update goes over its decisions")] = 3
    minibatch_size: Annotated[int, Field(ge=1, description="decisions of a gradient step")] = 2048
    max_grad_norm: Annotated[float, Field(gt=0, description="the largest norm of a gradient")] = 0.5
    start_from: Annotated[
        str, Field(description="folder of a run whose policy, optimiser and generators this run begins with")
    ] = ""


@dataclass
class Batch:
    """The N decisions of one update. ``slot`` and ``turn`` say which episode's and which of it, from 0."""

    observations: tuple[Rows, ...]  # (N, ...) each
    mask: Rows  # (N, actions)
    actions: IntArray  # (N, ...)
    log_prob: Rows  # (N,), or (N, A) for A agents that act at once
    values: Rows  # likewise
    rewards: Rows  # likewise
    slot: IntArray
    turn: IntArray


class Ppo(PolicyRun):
    """One run of PPO."""

    Settings = PpoSettings
    use_instead = "it has no decisions to draw, only numbers that are judged as a whole: use cem or es"
    settings: PpoSettings

    def __init__(self, env: Environment, settings: PpoSettings, seed: int) -> None:
        super().__init__(env, settings, seed, settings.problems * settings.group)
        self.ent_coef = settings.ent_coef[0]
        if settings.start_from:
            self._start_from(Path(settings.start_from))

    def update(self) -> dict[str, float]:
        """Plays, learns, and says how it went."""
        settings = self.settings
        self.begin_update(settings.problems, settings.group)
        vector, progress = self.vector, self.updates / settings.updates
        temperature = linear(settings.temperature, progress)
        self.set_learning_rate(linear(settings.learning_rate, progress))
        if settings.ent_target is None:
            self.ent_coef = linear(settings.ent_coef, progress)
        vector.reset(progress, settings.group)
        batch = self.rollout(temperature)
        if settings.group > 1:
            batch.rewards = at_last_turn(batch, self.group_relative(vector.score, vector.success))
        advantages, returns = self.advantages(batch)
        decisions = int(self.gang.total(len(batch.actions)))
        measured = self._learn(batch, advantages, returns, temperature, decisions)
        if settings.ent_target is not None:
            least, most = settings.ent_coef_range
            low = measured["entropy"] < linear(settings.ent_target, progress)
            factor = settings.ent_coef_step if low else 1.0 / settings.ent_coef_step
            self.ent_coef = min(max(self.ent_coef * factor, least), most)
        self.updates += 1
        self.steps += decisions
        return measured | self.outcome() | {"steps": float(self.steps)}

    def rollout(self, temperature: float) -> Batch:
        """Plays all slots to the end, actions drawn by the policy's scores."""
        vector, parts, turn = self.vector, [], 0
        while vector.running.any():
            rows = np.flatnonzero(vector.running)
            observations, mask = vector.observe(rows), vector.mask[rows]
            chosen, log_prob, values = self.act(rows, observations, mask, temperature)
            actions = np.zeros((vector.slots, *chosen.shape[1:]), dtype=np.int64)
            actions[rows] = chosen
            rewards = vector.step(actions)[rows]
            turns = np.full(len(rows), turn)
            parts.append((*observations, mask, chosen, log_prob, values, rewards, rows, turns))
            turn += 1
        if not parts:
            raise ValueError("no episode has a first action: every problem fails at once")
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        return Batch(tuple(columns[:-7]), *columns[-7:])

    def act(
        self, rows: IntArray, observations: tuple[Rows, ...], mask: Rows, temperature: float
    ) -> tuple[IntArray, Rows, Rows]:
        """Draws actions for the slots ``rows``. Returns them, the logarithms of their probabilities, and the values."""
        with torch.no_grad():
            scores, values = self.policy(*(torch.from_numpy(part) for part in observations))
            log_probs = torch.log_softmax(scores / temperature, -1).numpy()
        noise = self.rng.gumbel(size=log_probs.shape)
        chosen = np.argmax(np.where(mask, log_probs + noise, -np.inf), axis=1)
        return chosen, log_probs[np.arange(len(rows)), chosen], values.numpy()

    def judge(
        self, observations: tuple[torch.Tensor, ...], mask: torch.Tensor, actions: torch.Tensor, temperature: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """What the policy now thinks of ``actions``: the logarithms of their probabilities, the entropies of what
        could have been drawn, the values, and a loss beside those of PPO, if any."""
        scores, values = self.policy(*observations)
        log_probs = torch.log_softmax(scores / temperature, -1)
        log_prob = log_probs.gather(1, actions[:, None]).squeeze(1)
        return log_prob, -(log_probs.exp() * log_probs * mask).sum(-1), values, None

    def mean(self, numbers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Over all decisions, given their ``mask``."""
        return numbers.mean()

    def normalised(self, advantages: Rows, mask: Rows) -> Rows:
        """With mean 0 and deviation 1 over all decisions."""
        mean, deviation = self.gang.moments(advantages)
        normal: Rows = (advantages - mean) / (deviation + 1e-8)
        return normal

    def group_relative(self, score: Rows, success: Rows) -> Rows:
        """(slots,) how much better each episode went than its group, in deviations."""
        settings = self.settings
        score, success = score.reshape(-1, settings.group), success.reshape(-1, settings.group)
        worst = np.where(success, score, np.inf).min(axis=1, keepdims=True)
        worst = np.where(np.isfinite(worst), worst, settings.failure_margin)
        score = np.where(success, score, worst - settings.failure_margin)
        deviation = score.std(axis=1, keepdims=True) + settings.group_std_floor
        relative: Rows = ((score - score.mean(axis=1, keepdims=True)) / deviation).reshape(-1).astype(np.float32)
        return relative

    def advantages(self, batch: Batch) -> tuple[Rows, Rows]:
        """Generalised advantage estimates (N,) (eqs 4-34, 4-35) and the returns (N,) that values should have been."""
        settings = self.settings
        advantages = np.zeros(batch.values.shape, dtype=np.float32)
        slots = int(batch.slot.max()) + 1
        next_value, next_advantage = np.zeros((2, slots, *batch.values.shape[1:]), dtype=np.float32)
        for turn in range(int(batch.turn.max()), -1, -1):
            rows = np.flatnonzero(batch.turn == turn)
            slot = batch.slot[rows]
            delta = batch.rewards[rows] + settings.gamma * next_value[slot] - batch.values[rows]
            advantages[rows] = delta + settings.gamma * settings.gae_lambda * next_advantage[slot]
            next_value[slot], next_advantage[slot] = batch.values[rows], advantages[rows]
        return advantages, advantages + batch.values

    def _learn(
        self, batch: Batch, advantages: Rows, returns: Rows, temperature: float, decisions: int
    ) -> dict[str, float]:
        settings, clip = self.settings, self.settings.clip_coef
        advantages = self.normalised(advantages, batch.mask)
        observations = [torch.from_numpy(column) for column in batch.observations]
        columns = (batch.mask, batch.actions, batch.log_prob, batch.values, advantages, returns)
        b_mask, b_actions, b_log_prob, b_values, b_advantages, b_returns = map(torch.from_numpy, columns)
        sums, count = np.zeros(5), 0
        for _ in range(settings.update_epochs):
            order = self.rng.permutation(len(batch.actions))
            for chosen in self._minibatches(order, decisions):
                if not len(chosen):
                    self.descend(None, 0.0)
                    continue
                rows = torch.from_numpy(chosen)
                mask = b_mask[rows]
                log_prob, entropies, values, other = self.judge(
                    tuple(column[rows] for column in observations), mask, b_actions[rows], temperature
                )
                ratio = torch.exp(log_prob - b_log_prob[rows])
                clipped = ratio.clamp(1.0 - clip, 1.0 + clip)
                gains = torch.min(ratio * b_advantages[rows], clipped * b_advantages[rows])
                policy_loss = -self.mean(gains, mask)
                near = b_values[rows] + (values - b_values[rows]).clamp(-clip, clip)
                worse = torch.max((values - b_returns[rows]) ** 2, (near - b_returns[rows]) ** 2)
                value_loss = 0.5 * worse.mean()
                entropy = self.mean(entropies, mask)
                loss = settings.vf_coef * value_loss + policy_loss - self.ent_coef * entropy
                self.descend(loss if other is None else loss + other, len(chosen))
                with torch.no_grad():
                    approx_kl = self.mean(ratio - 1.0 - torch.log(ratio), mask)
                    clip_fraction = self.mean(((ratio - 1.0).abs() > clip).float(), mask)
                sums += [part.item() for part in (policy_loss, value_loss, entropy, approx_kl, clip_fraction)]
                count += 1
        names = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction")
        return self.gang.mean(dict(zip(names, (sums / max(count, 1)).tolist(), strict=True)), len(batch.actions))

    def _minibatches(self, order: IntArray, decisions: int) -> list[IntArray]:
        """This rank's decisions, divided into gradient steps; all ranks take the same number of steps. ``decisions``:
        how many all ranks have."""
        size, gang = self.settings.minibatch_size, self.gang
        if gang.size == 1:
            return [order[first : first + size] for first in range(0, len(order), size)]
        return np.array_split(order, min(math.ceil(decisions / size), max(gang.gathered(len(order)))))

    def state(self) -> dict[str, Any]:
        return super().state() | {"ent_coef": self.ent_coef}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.ent_coef = state["ent_coef"]

    def _start_from(self, folder: Path) -> None:
        file = folder / "checkpoint.pt"
        if not file.exists():
            raise ValueError(f"start_from: {folder} holds no checkpoint.pt of a policy")
        state = torch.load(file, weights_only=True)
        if state["schema"] != self.env.schema:
            raise ValueError(f"start_from: the policy in {folder} sees other features")
        self.begin_with(state)


def at_last_turn(batch: Batch, finals: Rows) -> Rows:
    """(N,) rewards: ``finals`` (slots,) with each episode's last decision, else 0."""
    rewards = np.zeros(len(batch.actions), dtype=np.float32)
    last = np.full(len(finals), -1)
    np.maximum.at(last, batch.slot, np.arange(len(batch.slot)))
    there = last >= 0
    rewards[last[there]] = finals[there]
    return rewards

"""Deep deterministic policy gradient (Lillicrap et al., arXiv 1509.02971) for discrete actions, in one file.

An update plays an episode in each slot. Every step goes into a pool, and after every step actor and critic learn from a
batch drawn from it. A share of the batch may come from a second pool, of episodes that an adviser has played before:
the two pools of EADE-DDPG (:mod:`ces_rl.algorithms.eade_ddpg`). The same seed gives the same run.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from ces_core.model.topology import IntArray
from ces_rl.algorithms.base import Length, RefusedError, SeededRun
from ces_rl.algorithms.choices import CHOICES, Choice, Rows
from ces_rl.algorithms.policy_run import Pair
from ces_rl.algorithms.pools import Pool, Steps, together
from ces_rl.envs.base import AdvisedVector, Environment, PolicyEnv, VectorEnv
from ces_rl.needs import torch
from ces_rl.schedules import linear


@dataclass(frozen=True)
class DdpgSettings(Length):
    """Pairs are (at first, at last) and change linearly over the run."""

    updates: Annotated[int, Field(ge=1, description="episodes of each slot")] = 1000
    evaluate_every: Annotated[int, Field(ge=1, description="updates between evaluations")] = 50
    choice: Annotated[
        str, Field(pattern=f"^({'|'.join(CHOICES)})$", description="a score for each action, or one number in bins")
    ] = "onehot"
    slots: Annotated[
        int, Field(ge=1, description="episodes side by side; a batch is learned after each of their steps")
    ] = 1
    batch: Annotated[int, Field(ge=2, description="steps of a gradient step")] = 256
    pool: Annotated[int, Field(ge=2, description="newest steps that are kept")] = 100_000
    expert_share: Annotated[float, Field(ge=0, le=1, description="of a batch, from what the adviser has played")] = 0.0
    expert_episodes: Annotated[int, Field(ge=1, description="that the adviser plays before")] = 20
    gamma: Annotated[float, Field(ge=0, le=1, description="discount")] = 0.99
    phi: Annotated[float, Field(gt=0, le=1, description="how far target networks follow in a step (eqs 24, 25)")] = (
        0.005
    )
    actor_rate: Annotated[float, Field(gt=0, description="learning rate of Adam")] = 1e-4
    critic_rate: Annotated[float, Field(gt=0, description="learning rate of Adam")] = 1e-3
    noise: Annotated[Pair, Field(description="of exploration: a deviation for one number, else a share of actions")] = (
        0.2,
        0.05,
    )


class Ddpg(SeededRun):
    """One run of DDPG."""

    Settings = DdpgSettings
    needs_torch: ClassVar[bool] = True
    critics: ClassVar[int] = 1
    settings: DdpgSettings

    def __init__(self, env: Environment, settings: DdpgSettings, seed: int) -> None:
        if not isinstance(env, PolicyEnv) or env.team:
            raise RefusedError("it chooses one action at a time")
        super().__init__(env, settings, seed)
        self.env: PolicyEnv = env
        self.rng = np.random.default_rng(seed)
        self.vector: VectorEnv = env.vector(settings.slots, seed)
        first = env.vector(1, seed)
        first.reset(0.0)
        self.choice: Choice = CHOICES[settings.choice](first.mask.shape[1])
        torch.manual_seed(seed)
        self.networks: Any = self.built()
        self.targets: Any = copy.deepcopy(self.networks)
        self.optimizers = {
            "actor": torch.optim.Adam(self.networks["actor"].parameters(), lr=settings.actor_rate),
            "critics": torch.optim.Adam(self.networks["critics"].parameters(), lr=settings.critic_rate),
        }
        self.pool, self.expert = Pool(settings.pool), Pool(settings.pool)
        if settings.expert_share:
            self._ask_expert()

    def built(self) -> torch.nn.ModuleDict:
        """The actor and its critics. Raises RefusedError."""
        made = [self.env.networks(self.choice.width) for _ in range(self.critics)]
        if None in made:
            raise RefusedError("it has no network that judges an action")
        actor, critics = made[0][0], [critic for _, critic in made]  # type: ignore[index, misc]
        return torch.nn.ModuleDict({"actor": actor, "critics": torch.nn.ModuleList(critics)})

    @property
    def solution(self) -> torch.nn.Module:
        return deciding(self.networks["actor"], self.choice)

    def update(self) -> dict[str, float]:
        """Plays, learns, and says how it went."""
        settings, vector = self.settings, self.vector
        progress = self.updates / settings.updates
        vector.reset(progress)
        returns, losses = np.zeros(vector.slots), dict[str, list[float]]()
        while vector.running.any():
            rows = np.flatnonzero(vector.running)
            chosen = self.act(vector.observe(rows), vector.mask[rows], linear(settings.noise, progress))
            steps = self._step(vector, rows, chosen)
            self.pool.add(steps)
            returns[rows] += steps.reward
            if self.pool.filled >= settings.batch or settings.expert_share == 1:
                for name, value in self.learn(self._batch()).items():
                    losses.setdefault(name, []).append(value)
            self.steps += len(rows)
        self.updates += 1
        told = {name: float(np.mean(values)) for name, values in losses.items()}
        return told | {"return": float(returns.mean()), "score": float(vector.score.mean()), "steps": float(self.steps)}

    def act(self, observation: tuple[Rows, ...], mask: Rows, noise: float) -> IntArray:
        with torch.no_grad():
            raw = self.networks["actor"](*map(torch.from_numpy, observation)).numpy()
        return self.choice.explored(raw, mask, noise, self.rng)

    def learn(self, batch: Steps) -> dict[str, float]:
        """A gradient step of the critics (eqs 20 to 23), then of the actor, which ascends on what they say (eq 19)."""
        goal = self.goal(batch)
        critic_loss = torch.stack(
            [
                torch.nn.functional.mse_loss(said, goal)
                for said in self.judged(self.networks, batch.observation, batch.action)
            ]
        ).sum()
        self._descend("critics", critic_loss)
        return {"critic_loss": critic_loss.item(), **self.learn_actor(batch)}

    def learn_actor(self, batch: Steps) -> dict[str, float]:
        raw = self.networks["actor"](*batch.observation)
        gumbel = torch.from_numpy(self.rng.gumbel(size=tuple(batch.mask.shape)).astype(np.float32))
        action = self.choice.differentiable(raw, batch.mask, gumbel)
        loss = -self.networks["critics"][0](*batch.observation, action).mean()
        self._descend("actor", loss)
        self.follow()
        return {"actor_loss": loss.item()}

    def goal(self, batch: Steps) -> torch.Tensor:
        """(N,) what a step is worth: its reward, and what target networks make of what follows (eq 21)."""
        with torch.no_grad():
            action = self.later_action(batch)
            worth = torch.stack(self.judged(self.targets, batch.later, action)).min(dim=0).values
            goal: torch.Tensor = batch.reward + self.settings.gamma * (1 - batch.over) * worth
        return goal

    def later_action(self, batch: Steps) -> torch.Tensor:
        return self.choice.target(self.targets["actor"](*batch.later), batch.later_mask)

    def judged(self, networks: Any, observation: tuple[torch.Tensor, ...], action: torch.Tensor) -> list[torch.Tensor]:
        """What each critic says, (N,)."""
        return [critic(*observation, action).squeeze(1) for critic in networks["critics"]]

    def follow(self) -> None:
        """Target networks come closer."""
        with torch.no_grad():
            for target, source in zip(self.targets.parameters(), self.networks.parameters(), strict=True):
                target.lerp_(source, self.settings.phi)

    def _descend(self, name: str, loss: torch.Tensor) -> None:
        for optimizer in self.optimizers.values():
            optimizer.zero_grad()
        torch.autograd.backward(loss)
        self.optimizers[name].step()

    def _step(self, vector: VectorEnv, rows: IntArray, chosen: IntArray) -> Steps:
        observation, mask = vector.observe(rows), vector.mask[rows]
        actions = np.zeros(vector.slots, dtype=np.int64)
        actions[rows] = chosen
        reward = vector.step(actions)[rows]
        over = (~vector.running[rows]).astype(np.float32)
        action = self.choice.vector(chosen)
        return Steps(observation, mask, action, reward, vector.observe(rows), vector.mask[rows], over)

    def _batch(self) -> Steps:
        from_expert = round(self.settings.batch * self.settings.expert_share)
        counts = ((self.expert, from_expert), (self.pool, self.settings.batch - from_expert))
        return together([pool.draw(self.rng, count) for pool, count in counts if count])

    def _ask_expert(self) -> None:
        vector = self.env.vector(self.settings.expert_episodes, self.seed + 1)
        if not isinstance(vector, AdvisedVector):
            raise RefusedError("it has no adviser: expert_share must be 0")
        vector.reset(0.0)
        while vector.running.any():
            rows = np.flatnonzero(vector.running)
            self.expert.add(self._step(vector, rows, vector.advice(rows)))

    def state(self) -> dict[str, Any]:
        return super().state() | {
            "networks": self.networks.state_dict(),
            "targets": self.targets.state_dict(),
            "optimizers": {name: each.state_dict() for name, each in self.optimizers.items()},
            "pool": self.pool.state(),
            "problems": self.vector.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.networks.load_state_dict(state["networks"])
        self.targets.load_state_dict(state["targets"])
        for name, each in self.optimizers.items():
            each.load_state_dict(state["optimizers"][name])
        self.pool.restore(state["pool"])
        self.vector.restore(state["problems"])


def deciding(actor: torch.nn.Module, choice: Choice) -> torch.nn.Module:
    """What an actor's numbers mean: (B, actions) scores, and (B,) values, which it has none of."""

    class Deciding(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.actor = actor

        def forward(self, *observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            scores = choice.scores(self.actor(*observation))
            return scores, scores[:, 0] * 0

    return Deciding()

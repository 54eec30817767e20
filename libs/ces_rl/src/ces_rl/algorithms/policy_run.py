"""What algorithms that train a policy's network by gradients share (ppo, imitation): network, optimiser and generators,
and their state."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ces_rl.algorithms.base import RefusedError, SeededRun
from ces_rl.envs.base import Environment, PolicyEnv, VectorEnv
from ces_rl.needs import torch
from ces_sim.rounds import derived_seed

Pair = tuple[float, float]
"""A setting in the first update and in the last; it changes linearly over the run."""


TEAM = "several agents act in it at once: use mappo"
ONE_AGENT = "one agent acts in it: use ppo"


class PolicyRun(SeededRun):
    """The part of a run that does not depend on how the network learns."""

    needs_torch: ClassVar[bool] = True
    use_instead: ClassVar[str]
    """What is said of an environment without decisions."""
    team: ClassVar[bool] = False
    """Whether it learns what several agents do at once, or what one does."""

    def __init__(self, env: Environment, settings: Any, seed: int, episodes: int) -> None:
        """``episodes`` are played side by side. Raises RefusedError."""
        if not isinstance(env, PolicyEnv):
            raise RefusedError(self.use_instead)
        if env.team != self.team:
            raise RefusedError(ONE_AGENT if self.team else TEAM)
        super().__init__(env, settings, seed)
        self.env: PolicyEnv = env
        torch.manual_seed(seed)
        self.policy = env.policy()
        # Learning rates are set before every step.
        self.optimizer: torch.optim.Optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-4, eps=1e-5)
        self.rng = np.random.default_rng(seed)
        self.vector: VectorEnv = env.vector(episodes, seed)

    @property
    def solution(self) -> torch.nn.Module:
        return self.policy

    def set_learning_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def begin_update(self, problems: int, group: int = 1) -> None:
        """In a gang each rank plays its share of the problems, ``group`` slots for each. Where the number of ranks may
        change, it draws by the seed, the update and its rank. Raises RefusedError."""
        gang = self.gang
        if gang.size > problems:
            raise RefusedError(f"{problems} problems of an update are too few for {gang.size} ranks")
        if gang.malleable:
            seed = derived_seed(self.seed, 2, self.updates, gang.rank)
            self.vector = self.env.vector(gang.share(problems) * group, seed)
            self.rng = np.random.default_rng(seed)

    def descend(self, loss: torch.Tensor | None, weight: float) -> None:
        """One gradient step, its norm limited by ``max_grad_norm``. In a gang the loss is the mean of all ranks',
        each by its ``weight``; a rank without one has no weight."""
        self.optimizer.zero_grad()
        if loss is not None:
            torch.autograd.backward(loss)
        self.gang.average_gradients(self.policy.parameters(), weight)
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.settings.max_grad_norm)
        self.optimizer.step()

    def outcome(self) -> dict[str, float]:
        """Share of the played episodes that ended well, and the mean of their scores."""
        success = self.vector.success
        ended_well, score, slots = self.gang.total([success.sum(), self.vector.score[success].sum(), len(success)])
        return {"success": float(ended_well / slots), "score": float(score / ended_well) if ended_well else 0.0}

    def state(self) -> dict[str, Any]:
        return super().state() | {
            "policy": self.policy.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "problems": self.vector.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.begin_with(state)

    def begin_with(self, state: dict[str, Any]) -> None:
        """Takes over network, optimiser and generators, as if this run had trained them."""
        self.policy.load_state_dict(state["policy"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.vector.restore(state["problems"])
        self.rng.bit_generator.state = state["rng"]

"""What searches for numbers share (cem, es): the environment as objectives, and their state. A network's parameters are
numbers too: its fitness is the return of the best actions, on the same problems for all candidates of a scenario."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ces_core.model.problem import FloatArray
from ces_rl.algorithms.base import RefusedError, SeededRun
from ces_rl.envs.base import Environment, Judged, NumbersEnv, Objective, PolicyEnv, play_greedy
from ces_sim.rounds import derived_seed


class NumbersRun(SeededRun, ABC):
    """The part of a run that does not depend on how numbers are searched for."""

    needs_torch: ClassVar[bool] = False

    @property
    @abstractmethod
    def current(self) -> FloatArray:
        """The numbers that the present objective has come to."""

    def __init__(self, env: Environment, settings: Any, seed: int) -> None:
        super().__init__(env, settings, seed)
        self.found: list[FloatArray] = []
        self.problem: NumbersEnv | _PolicyNumbers
        if isinstance(env, PolicyEnv):
            if env.team:
                raise RefusedError("several agents act in it at once: use mappo")
            self.problem = _PolicyNumbers(env, seed)
        else:
            assert isinstance(env, NumbersEnv)
            self.problem = env

    @property
    def solution(self) -> Any:
        """The numbers of every objective; of those not begun yet, the ones that the search begins with. For a policy
        the network that has them."""
        found = list(self.found)
        if len(found) < self.problem.objectives:
            found.append(self.current)
        while len(found) < self.problem.objectives:
            found.append(self.problem.start(len(found)))
        return self.problem.solution(found) if isinstance(self.problem, _PolicyNumbers) else found

    def scenario_seed(self, number: int = 0) -> int:
        """Of a scenario of this generation."""
        return derived_seed(self.seed, 1, self.updates, number)

    def state(self) -> dict[str, Any]:
        return super().state() | {"found": [numbers.tolist() for numbers in self.found]} | self.own_state()

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.found = [np.array(numbers) for numbers in state["found"]]
        self.take_over(state)

    @abstractmethod
    def own_state(self) -> dict[str, Any]:
        """What the algorithm itself adds to the state."""

    @abstractmethod
    def take_over(self, state: dict[str, Any]) -> None:
        """The opposite."""


class _PolicyNumbers:
    """The searched parameters of a policy as one row of numbers."""

    objectives = 1

    def __init__(self, env: PolicyEnv, seed: int) -> None:
        import torch

        torch.manual_seed(seed)
        self._env = env
        self.policy = env.policy()

    def start(self, number: int) -> FloatArray:
        from torch.nn.utils import parameters_to_vector

        row = parameters_to_vector(self._env.searched(self.policy))
        return row.detach().numpy().astype(np.float64)

    def solution(self, found: Sequence[FloatArray]) -> Any:
        import torch
        from torch.nn.utils import vector_to_parameters

        with torch.no_grad():
            row = torch.from_numpy(np.asarray(found[0], dtype=np.float32))
            vector_to_parameters(row, self._env.searched(self.policy))
        return self.policy

    def objective(self, number: int, found: Sequence[FloatArray]) -> Objective:
        return _Returns(self, self._env)


class _Returns:
    """The returns of the greedy policy, a number for each problem."""

    def __init__(self, numbers: _PolicyNumbers, env: PolicyEnv) -> None:
        self._numbers, self._env = numbers, env
        self.start = numbers.start(0)
        self.spread = np.full(len(self.start), 0.1)
        self.least_spread = np.full(len(self.start), 0.005)

    def scenario(self, rng: np.random.Generator, seed: int) -> int:
        return seed

    def evaluate(self, numbers: FloatArray, scenario: int) -> Judged:
        vector = self._env.vector(self._env.searched_episodes, scenario)
        vector.reset(1.0)
        returns = play_greedy(self._numbers.solution([numbers]), vector)
        return Judged(returns, {"success": float(vector.success.mean())})

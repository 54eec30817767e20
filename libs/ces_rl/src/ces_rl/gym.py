"""One episode of placement as a Gymnasium environment, for other people's algorithms.

``import ces_rl.gym; gymnasium.make("ces/Placement-v0")``, or ``gymnasium.make("ces_rl.gym:ces/Placement-v0")``.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ces_core.learned.features import CONTEXT_WIDTH, NODE_WIDTH
from ces_core.learned.schema import LIMIT
from ces_core.model.problem import BoolArray
from ces_rl.envs.placement.simulation import PlacementSimulation
from ces_rl.envs.simulation import FAILURE, RUNNING, SlotSize
from ces_rl.problems.draw import Kinds, draw, kinds, new_random

Observation = dict[str, NDArray[Any]]
ID = "ces/Placement-v0"


class PlacementEnv(gymnasium.Env[Observation, np.int64]):
    """Each episode places one random job. The reward comes at the end: the plan's composite, 0 where none was found.

    Observations hold ``nodes`` (N, features), ``context`` (features,) and ``mask`` (N,), the nodes that may be chosen;
    :mod:`ces_core.learned.schema` names the columns. Choosing another node ends the episode with reward 0.
    ``odds``: regime -> weight.
    """

    metadata = {"render_modes": []}

    def __init__(
        self, odds: dict[str, float] | None = None, *, nodes: int = 10, tasks: tuple[int, int] = (3, 8)
    ) -> None:
        self._kinds: Kinds = kinds(odds or {"thesis": 1.0, "tight": 1.0, "scarce": 1.0}, (nodes, nodes), tasks)
        self._simulation = PlacementSimulation(1, SlotSize.complete(tasks[1], nodes))
        self._random = new_random(0)
        parts: Any = {
            "nodes": spaces.Box(-LIMIT, LIMIT, (nodes, NODE_WIDTH), np.float32),
            "context": spaces.Box(-LIMIT, LIMIT, (CONTEXT_WIDTH,), np.float32),
            "mask": spaces.MultiBinary(nodes),
        }
        space: Any = spaces.Dict(parts)
        self.observation_space = space
        self.action_space = spaces.Discrete(nodes)

    def action_masks(self) -> BoolArray:
        """(N,) the nodes that may be chosen now; all False once the episode is over."""
        mask: BoolArray = self._simulation.slots.mask[0].copy()
        return mask

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._random[0] = int(self.np_random.integers(2**48))
        running = False
        while not running:  # a job whose first task fits nowhere is no episode
            self._simulation.start(draw(self._random, self._kinds, 1), np.zeros(1, dtype=np.int64))
            running = bool(self._simulation.running[0])
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        slots = self._simulation.slots
        if not slots.mask[0, int(action)]:
            slots.status[0] = FAILURE
        else:
            self._simulation.step(np.array([action], dtype=np.int64))
        done = int(slots.status[0]) != RUNNING
        return self._observation(), float(slots.score[0]), done, False, {}

    def _observation(self) -> Observation:
        slots = self._simulation.slots
        return {
            "nodes": slots.nodes[0].copy(),
            "context": slots.context[0].copy(),
            "mask": slots.mask[0].astype(np.int8),
        }


gymnasium.register(id=ID, entry_point=f"{__name__}:{PlacementEnv.__name__}")

"""One game as a Gymnasium environment, for other people's algorithms."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ces_core.policy.features import CONTEXT_WIDTH, NODE_WIDTH
from ces_core.policy.schema import LIMIT
from ces_train.drawing import Kinds, draw, kinds, new_random
from ces_train.games import LOST, PLAYING, Games, Most

Observation = dict[str, NDArray[Any]]


class PlacementEnv(gymnasium.Env[Observation, np.int64]):
    """Each episode places one random job. The reward comes at the end: the plan's composite, 0 where none was found.

    Observations hold ``nodes`` (N, features), ``context`` (features,) and ``mask`` (N,), the nodes that may be chosen.
    Choosing another one ends the episode with reward 0. ``odds``: regime -> weight.
    """

    metadata = {"render_modes": []}

    def __init__(
        self, odds: dict[str, float] | None = None, *, nodes: int = 10, tasks: tuple[int, int] = (3, 8)
    ) -> None:
        self._kinds: Kinds = kinds(odds or {"thesis": 1.0, "tight": 1.0, "scarce": 1.0}, (nodes, nodes), tasks)
        self._games = Games(1, Most.complete(tasks[1], nodes))
        self._random = new_random(0)
        parts: Any = {
            "nodes": spaces.Box(-LIMIT, LIMIT, (nodes, NODE_WIDTH), np.float32),
            "context": spaces.Box(-LIMIT, LIMIT, (CONTEXT_WIDTH,), np.float32),
            "mask": spaces.MultiBinary(nodes),
        }
        space: Any = spaces.Dict(parts)
        self.observation_space = space
        self.action_space = spaces.Discrete(nodes)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._random[0] = int(self.np_random.integers(2**48))
        playing = False
        while not playing:  # a job of which even the first task fits nowhere is no game
            self._games.start(draw(self._random, self._kinds, 1), np.zeros(1, dtype=np.int64))
            playing = bool(self._games.playing[0])
        return self._seen(), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        seats = self._games.seats
        if not seats.mask[0, int(action)]:
            seats.status[0] = LOST
        else:
            self._games.step(np.array([action], dtype=np.int64))
        done = int(seats.status[0]) != PLAYING
        return self._seen(), float(seats.worth[0]), done, False, {}

    def _seen(self) -> Observation:
        seats = self._games.seats
        return {
            "nodes": seats.nodes[0].copy(),
            "context": seats.context[0].copy(),
            "mask": seats.mask[0].astype(np.int8),
        }

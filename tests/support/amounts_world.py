"""Small worlds of tasks that get their amounts, made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ces_core.amounts.settings import SETTINGS, Setting
from ces_core.amounts.speeds import speeds
from ces_core.amounts.state import State, Tasks, World, new_state, new_world
from ces_sim.amounts import begin

IMAGE, LANGUAGE = 0, 1


def small_setting(*capacity: tuple[int, int], tasks: int = 4, **other: Any) -> Setting:
    """Of the synthetic kind, several tasks a slot; ``capacity``: CPUs and GPUs of each cluster."""
    return replace(SETTINGS["synthetic"], capacity=capacity, tasks=tasks, one_task=False, **other)


def begun(setting: Setting, kinds: list[int], visible: list[list[int]] | None = None) -> tuple[World, Tasks, State]:
    """One world in which tasks of these ``kinds`` arrive at once, ``visible`` to these clusters each, else to all."""
    agents = len(setting.capacity)
    seen = np.zeros((1, len(kinds), agents), dtype=np.bool_)
    for task, clusters in enumerate(visible or [list(range(agents))] * len(kinds)):
        seen[0, task, clusters] = True
    tasks = Tasks(np.zeros((1, len(kinds)), dtype=np.int64), np.array([kinds]), seen)
    world = new_world(setting, speeds(setting))
    state = new_state(world, 1, len(kinds))
    begin(world, tasks, state, 0)
    return world, tasks, state

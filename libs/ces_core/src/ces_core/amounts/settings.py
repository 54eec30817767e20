"""The four settings that TapFinger is published with (arXiv 2302.00571, and the settings of its public runs)."""

from __future__ import annotations

from dataclasses import dataclass

from ces_core.model.problem import FloatArray

IMAGE, LANGUAGE, AUDIO = "mnist", "lm", "audio"
"""Kinds of tasks, as the measured profiles call them."""
SLOTS = 10
"""Pending tasks that a cluster looks at; further ones wait in its queue."""


@dataclass(frozen=True)
class Setting:
    """Edge clusters, each decided by one agent, and the tasks that arrive.

    ``capacity``: CPUs and GPUs of each cluster. ``most``, ``least``: CPUs and GPUs that one task may and must get.
    ``arrivals``: mean number of tasks in a slot (Poisson). ``tasks``: how many arrive in all. ``kept``: the factor on
    a task's progress in a slot that begins with changed amounts. ``measured``: speeds come from measured profiles.
    ``one_task``: an agent places at most one task in a slot. ``elastic``: Tiresias gives more than the least GPUs. The
    last two are what the published runs show: where the amounts in use grow by one task a slot, and where by one GPU a
    task.
    """

    name: str
    capacity: tuple[tuple[int, int], ...]
    arrivals: float
    tasks: int
    most: tuple[int, int] = (16, 16)
    least: tuple[int, int] = (2, 1)
    kept: float = 0.5
    kinds: tuple[str, ...] = (IMAGE, LANGUAGE)
    measured: bool = False
    one_task: bool = False
    elastic: bool = True


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("hetero_6", ((4, 4), (8, 8), (12, 12), (16, 16), (24, 24), (32, 32)), 6.0, 384, kept=1.0),
        Setting("synthetic", ((16, 16),) * 3, 2.0, 192, one_task=True, elastic=False),
        Setting("synthetic_6", ((16, 16),) * 6, 4.0, 384, one_task=True, elastic=False),
        Setting(
            "testbed", ((16, 4), (16, 4), (16, 8)), 1.0, 200,
            most=(16, 8), least=(1, 1), kinds=(IMAGE, LANGUAGE, AUDIO), measured=True,
        ),
    )
}  # fmt: skip

Profiles = dict[str, FloatArray]
"""Kind -> (CPUs + 1, GPUs + 1) mean seconds that such a task takes, nan where it was not measured."""

"""The experiment of the EADE-DDPG paper on the public trace: 64 hosts in 16 clusters, and a stream of tasks.

D1: hosts with T4, 220 tasks that share a card. D2: hosts with T4 or P100. D3: all tasks with GPUs. D4: memory of cards
is asked for loosely. D5: 280 tasks. The trace says of no card how much memory it has, and of no task how much it needs:
a task asks for its share of the smallest card there is, in D4 for that times a factor of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ces_core.gpus.model import CARD, GpuNode, GpuTask, Models

CARD_MEMORY = {"T4": 15_109, "P100": 16_280}
"""MiB that these cards report."""
HOSTS, CLUSTER = 64, 4


@dataclass(frozen=True)
class Scenario:
    """``models``: of the hosts. ``whole``: tasks with whole cards too. ``loose``: memory of cards by a factor, up to a
    whole card, drawn evenly from 1 less this to 1 more."""

    name: str
    models: tuple[str, ...] = ("T4",)
    tasks: int = 220
    whole: bool = False
    loose: float = 0.0

    @property
    def smallest_card(self) -> int:
        """MiB of it."""
        return min(CARD_MEMORY[model] for model in self.models)


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("D1"),
        Scenario("D2", models=("T4", "P100")),
        Scenario("D3", whole=True),
        Scenario("D4", loose=0.3),
        Scenario("D5", tasks=280),
    )
}


@dataclass(frozen=True)
class Drawn:
    """``nodes``: one cluster's after the other. ``tasks``: in their order. ``usual``: all tasks that could be drawn."""

    nodes: tuple[GpuNode, ...]
    tasks: tuple[GpuTask, ...]
    usual: tuple[GpuTask, ...]


@dataclass(frozen=True)
class Source:
    """What is drawn from. ``hosts``: those with the scenario's models. ``usual``: all tasks that could be drawn."""

    scenario: Scenario
    hosts: tuple[GpuNode, ...]
    usual: tuple[GpuTask, ...]

    @staticmethod
    def of(scenario: Scenario, nodes: Sequence[GpuNode], tasks: Sequence[GpuTask]) -> Source:
        """From all nodes, sorted by name, and all tasks, in the order of their file. Raises ValueError where there are
        too few."""
        hosts = [replace(node, card_memory=CARD_MEMORY[node.model]) for node in nodes if node.model in scenario.models]
        usual = [task for task in tasks if task.gpus and (scenario.whole or task.milli < CARD)]
        for what, there, needed in (("hosts", len(hosts), HOSTS), ("tasks", len(usual), scenario.tasks)):
            if there < needed:
                raise ValueError(f"{scenario.name} needs {needed} {what}, and there are {there}")
        memory = scenario.smallest_card
        asking = tuple(replace(task, card_memory=memory * task.milli // CARD) for task in usual)
        return Source(scenario, tuple(hosts), asking)

    def draw(self, rng: np.random.Generator) -> Drawn:
        """Hosts and tasks, neither twice."""
        scenario, memory = self.scenario, self.scenario.smallest_card
        chosen = tuple(self.hosts[place] for place in rng.choice(len(self.hosts), HOSTS, replace=False))
        stream = [self.usual[place] for place in rng.choice(len(self.usual), scenario.tasks, replace=False)]
        if scenario.loose:
            factors = rng.uniform(1 - scenario.loose, 1 + scenario.loose, len(stream))
            stream = [
                replace(task, card_memory=min(memory, int(task.card_memory * factor)))
                for task, factor in zip(stream, factors, strict=True)
            ]
        return Drawn(chosen, tuple(stream), self.usual)


def numbered(usual: Iterable[GpuTask]) -> Models:
    """Models in the order in which tasks as they usually come ask for them: all who look at the same tasks, be it for a
    rule or for the hosts that it decides on, number models alike."""
    models = Models()
    for task in usual:
        models.bits(task.models)
    return models


def draw(scenario: Scenario, nodes: Sequence[GpuNode], tasks: Sequence[GpuTask], rng: np.random.Generator) -> Drawn:
    """One from :class:`Source`. Raises ValueError where there are too few nodes or tasks."""
    return Source.of(scenario, nodes, tasks).draw(rng)

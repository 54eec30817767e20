"""One stream of tasks through clusters of GPU hosts: none leaves, and who has no host by the end of its step never gets
one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ces_core.gpus.checker import Placed, faults
from ces_core.gpus.choice import Chooser
from ces_core.gpus.clusters import DELAY, Clusters
from ces_core.gpus.fragmentation import Typical, fragmented, typical
from ces_core.gpus.model import CARD, Asked, GpuTask, Models
from ces_core.gpus.rewards import Reading, mean_use, rewards
from ces_core.gpus.rules import ClusterRule, Outlook
from ces_core.gpus.scores import Policy
from ces_sim.gpus.scenarios import CLUSTER, Drawn, numbered


@dataclass
class Episode:
    """``clusters``: what is free now. ``at``: the place of the next task."""

    drawn: Drawn
    clusters: Clusters
    asked: tuple[Asked, ...]
    models: Models
    at: int = 0
    placed: list[Placed] = field(default_factory=list)
    judged: int = 0
    wrong: int = 0
    earned: dict[Reading, float] = field(default_factory=lambda: dict.fromkeys(Reading, 0.0))

    @staticmethod
    def of(drawn: Drawn, size: int = CLUSTER) -> Episode:
        """Before the first task, with clusters of ``size`` hosts."""
        models = numbered(drawn.usual)
        fleet = models.fleet(drawn.nodes)
        asked = tuple(models.asked(task) for task in drawn.tasks)
        return Episode(drawn, Clusters.of(fleet, size), asked, models)

    @cached_property
    def usual(self) -> Typical:
        """Of all tasks that could be drawn."""
        return typical(self.models.asked(task) for task in self.drawn.usual)

    @property
    def over(self) -> bool:
        return self.at == len(self.asked)

    @property
    def task(self) -> Asked:
        """The next."""
        return self.asked[self.at]

    def step(self, choice: int) -> dict[Reading, float]:
        """The next task goes to a cluster, or DELAY: it waits. Returns the reward in both readings."""
        hosts = self.clusters.hosts(self.task)
        reward = {reading: float(rewards(self.clusters, self.task, reading)[choice]) for reading in Reading}
        if choice != DELAY and hosts[choice] >= 0:
            host = int(hosts[choice])
            self._place(host, self.clusters.cards(host, self.task))
        elif choice == DELAY and (hosts < 0).all():
            self.judged += 1
        else:
            self.wrong += 1
        return self._next(reward)

    def step_to(self, chosen: tuple[int, tuple[int, ...]] | None) -> dict[Reading, float]:
        """The same for who chooses host and cards."""
        if chosen is None:
            return self.step(DELAY)
        host, cards = chosen
        cluster = host // self.clusters.size
        reward = {reading: float(rewards(self.clusters, self.task, reading)[cluster]) for reading in Reading}
        self._place(host, cards)
        return self._next(reward)

    def _place(self, host: int, cards: tuple[int, ...]) -> None:
        self.clusters.fleet.place(host, cards, self.task)
        self.placed.append(Placed(self.drawn.tasks[self.at], host, cards))

    def _next(self, reward: dict[Reading, float]) -> dict[Reading, float]:
        for reading, value in reward.items():
            self.earned[reading] += value
        self.at += 1
        return reward

    def figures(self) -> dict[str, Any]:
        """``idle``: eq 27, the sum of four shares. ``variance``: eq 28, of the mean over all four; ``gpu_variance``: of
        milli and memory of cards alone. ``fragmented``: of all milli. Deviations are over clusters.

        Raises ValueError where the checker objects.
        """
        if wrong := faults(self.drawn.nodes, self.placed):
            raise ValueError("; ".join(wrong[:3]))
        used, clusters = self.clusters.used(), self.clusters
        names = ("cpu", "memory", "card_memory", "milli")
        return {
            "deployed": len(self.placed), "judged": self.judged, "wrong": self.wrong,
            **{f"{name}_used": float(value) for name, value in zip(names, used.mean(axis=0), strict=True)},
            **{f"{name}_sd": float(value) for name, value in zip(names, used.std(axis=0), strict=True)},
            "idle": float((1 - used).sum(axis=1).mean()),
            "variance": float(mean_use(clusters).var()),
            "gpu_variance": float(used[:, 2:].mean(axis=1).var()),
            "fragmented": fragmented(clusters.fleet, self.usual) / (CARD * int(clusters.fleet.cards.sum())),
            **{f"return_{reading}": value for reading, value in self.earned.items()},
        }  # fmt: skip


def by_rule(drawn: Drawn, rule: ClusterRule, seed: int, size: int = CLUSTER) -> dict[str, Any]:
    """Figures of a whole episode, with ``decision_s``, seconds of each decision, among clusters of ``size`` hosts."""
    rng = np.random.default_rng(seed)
    sizes = np.array(sorted(task.total for task in drawn.usual), np.int64)

    def decide(episode: Episode) -> Callable[[], object]:
        choice = rule.choose(episode.clusters, episode.task, Outlook(len(drawn.tasks) - episode.at - 1, sizes, rng))
        return lambda: episode.step(choice)

    return _run(Episode.of(drawn, size), decide)


def by_node(drawn: Drawn, policy: Policy, seed: int) -> dict[str, Any]:
    """The same for a policy that chooses among all hosts; equals go to the first by name."""
    order = sorted(range(len(drawn.nodes)), key=lambda place: drawn.nodes[place].name)
    episode = Episode.of(drawn)
    fleet = episode.models.fleet([drawn.nodes[place] for place in order])
    chooser = Chooser(policy, fleet, episode.usual, np.random.default_rng(seed))

    def decide(episode: Episode) -> Callable[[], object]:
        chosen = chooser.choose(episode.task)
        if chosen is None:
            return lambda: episode.step_to(None)
        chooser.place(*chosen, episode.task)
        return lambda: episode.step_to((order[chosen[0]], chosen[1]))

    return _run(episode, decide)


def _run(episode: Episode, decide: Callable[[Episode], Callable[[], object]]) -> dict[str, Any]:
    seconds = []
    while not episode.over:
        began = time.perf_counter()
        carry_out = decide(episode)
        seconds.append(time.perf_counter() - began)
        carry_out()
    return episode.figures() | {"decision_s": seconds}


def planned(drawn: Drawn, placed: Sequence[Placed]) -> dict[str, Any]:
    """Figures of a plan for all tasks at once: those without a place wait, rightly or not."""
    where: dict[GpuTask, list[Placed]] = {}
    for each in placed:
        where.setdefault(each.task, []).append(each)
    episode = Episode.of(drawn)
    while not episode.over:
        found = where.get(episode.drawn.tasks[episode.at])
        if found:
            each = found.pop()
            episode.step_to((each.node, each.cards))
        else:
            episode.step(DELAY)
    return episode.figures()

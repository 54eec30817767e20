"""What an audit must know beyond the log: capacities of the cluster, and what jobs asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field

Hop = tuple[str, str]
Amounts = tuple[int, int, int]  # millicores, bytes, GPUs
NOTHING: Amounts = (0, 0, 0)


@dataclass(frozen=True)
class JobRequest:
    """What a job asked for, by task. ``expected_s``: its declared duration, None if it declares none. ``suspendable``:
    whether it may be frozen for a more urgent job, None if unknown. ``elastic``: the group of a malleable job that has
    no fixed number of tasks; ``sizes``: the numbers that it may have; ``cpu``: the least and the most millicores that
    each of its tasks may have while it runs, None where that does not change; ``shares``: thousandths of a GPU card, by
    task that asks for a part of one."""

    tasks: Mapping[str, Amounts]
    expected_s: float | None = None
    suspendable: bool | None = None
    elastic: str | None = None
    sizes: Collection[int] = ()
    cpu: tuple[int, int] | None = None
    shares: Mapping[str, int] = field(default_factory=dict)

    def amounts(self, task: str) -> Amounts:
        """What a task asked for; nothing where the job has no such task at any size."""
        return self.tasks.get(f"{self.elastic}-0" if self.is_elastic(task) else task, NOTHING)

    def lists(self, tasks: Iterable[str]) -> bool:
        """Whether these are the job's tasks, at any size that it may have."""
        given = sorted(tasks)
        if self.elastic is None:
            return given == sorted(self.tasks)
        size = self.size_of(given)
        fixed = [task for task in self.tasks if not self.is_elastic(task)]
        return size in self.sizes and given == sorted([*fixed, *(f"{self.elastic}-{i}" for i in range(size))])

    def size_of(self, tasks: Iterable[str]) -> int:
        """How many of these are of the elastic group."""
        return sum(self.is_elastic(task) for task in tasks)

    def is_elastic(self, task: str) -> bool:
        return self.elastic is not None and task.rpartition("-")[0] == self.elastic


@dataclass(frozen=True)
class Inventory:
    """What the cluster has. ``links`` and ``media``: capacity in bit/s; with ``links`` None, flows are not judged.
    ``tunnelled`` and ``encrypted``: the media that tunnels and encrypted ones share. ``jobs``: requests by id or by
    name. ``nodes``: capacity of nodes that joined before the log begins.
    """

    links: Mapping[Hop, int] | None = None
    media: Mapping[str, int] = field(default_factory=dict)
    medium_of: Mapping[Hop, str] = field(default_factory=dict)
    tunnelled: Set[str] = frozenset()
    encrypted: Set[str] = frozenset()
    jobs: Mapping[str, JobRequest] = field(default_factory=dict)
    nodes: Mapping[str, Amounts] = field(default_factory=dict)

    def request_of(self, job: str, name: str) -> JobRequest | None:
        """The request of a job, by id or else by name; None if unknown."""
        return self.jobs.get(job) or self.jobs.get(name)

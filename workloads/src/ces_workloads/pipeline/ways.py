"""Which way requests go and what they cost here, as CES tells the worker in ``CES_REQUESTS``. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ces_workloads.peers import BadEnvironment

VARIABLE = "CES_REQUESTS"


@dataclass(frozen=True)
class Way:
    """Of a class of requests: ``steps`` are tasks, ``messages`` the bytes between each two. ``rate`` a second;
    ``deadline_ms``: None where there is none."""

    name: str
    rate: float
    deadline_ms: float | None
    steps: tuple[str, ...]
    messages: tuple[int, ...]

    @property
    def origin(self) -> str:
        return self.steps[0]

    @property
    def returns(self) -> bool:
        """Whether the answer comes back to the sender, which alone can tell how long it took: clocks of two machines
        differ."""
        return len(self.steps) > 1 and self.steps[-1] == self.steps[0]

    def works_at(self, position: int) -> bool:
        """Whether the step there works on a request: a sender does not work on the answer."""
        return not (self.returns and position == len(self.steps) - 1)


@dataclass(frozen=True)
class Duties:
    """What one task does. ``work_us``: microseconds of the reference core that each request costs it, 0 for none;
    ``work_class``: which kind of work that is."""

    task: str
    work_us: int
    work_class: str | None
    ways: Mapping[str, Way]

    @property
    def sends(self) -> list[Way]:
        """The ways that begin here."""
        return [way for way in self.ways.values() if way.origin == self.task]

    @property
    def origins(self) -> frozenset[str]:
        """The tasks whose requests come here."""
        return frozenset(way.origin for way in self.ways.values())

    def after(self, origin: str) -> list[str]:
        """The tasks to which requests of this origin go from here."""
        hops = {
            way.steps[i + 1]: None
            for way in self.ways.values()
            if way.origin == origin
            for i, step in enumerate(way.steps[:-1])
            if step == self.task
        }
        return list(hops)


def duties_of(task: str, environment: Mapping[str, str]) -> Duties:
    """Raises BadEnvironment."""
    text = environment.get(VARIABLE)
    if not text:
        raise BadEnvironment(
            f"{VARIABLE} is not set: no request of the application passes {task}; name it in the chain of one"
        )
    try:
        told = json.loads(text)
        work = told["work"] or {"us": 0, "class": None}
        ways = [_way(each) for each in told["requests"]]
        return Duties(task, int(work["us"]), work["class"], {way.name: way for way in ways})
    except (ValueError, KeyError, TypeError) as error:
        raise BadEnvironment(f"{VARIABLE} makes no sense: {error!r}") from error


def _way(told: Mapping[str, Any]) -> Way:
    deadline, steps, messages = told["deadline_us"], tuple(told["steps"]), tuple(map(int, told["messages"]))
    if len(steps) < 2 or len(messages) != len(steps) - 1:
        raise ValueError(f"request {told['name']} has {len(steps)} steps and {len(messages)} messages")
    return Way(
        str(told["name"]), float(told["rate"]), None if deadline is None else float(deadline) / 1000, steps, messages
    )


def passes(way: Way, position: int, task: str) -> bool:
    """Whether a request of this way may come to the task as this step."""
    return 0 < position < len(way.steps) and way.steps[position] == task


def names_of(ways: Sequence[Way]) -> str:
    """For people."""
    return ", ".join(f"{way.name} ({' -> '.join(way.steps)}, {way.rate:g}/s)" for way in ways)

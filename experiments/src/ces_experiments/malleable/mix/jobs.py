"""The jobs of a mix, drawn by its seed: when each arrives, how much it has to do, how fast it is, by when it is due.
The same job is submitted as a malleable one, or as a rigid one of the size that its user asks for. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ces_common.jobfile import JobFile
from ces_experiments.common.emulated import star
from ces_experiments.malleable.mix.program import step_s
from ces_testbed.topology import Topology

CORES = 4  # of a host, and a worker takes one of them
LINK = "100Mbit"
SIZES = range(1, 9)
HINTED = (1, 2, 4, 8)
LOAD = 2.0
"""What all jobs take with one worker each, by the places that there are while they arrive. They may end later."""
ALONE_S = (40.0, 80.0)  # what a job takes with one worker
STEP_S = (0.4, 0.8)  # what a step of it takes with one worker
FIXED = (0.02, 0.1)  # of that, what no worker shortens
EXCHANGE = (0.0, 0.01)  # and what each further worker adds
USUAL = (1, 2, 4)  # numbers of workers of which deadlines are drawn
EASE = (1.2, 2.0)  # times as long as the job takes with them
START_S = 5  # what the user leaves for its start
GRACE_S = 5
MALLEABLE = "malleable"


@dataclass(frozen=True)
class MixJob:
    """``arrives_s``: seconds after the first could have. ``a``, ``b``, ``c``: see the program. ``within_s``: from its
    submission to its deadline."""

    name: str
    arrives_s: float
    steps: int
    a: float
    b: float
    c: float
    within_s: int

    def seconds(self, size: int) -> float:
        """How long its steps take with ``size`` workers."""
        return self.steps * step_s(self.a, self.b, self.c, size)

    def asked(self, share: float) -> int:
        """The smallest size with which it would have ended after that share of the time that it has, if it started at
        once; the fastest where none would have."""
        for size in SIZES:
            if self.seconds(size) + START_S <= share * self.within_s:
                return size
        return min(SIZES, key=self.seconds)

    def malleable(self, name: str) -> JobFile:
        hint = {size: round(self.steps / self.seconds(size), 4) for size in HINTED}
        elastic = {
            "group": "w",
            "workers": {"min": SIZES[0], "max": SIZES[-1]},
            "grace": GRACE_S,
            "speed": {"unit": "steps", "total": self.steps, "hint": hint},
        }
        return self._file(name, elastic=elastic)

    def rigid(self, name: str, share: float) -> JobFile:
        """``share``: see asked."""
        size = self.asked(share)
        return self._file(name, size, duration=math.ceil(self.seconds(size)) + 1)

    def _file(self, name: str, replicas: int | None = None, **more: Any) -> JobFile:
        command = ["python", "-m", "ces_experiments.malleable.mix.program", str(self.steps)]
        task: dict[str, Any] = {
            "name": "w",
            "command": [*command, *(f"{each:.6f}" for each in (self.a, self.b, self.c))],
            "resources": {"cpu": "1", "memory": "64Mi"},
        }
        return JobFile.model_validate(
            {
                "name": name,
                "tasks": [task if replicas is None else task | {"replicas": replicas}],
                "flows": {"topology": "star", "bandwidth": {"min": "1Mbit", "max": "5Mbit"}},
                "deadline": {"within": self.within_s},
                **more,
            }
        )


def file_of(job: MixJob, way: str, name: str) -> JobFile:
    """``way``: malleable, or the share of its time that a rigid job is sized for, as text."""
    return job.malleable(name) if way == MALLEABLE else job.rigid(name, float(way))


def topology(nodes: int) -> Topology:
    return star(nodes, CORES, "4Gi", LINK)


def draw(seed: int, count: int, nodes: int) -> Sequence[MixJob]:
    """In the order of their arrivals, which are those of a Poisson process."""
    chance = random.Random(f"{seed}/mix")
    shapes = [_shape(chance) for _ in range(count)]
    gap_s = sum(steps * step_s(a, b, c, 1) for steps, a, b, c, _ in shapes) / (nodes * CORES * LOAD * count)
    found, at = [], 0.0
    for number, (steps, a, b, c, within_s) in enumerate(shapes):
        at += chance.expovariate(1 / gap_s)
        found.append(MixJob(f"{number:03}", at, steps, a, b, c, within_s))
    return found


def _shape(chance: random.Random) -> tuple[int, float, float, float, int]:
    """Steps, a, b, c and the seconds until the deadline."""
    one_s, alone_s = chance.uniform(*STEP_S), chance.uniform(*ALONE_S)
    a, c = (one_s * chance.uniform(*of) for of in (FIXED, EXCHANGE))
    steps, b = round(alone_s / one_s), one_s - a
    usual_s = steps * step_s(a, b, c, chance.choice(USUAL))
    return steps, a, b, c, math.ceil(START_S + usual_s * chance.uniform(*EASE))


def setting() -> dict[str, Any]:
    """What does not depend on the seed, for the results."""
    return {
        "cores": CORES,
        "link": LINK,
        "sizes": [SIZES[0], SIZES[-1]],
        "hinted": HINTED,
        "load": LOAD,
        "alone_s": ALONE_S,
        "step_s": STEP_S,
        "fixed": FIXED,
        "exchange": EXCHANGE,
        "usual": USUAL,
        "ease": EASE,
        "start_s": START_S,
        "grace_s": GRACE_S,
    }

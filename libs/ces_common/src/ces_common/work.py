"""How much work a program does for each step, by what it took on one node, and what that takes on another. Pure.

A class of work is the kind of measurement by which nodes are taken to differ for it. Which class a program is of cannot
be seen on one node: there it has one CPU time, and by each class another work. So every class predicts, and those count
that have predicted best so far.

- CPU time of a step on node n, of class k: ``work_k / speed_nk``, where ``speed`` is that of a core while it works.
- Cores that help: ``e = min(cores that the task may use, threads x one_n, many_n)``, where ``one`` and ``many`` are the
  cores that one thread, and all threads together, were given while they were measured: less where a quota counts.
- Time of a step: that for which it works, ``CPU time / e``, and that for which it waits, which is taken to be as long
  on every node. How many threads a task has is not seen where it was given fewer cores: then it may be as many as it
  may use cores.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Final

from ces_common.messages.scores import Measurement
from ces_common.messages.work import Class, ClassWork, LearnedWork, PredictedWork, SeenWork, Span
from ces_common.scores import speed_of, spread_of

CLASSES: Final[Sequence[Class]] = ("integer", "float", "matrix", "inference", "memory")
ALIKE: Final = 0.02
"""Classes whose errors are no further apart are not told apart."""
BUSY: Final = 0.9
"""A task that uses this share of the cores that it may use is taken to wait for nothing else."""


@dataclass(frozen=True, slots=True)
class NodeSpeeds:
    """``cores``: how fast a core is while it works, by class, in rates of the reference core. ``one``, ``many``: how
    many cores one thread, and all threads together, were given. ``spread``: between the repeats of a measurement, as a
    share."""

    cores: Mapping[Class, float]
    one: float
    many: float
    spread: float = 0.0


def speeds_of(measurements: Sequence[Measurement]) -> NodeSpeeds | None:
    """By one thread on the fastest type of core. None where no agent has told what its threads were given."""
    told = [each for each in measurements if each.kind in CLASSES and each.per_cpu_s is not None]
    single = [each for each in told if each.threads == 1]
    cores: dict[Class, float] = {}
    for each in single:
        speed = speed_of(each)
        assert speed is not None
        cores[each.kind] = max(speed, cores.get(each.kind, 0.0))
    if not cores:
        return None
    widest = max(each.threads for each in told)
    one = max(min(_given(each), 1.0) for each in single)
    many = max(min(_given(each), float(widest)) for each in told if each.threads == widest)
    return NodeSpeeds(cores, one, max(one, many), median(spread_of(each.rates) for each in single))


def _given(measurement: Measurement) -> float:
    """The cores that it was given: CPU seconds for each second."""
    assert measurement.per_cpu_s is not None
    return median(measurement.rates) / measurement.per_cpu_s


def work_of(cpu_ms: float, speeds: NodeSpeeds) -> dict[Class, float]:
    """The work of a step that took so much CPU time there, by class."""
    return {each: cpu_ms * speed for each, speed in speeds.cores.items()}


def learned(before: LearnedWork | None, job: str, cpu_ms: float, speeds: NodeSpeeds) -> LearnedWork:
    """With what a finished job took on one node. What was learned before predicts first, and is judged by that; then
    the new counts as much as all that was before, of work as of error."""
    found = dict(before.classes) if before is not None else {}
    for each, work in work_of(cpu_ms, speeds).items():
        known = found.get(each)
        if known is None:
            found[each] = ClassWork(work=work)
            continue
        error = abs(known.work / work - 1.0)
        found[each] = ClassWork(
            work=(known.work + work) / 2, error=error if known.error is None else (known.error + error) / 2
        )
    return LearnedWork(runs=1 + (before.runs if before is not None else 0), job=job, classes=found)


def trusted(classes: Mapping[Class, ClassWork], there: Collection[Class]) -> list[Class]:
    """Of those that the other node has, the ones that have predicted best; all of them where none has predicted."""
    common = [each for each in classes if each in there]
    errors = {each: error for each in common if (error := classes[each].error) is not None}
    if not errors:
        return common
    least = min(errors.values())
    return [each for each, error in errors.items() if error <= least + ALIKE]


def threads_of(seen: SeenWork, here: NodeSpeeds) -> list[int]:
    """With how many threads it may have worked, the least first: as many as use the cores that it used, or as many as
    it may use cores, where these would have been given no more there. Empty where it waited for something else."""
    few = max(math.ceil(seen.cpu.ms / seen.step - 0.05), 1)
    return [
        each
        for each in dict.fromkeys((few, max(few, math.ceil(seen.cores))))
        if seen.cpu.ms / cores_for(seen.cores, each, here) >= BUSY * seen.step
    ]


def cores_for(cores: float, threads: int, speeds: NodeSpeeds) -> float:
    """The cores that help there. ``cores``: that the task may use."""
    return min(cores, threads * speeds.one, speeds.many)


def predicted(
    node: str, classes: Mapping[Class, ClassWork], there: NodeSpeeds, seen: SeenWork | None, here: NodeSpeeds | None
) -> PredictedWork | None:
    """What a step takes on ``node``, which is ``there``. ``seen``: what it took on a node that is ``here``; without,
    only the CPU time is predicted. None where no class was measured there. The interval spans the trusted classes,
    widened by what their CPU time varied by, by their error, and by what the nodes' own measurements varied by."""
    chosen = trusted(classes, there.cores)
    if not chosen:
        return None
    times = [classes[each].work / there.cores[each] for each in chosen]
    error = max(classes[each].error or 0.0 for each in chosen)
    error += there.spread + (0.0 if here is None else here.spread)
    low, high = (seen.cpu.low / seen.cpu.ms, seen.cpu.high / seen.cpu.ms) if seen and seen.cpu.ms > 0 else (1.0, 1.0)
    cpu = Span(
        ms=geometric_mean(times) if min(times) > 0 else 0.0,
        low=min(times) * low * max(1.0 - error, 0.0),
        high=max(times) * high * (1.0 + error),
    )
    return PredictedWork(node=node, cpu=cpu, step=_step(cpu, there, seen, here), classes=chosen)


def _step(cpu: Span, there: NodeSpeeds, seen: SeenWork | None, here: NodeSpeeds | None) -> Span | None:
    if seen is None or here is None or seen.step <= 0:
        return None
    threads = threads_of(seen, here)
    if not threads:
        few = max(math.ceil(seen.cpu.ms / seen.step - 0.05), 1)
        e_here, e_there = (cores_for(seen.cores, few, speeds) for speeds in (here, there))
        waiting = seen.step - seen.cpu.ms / e_here
        return Span(**{name: waiting + getattr(cpu, name) / e_there for name in ("ms", "low", "high")})
    slower = [cores_for(seen.cores, each, here) / cores_for(seen.cores, each, there) for each in threads]
    per_ms = seen.step / seen.cpu.ms
    return Span(
        ms=cpu.ms * per_ms * slower[-1], low=cpu.low * per_ms * min(slower), high=cpu.high * per_ms * max(slower)
    )

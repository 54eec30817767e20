"""How fast malleable jobs are at each of their sizes, and how much they have still to do. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import structlog

from ces_common.elastic import FASTEST, SLOWEST, Speed
from ces_common.messages.records import JobRecord
from ces_common.messages.speeds import MATERIAL, READ_S
from ces_common.states import JobState
from ces_core.malleable.speed import POWER, Measurement, SpeedModel, fitted, hinted

log = structlog.get_logger()


def speed_of(record: JobRecord, others: Iterable[JobRecord]) -> SpeedModel:
    """By what was measured of the job; as far as that does not tell, by the hint in its file, else by what was measured
    of another job with the same image and command, of the same tenant: of ``others`` the one that ran at most sizes. A
    job whose speeds nothing can be made of is taken to be one of which nothing is known."""
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            model = _speed_of(record, others)
            if all(0 < model.rate(size) < math.inf for size in _ends(record)):
                return model
        log.error("the speeds of a job make no sense", job=record.id)
    except (ArithmeticError, ValueError):
        log.exception("the speeds of a job make no sense", job=record.id)
    return POWER


def _ends(record: JobRecord) -> Sequence[int]:
    """The smallest size and the largest."""
    elastic = None if record.spec is None else record.spec.elastic
    return () if elastic is None else (elastic.smallest, elastic.largest)


def _speed_of(record: JobRecord, others: Iterable[JobRecord]) -> SpeedModel:
    hint = _speed(record).hint
    if hint:
        return fitted(_measured(record), hinted(hint))
    kind = _kind(record)
    alike = [each for each in others if each.id != record.id and each.speeds is not None and _kind(each) == kind]
    best = max(alike, key=lambda each: (len(_measured(each)), each.id), default=None)
    return fitted(_measured(record), POWER if best is None else fitted(_measured(best)))


def left_of(record: JobRecord, speed: SpeedModel, now_s: float) -> float | None:
    """Units of work left; None where the job's file does not say how much there is in all. What one that runs has done
    since its last step was noted is reckoned by its speed, as far as that would not have been noted yet: steps are read
    now and then, and what changes little is not kept."""
    total, told = _speed(record).total, record.speeds
    if total is None:
        return None
    left = float(max(0, total - (0 if told is None else told.step)))
    if told is None or record.state is not JobState.RUNNING or record.size is None or not speed.known:
        return left
    since = told.at if record.since is None else max(told.at, record.since)
    rate, since_s = speed.rate(record.size), max(0.0, now_s - since.timestamp())
    return max(MATERIAL * left, left - min(rate * since_s, rate * READ_S + MATERIAL * left))


def rates_around(record: JobRecord, others: Iterable[JobRecord]) -> dict[int, float]:
    """Units/s at the job's size and at those next to it; empty where only their ratios are known."""
    model = speed_of(record, others)
    if record.size is None or record.spec is None or record.spec.elastic is None or not model.known:
        return {}
    allowed: Sequence[int] = record.spec.elastic.allowed
    at = allowed.index(record.size)
    return {size: min(max(model.rate(size), SLOWEST), FASTEST) for size in allowed[max(0, at - 1) : at + 2]}


class SpeedModels:
    """Models of many jobs, worked out again where a job has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[JobRecord, SpeedModel]] = {}

    def of(self, records: Iterable[JobRecord], others: Iterable[JobRecord]) -> dict[str, SpeedModel]:
        """By job. A job of which only others alike were measured is looked at each time, for they change without it."""
        alike: dict[object, list[JobRecord]] = defaultdict(list)
        for other in others:
            if other.speeds is not None:
                alike[_kind(other)].append(other)
        kept = {}
        for record in records:
            known = self._known.get(record.id)
            if known is None or known[0] is not record or not (_measured(record) or _speed(record).hint):
                known = record, speed_of(record, alike[_kind(record)])
            kept[record.id] = known
        self._known = kept
        return {name: model for name, (_, model) in kept.items()}


def _measured(record: JobRecord) -> list[Measurement]:
    if record.speeds is None or not record.speeds.sizes:
        return []
    newest = max(each.at for each in record.speeds.sizes.values())
    return [
        Measurement(size, each.rate, (newest - each.at).total_seconds())
        for size, each in sorted(record.speeds.sizes.items())
    ]


def _speed(record: JobRecord) -> Speed:
    elastic = None if record.spec is None else record.spec.elastic
    return Speed() if elastic is None else elastic.speed


def _kind(record: JobRecord) -> tuple[str, str | None, tuple[str, ...]]:
    """Jobs of one kind are taken to be equally fast: the tenant, and what the workers of the elastic group run."""
    elastic = None if record.spec is None else record.spec.elastic
    group = "" if elastic is None else elastic.group
    first = next((task for task in record.tasks if task.name.rpartition("-")[0] == group), None)
    return record.tenant, None if first is None else first.image, () if first is None else tuple(first.command)

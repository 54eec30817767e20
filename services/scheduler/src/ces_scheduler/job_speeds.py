"""How fast each job is, and how much it has left to do. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ces_common.elastic import Speed
from ces_common.messages.records import JobRecord
from ces_core.malleable.speed import SpeedModel


def speed_of(record: JobRecord, others: Iterable[JobRecord]) -> SpeedModel:
    """The job's speed at each size, by its hint."""
    speed = _speed(record)
    return SpeedModel({} if speed is None else speed.hint)


def left_of(record: JobRecord) -> float | None:
    """Units left to do; None where the job does not say."""
    speed = _speed(record)
    return None if speed is None else speed.total


def _speed(record: JobRecord) -> Speed | None:
    elastic = None if record.spec is None else record.spec.elastic
    return None if elastic is None else elastic.speed

"""When the owner of a lent device usually needs it: a weekly calendar.

A forecast and no rule: the device is given back when its owner comes, and taken when that one is away, whatever the
calendar says. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from functools import cache, lru_cache
from typing import Annotated, Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import Field, field_validator

from ces_common.fields import Document
from ces_common.messages.base import Message

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
EXAMPLE: Final = "Mon-Fri 08:00-18:00, Sat 10:00-14:00"
MOST_SPANS: Final = 50
Times = Annotated[str, Field(min_length=1, max_length=1000, examples=[EXAMPLE])]
Zone = Annotated[str, Field(max_length=64, examples=["Europe/Berlin"])]
_DAY: Final = 24 * 60  # minutes
_SPAN = re.compile(r"([A-Z][a-z]{2})(?:-([A-Z][a-z]{2}))? (\d\d):(\d\d)-(\d\d):(\d\d)", re.ASCII)


class Span(NamedTuple):
    """``days``: numbers of weekdays, Monday is 0. ``begin``, ``end``: minutes after midnight; one that ends no later
    than it begins ends on the next day."""

    days: tuple[int, ...]
    begin: int
    end: int


class OwnerCalendar(Message):
    """``times``: when the owner needs the device each week, like :data:`EXAMPLE`; ``zone``: the IANA name of the time
    zone whose clocks count. A reader that does not understand it has no forecast."""

    times: Times
    zone: Zone = "UTC"

    def expected_at(self, now: datetime) -> datetime:
        """When the owner comes next by the calendar; ``now`` while that one is there. Raises ValueError for what this
        reader does not understand."""
        zone = zone_of(self.zone)
        begins = [begin for begin, end in self._times(now.astimezone(zone), zone) if end > now]
        return max(now, min(begins)).astimezone(UTC)

    def _times(self, local: datetime, zone: ZoneInfo) -> Iterator[tuple[datetime, datetime]]:
        """All of the next week, with what began the day before, by the clocks on the wall."""
        spans = spans_of(self.times)
        for ahead in range(-1, 8):
            day = local.date() + timedelta(days=ahead)
            midnight = datetime.combine(day, time(), zone)
            for days, begin, end in spans:
                if day.weekday() in days:
                    ends = end if end > begin else end + _DAY
                    yield midnight + timedelta(minutes=begin), midnight + timedelta(minutes=ends)


class CalendarRequest(Document):
    """``PUT /v1/nodes/{node}/calendar``: see :class:`OwnerCalendar`; what cannot be read is refused."""

    times: Times
    zone: Zone = "UTC"

    @field_validator("times")
    @classmethod
    def _readable(cls, value: str) -> str:
        plain = " ".join(value.split())
        spans_of(plain)
        return plain

    @field_validator("zone")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in _zones():
            raise ValueError(_no_zone(value))
        return value

    @property
    def calendar(self) -> OwnerCalendar:
        return OwnerCalendar(times=self.times, zone=self.zone)


@cache
def _zones() -> frozenset[str]:
    """Names that mean the same on every machine. Finding them reads hundreds of files."""
    return frozenset(available_timezones() - {"localtime"})


def zone_of(name: str) -> ZoneInfo:
    """Raises ValueError."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(_no_zone(name)) from error


def _no_zone(name: str) -> str:
    return f"{name!r} is no time zone; write its IANA name, like Europe/Berlin or UTC"


@lru_cache(maxsize=4096)
def spans_of(times: str) -> tuple[Span, ...]:
    """Raises ValueError, which says what to write instead."""
    parts = times.split(",")
    if len(parts) > MOST_SPANS:
        raise ValueError(f"has {len(parts)} times; {MOST_SPANS} at most")
    return tuple(_span(part.strip(" ")) for part in parts)


def _span(text: str) -> Span:
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no time of the week; write it like {EXAMPLE}")
    first, last = _day(found[1]), _day(found[2] or found[1])
    begin, end = (_minutes(*found.group(at, at + 1)) for at in (3, 5))
    if begin in (_DAY, end):
        raise ValueError(f"{text!r} has no length, or begins at 24:00; a whole day is 00:00-24:00")
    return Span(tuple((first + day) % 7 for day in range((last - first) % 7 + 1)), begin, end)


def _day(name: str) -> int:
    try:
        return DAYS.index(name)
    except ValueError:
        raise ValueError(f"{name!r} is no day of the week; they are {', '.join(DAYS)}") from None


def _minutes(hours: str, minutes: str) -> int:
    found = int(hours) * 60 + int(minutes)
    if int(minutes) > 59 or found > _DAY:
        raise ValueError(f"{hours}:{minutes} is no time of day; they go from 00:00 to 24:00")
    return found

"""When owners usually need their devices, as they write it down."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ces_common.messages.owner_calendar import DAYS, EXAMPLE, MOST_SPANS, CalendarRequest, OwnerCalendar, spans_of


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-11-26T22:00", "2026-11-27T07:00"),  # Thursday night, by the clocks of winter
        ("2026-11-27T08:00", "2026-11-27T08:00"),  # it is there
        ("2026-11-27T17:00", "2026-11-28T09:00"),  # the very minute in which it leaves; back on Saturday at ten
        ("2026-11-28T13:00", "2026-11-30T07:00"),  # not on Sunday
        ("2026-07-03T22:00", "2026-07-04T08:00"),  # by the clocks of summer
        ("2026-10-24T22:00", "2026-10-26T07:00"),  # on Monday at eight, though clocks go back meanwhile
    ],
)
def test_the_owner_comes_by_the_clocks_of_its_zone(now: str, expected: str) -> None:
    assert OwnerCalendar(times=EXAMPLE, zone="Europe/Berlin").expected_at(at(now)) == at(expected)


def test_a_time_may_go_over_midnight_and_days_over_the_end_of_the_week() -> None:
    nights = OwnerCalendar(times="Sat-Mon 22:00-06:00")
    assert nights.expected_at(at("2026-12-01T05:59")) == at("2026-12-01T05:59")  # since Monday night
    assert nights.expected_at(at("2026-12-01T06:00")) == at("2026-12-05T22:00")
    assert OwnerCalendar(times="Sun 00:00-24:00").expected_at(at("2026-12-07T00:00")) == at("2026-12-13T00:00")


@pytest.mark.parametrize(
    ("times", "remedy"),
    [
        ("always", f"write it like {EXAMPLE}"),
        ("Mon 8-9", f"write it like {EXAMPLE}"),
        ("mon 08:00-09:00", f"write it like {EXAMPLE}"),
        ("Mon \u0660\u0668:00-09:00", f"write it like {EXAMPLE}"),  # digits, but not these
        ("Mon 08:00-09:00,", f"write it like {EXAMPLE}"),
        ("Mon-Xxx 08:00-09:00", f"they are {', '.join(DAYS)}"),
        ("Mon 24:30-25:00", "from 00:00 to 24:00"),
        ("Mon 08:60-09:00", "from 00:00 to 24:00"),
        ("Mon 08:00-08:00", "a whole day is 00:00-24:00"),
        ("Mon 24:00-08:00", "a whole day is 00:00-24:00"),
        (", ".join(["Mon 08:00-09:00"] * (MOST_SPANS + 1)), f"{MOST_SPANS} at most"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_remedy(times: str, remedy: str) -> None:
    with pytest.raises(ValidationError, match=remedy):
        CalendarRequest(times=times)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "localtime", ""])
def test_a_zone_has_the_same_name_on_every_machine(zone: str) -> None:
    with pytest.raises(ValidationError, match="like Europe/Berlin"):
        CalendarRequest(times=EXAMPLE, zone=zone)


def test_what_is_asked_is_kept_on_one_line() -> None:
    asked = CalendarRequest(times="Mon-Fri\n08:00-18:00,\u2028 Sat  10:00-14:00")
    assert asked.calendar == OwnerCalendar(times=EXAMPLE)


@pytest.mark.parametrize("said", [{"times": "every full moon"}, {"times": EXAMPLE, "zone": "Mars/Olympus"}])
def test_a_reader_that_understands_less_has_the_record_and_no_forecast(said: dict[str, str]) -> None:
    calendar = OwnerCalendar.model_validate(said | {"later": True})
    with pytest.raises(ValueError, match="write it"):
        calendar.expected_at(at("2026-11-26T22:00"))


minutes = st.integers(0, 24 * 60 - 1)


@given(st.integers(0, 6), st.integers(0, 6), minutes, minutes, st.integers(0, 60 * 24 * 365))
def test_nobody_is_expected_later_than_in_a_week_or_earlier_than_now(
    first: int, last: int, begin: int, end: int, later: int
) -> None:
    if begin == end:
        end += 1
    span = f"{DAYS[first]}-{DAYS[last]} {begin // 60:02}:{begin % 60:02}-{end // 60:02}:{end % 60:02}"
    now = at("2026-01-01T00:00") + timedelta(minutes=later)
    expected = OwnerCalendar(times=span).expected_at(now)
    assert now <= expected <= now + timedelta(days=7)
    minute = expected.hour * 60 + expected.minute
    assert expected == now or (minute == begin and expected.weekday() in spans_of(span)[0].days)

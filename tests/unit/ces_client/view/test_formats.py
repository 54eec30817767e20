"""How values are written."""

from __future__ import annotations

from datetime import timedelta, timezone

from client_views import NOW, SOON

from ces_client.view.formats import moment, path_text, rate_range, span


def test_times_of_day_are_those_of_whoever_looks():
    there = NOW.astimezone(timezone(timedelta(hours=9)))
    assert moment(SOON, there) == "23:02"
    assert moment(SOON + timedelta(hours=1), there) == "Mon 00:02"
    assert moment(SOON + timedelta(days=8), NOW) == "30 Nov 14:02"
    assert moment(SOON + timedelta(days=60), NOW) == "2027-01-21 14:02"


def test_words():
    assert [span(s) for s in (-1, 42, 187, 7500, 356_400)] == ["0s", "42s", "3m07s", "2h05m", "4d03h"]
    assert rate_range(10**7, 5 * 10**7) == "10–50 Mbit/s"
    assert rate_range(500_000, 10**9) == "500 kbit/s – 1 Gbit/s"
    assert rate_range(10**7, 10**7) == "10 Mbit/s"
    assert [path_text([]), path_text(["a"]), path_text(["a", "b"])] == ["–", "within a", "a › b"]

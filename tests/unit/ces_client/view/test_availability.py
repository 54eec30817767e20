"""Availability in words."""

from __future__ import annotations

from ces_client.view.availability import availability_text
from ces_common.messages.availability import Availability


def test_what_was_learned_and_of_how_many_minutes() -> None:
    known = Availability(least=0.992134, mean=0.99875, n=1440)
    assert availability_text(known) == "at least 99.213 % (95 % sure), mean 99.875 %, n = 1440 minutes"
    assert availability_text(None) == "nothing learned yet"


def test_nothing_is_promised_for_ever() -> None:
    assert availability_text(Availability(least=0.9999999, mean=0.9999999, n=10**6)).startswith("at least 99.999 %")

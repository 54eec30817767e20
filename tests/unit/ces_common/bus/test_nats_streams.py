"""What is made of a stream that is there already."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nats.js import api

from ces_common import subjects
from ces_common.bus.nats_streams import EVENT_BYTES, STREAMS, corrected

EVENTS, DEAD, DESIRED = STREAMS


def there(desired: api.StreamConfig, **changes: object) -> api.StreamConfig:
    """As a server tells of it: with all that it filled in."""
    filled = replace(desired, num_replicas=1, max_consumers=-1, compression="none", metadata={"_nats.level": "0"})
    return replace(filled, **changes)


@pytest.mark.parametrize("desired", STREAMS)
def test_nothing_is_changed_where_all_is_well(desired: api.StreamConfig) -> None:
    assert corrected(desired, there(desired), 1) is None


@pytest.mark.parametrize(("there_are", "asked", "become"), [(1, 3, 3), (3, 1, None), (3, 3, None), (3, 5, 5)])
def test_replicas_are_added_and_never_taken_away(there_are: int, asked: int, become: int | None) -> None:
    change = corrected(EVENTS, there(EVENTS, num_replicas=there_are), asked)
    assert (change.num_replicas if change else None) == become


@pytest.mark.parametrize(
    ("there_are", "become"), [(-1, EVENT_BYTES), (1024, EVENT_BYTES), (EVENT_BYTES, None), (2 * EVENT_BYTES, None)]
)
def test_events_are_bounded_and_an_operator_may_allow_more(there_are: int, become: int | None) -> None:
    change = corrected(EVENTS, there(EVENTS, max_bytes=there_are), 1)
    assert (change.max_bytes if change else None) == become


def test_a_bucket_of_the_former_version_is_closed_to_direct_gets_and_its_changes_are_told() -> None:
    former = there(DESIRED, allow_direct=True, republish=None, placement=api.Placement(cluster="edge"))
    change = corrected(DESIRED, former, 1)
    assert change is not None
    assert change.allow_direct is False
    assert change.republish is not None
    assert change.republish.dest == f"{subjects.DESIRED_CHANGES}.>"
    assert change.placement == former.placement, "what CES does not speak of stays"


def test_no_stream_is_open_to_direct_gets() -> None:
    assert {stream.name: stream.allow_direct for stream in STREAMS} == dict.fromkeys(
        (subjects.EVENT_STREAM, subjects.DEAD_STREAM, subjects.DESIRED_STREAM), False
    )

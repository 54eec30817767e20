"""Pages of the queue: the order of the scheduler, or what it last reported."""

from __future__ import annotations

import pytest
from manager_world import World, ring
from queue_refusals import NARROW, page, queue_status, refuse

from ces_common.messages.api import QueuePage
from ces_manager.queue.live import QueueReport


def names(shown: QueuePage) -> list[tuple[int, str]]:
    return [(entry.position, entry.name) for entry in shown.items]


def test_the_queue_is_as_the_scheduler_has_it_and_then_come_those_it_has_not_told_of(world: World) -> None:
    jobs = {
        name: world.submit(ring(name, priority=priority))
        for name, priority in zip("abcde", (1, 2, 3, 4, 5), strict=True)
    }
    world.cancel(jobs["c"])
    told = QueueReport([queue_status(jobs[name], i) for i, name in enumerate("bca", 1)])
    assert names(page(world, told)) == [(1, "b"), (3, "a"), (4, "e"), (5, "d")]
    assert page(world, told).remark is None


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 7])
def test_pages_show_every_waiting_job_once(world: World, limit: int) -> None:
    jobs = [world.submit(ring(f"job-{i}")) for i in range(7)]
    for told in (QueueReport(), QueueReport([queue_status(jobs[i], place) for place, i in enumerate((4, 2, 0), 1)])):
        seen: list[str] = []
        after: str | None = "0"
        while after is not None:
            shown = page(world, told, int(after), limit)
            seen += [entry.name for entry in shown.items]
            after = shown.next
        assert sorted(seen) == [f"job-{i}" for i in range(7)]
        assert [entry[0] for entry in names(page(world, told))] == list(range(1, 8))


def test_without_the_scheduler_the_queue_shows_what_it_last_told(world: World) -> None:
    low, high = world.submit(ring("low", priority=10)), world.submit(ring("high", priority=90))
    refuse(world, queue_status(low, 1, reason=NARROW))
    shown = page(world, QueueReport(remark="the scheduler does not answer"))
    assert names(shown) == [(1, "high"), (2, "low")]
    assert shown.remark == "the scheduler does not answer"
    assert [entry.reason for entry in shown.items] == [None, NARROW]
    assert [entry.queue_status is not None for entry in shown.items] == [False, True]
    assert shown.items[0].id == high

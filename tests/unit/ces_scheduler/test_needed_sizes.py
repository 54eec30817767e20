"""The sizes at which waiting malleable jobs start for their deadlines."""

from __future__ import annotations

import pytest
from bus_manager import FakeManager
from malleable_records import LINKS, NAMES, START, malleable, places, rigid
from memory_bus import MemoryBus
from scheduler_steps import Clock, scheduler_on, step

from ces_common.states import JobState
from ces_core.registry import DEFAULT, get_solver
from ces_core.warm_up import warm_up
from ces_scheduler.deadline_shares import JobShare, Judgement
from ces_scheduler.needed_sizes import NeededSizes, needed_size

WAITS = malleable("w", [])


@pytest.mark.parametrize(
    ("share", "size"),
    [
        (None, 1),
        (JobShare(0, 4, 100.0), 1),  # it may still wait
        (JobShare(3, 4, 100.0), 3),
        (JobShare(3, 4, 100.0, kept=False), 1),  # no size brings it there in time
    ],
)
def test_it_is_what_the_deadline_asks_for_now(share: JobShare | None, size: int) -> None:
    assert needed_size(WAITS, share) == size


def test_rigid_and_suspended_jobs_stay_as_they_are() -> None:
    share = JobShare(3, 4, 100.0)
    assert needed_size(rigid("r", 5), share) is None
    assert needed_size(WAITS.model_copy(update={"state": JobState.SUSPENDED}), share) == 1


def test_nothing_is_new_while_nothing_changes() -> None:
    needed, waiting = NeededSizes(), [rigid("r", 2), WAITS]
    assert needed.of(waiting, Judgement()) is waiting
    asks = needed.of(waiting, Judgement({"w": JobShare(3, 4, 100.0)}))
    assert [record.size for record in asks] == [None, 3]
    assert len(asks[1].tasks) == 3
    assert needed.of(waiting, Judgement({"w": JobShare(3, 5, 90.0)})) is asks
    more = needed.of([*waiting, rigid("s", 1)], Judgement({"w": JobShare(3, 5, 90.0)}))
    assert more[1] is asks[1]
    assert needed.of(waiting, Judgement()) is waiting


async def test_a_job_starts_as_large_as_it_must_though_others_wait(bus: MemoryBus) -> None:
    """It takes 300 s with two. Beside it another waits, for which a job of its priority does not shrink."""
    warm_up(get_solver(DEFAULT))
    manager = FakeManager(bus)
    await manager.open()
    runs, other = (
        malleable("m", [*NAMES, "a"], 5, priority=90),
        rigid("r", 8).model_copy(update={"submitted_at": START}),
    )
    waits = malleable("w", [], work=600.0, due_s=350.0)
    manager.change(nodes=places(), links=LINKS, jobs=[runs, other, waits])
    scheduler = scheduler_on(bus, Clock())
    await step(scheduler, manager)
    assert [(plan.job, plan.size) for plan in manager.told("plan.proposed")] == [("w", 2)]
    await scheduler.reader.close()

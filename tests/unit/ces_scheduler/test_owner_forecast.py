"""Jobs go where no owner comes before they would have ended, if there is such a place."""

from __future__ import annotations

from datetime import timedelta

import pytest
from bus_manager import FakeManager
from cluster_state import NOW, job, node, view_of, wire
from malleable_records import LINKS, START, malleable, places
from memory_bus import MemoryBus
from queue_looks import SOON, decided, placing
from scheduler_steps import Clock, scheduler_on, step

from ces_common.messages.owner_calendar import OwnerCalendar
from ces_common.messages.records import JobRecord, NodeRecord
from ces_scheduler.offer import Offer, offer_of
from ces_scheduler.owner_forecast import UNSAID_S, OwnerForecast, expected_text

LINE = [*wire("a", "b")]
EXPECTED = "its owner is expected in 1 min"


def lent(name: str, after: timedelta, number: int = 1, zone: str = "UTC") -> NodeRecord:
    """Its owner comes then, each Thursday; it is a Thursday, and midnight."""
    begin = NOW + after
    return node(name, number, calendar=OwnerCalendar(times=f"Thu {begin:%H:%M}-23:00", zone=zone))


def offered(*nodes: NodeRecord) -> Offer:
    return offer_of(view_of(nodes, LINE))


@pytest.mark.parametrize(
    ("expected_s", "places"),
    [
        (2 * 3600, {"b"}),  # its owner comes in an hour and a half
        (3600, {"a", "b"}),
        (None, {"a", "b"}),  # does not say, and there is more than an hour left
    ],
)
def test_a_job_leaves_nodes_alone_whose_owners_come_before_its_end(expected_s: int | None, places: set[str]) -> None:
    offer = offered(lent("a", timedelta(hours=1, minutes=31)), node("b", 2))
    found = decided(job("q", tasks=2, expected_s=expected_s), offer)
    assert found.decision is not None
    assert set(found.assignments.values()) == places
    said = found.decision.refused.get("w-0", {}).get("a")
    assert said == (None if "a" in places else "its owner is expected in 90 min")


def test_where_all_owners_come_too_soon_the_job_goes_to_who_comes_later() -> None:
    """A job of ten hours."""
    nodes = [lent("a", timedelta(minutes=3)), lent("b", timedelta(hours=5, minutes=1), number=2)]
    found = decided(job("q", tasks=1, expected_s=36_000), offered(*nodes))
    assert set(found.assignments.values()) == {"b"}
    assert found.decision is not None
    assert found.decision.refused["w-0"] == {"a": "its owner is expected in 2 min"}
    assert expected_text(5 * 3600.0) == "its owner is expected in 5 h"


def test_a_task_that_is_bound_to_such_a_node_takes_no_other_along() -> None:
    offer = offered(lent("a", timedelta(minutes=2)).model_copy(update={"labels": {"site": "roof"}}), node("b", 2))
    bound = job("q", tasks=2)
    first, second = bound.tasks
    bound = bound.model_copy(update={"tasks": [first.model_copy(update={"labels": {"site": "roof"}}), second]})
    found = decided(bound, offer)
    assert found.assignments == {"w-0": "a", "w-1": "b"}
    assert found.decision is not None
    assert found.decision.refused == {"w-0": {"b": "label site is absent, not roof"}, "w-1": {"a": EXPECTED}}


def test_one_that_does_not_say_how_long_it_runs_leaves_an_hour() -> None:
    assert UNSAID_S == 3600
    found = decided(job("q", tasks=2), offered(lent("a", timedelta(minutes=60)), node("b", 2)))
    assert set(found.assignments.values()) == {"b"}


def test_where_there_is_no_other_place_it_goes_there_all_the_same() -> None:
    crowd = job("q", tasks=2, task={"cpu": 3000})
    found = decided(crowd, offered(lent("a", timedelta(minutes=2)), node("b", 2)))
    assert set(found.assignments.values()) == {"a", "b"}
    assert found.decision is not None
    assert "a" not in found.decision.refused.get("w-0", {})
    alone = decided(job("q", tasks=1), offered(lent("a", timedelta(0))))
    assert set(alone.assignments.values()) == {"a"}


def test_the_bound_is_of_all_nodes() -> None:
    """Using fewer of them for the owner's sake may cost something, and the bound must not hide that."""
    asked = job("q", tasks=2, task={"cpu": 2000})
    spared = decided(asked, offered(lent("a", timedelta(minutes=2)), node("b", 2))).decision
    free = decided(asked, offered(node("a", 1), node("b", 2)), placing()).decision
    assert spared is not None
    assert free is not None
    assert spared.metrics["composite"] < free.metrics["composite"]
    assert spared.bound is None or spared.bound >= free.metrics["composite"]


def test_a_zone_that_this_machine_does_not_know_is_no_forecast() -> None:
    offer = offered(lent("a", timedelta(0), zone="Mars/Olympus"), lent("b", timedelta(minutes=3), number=2))
    assert OwnerForecast.of(offer, SOON).comes_s == {"b": 120.0}


def coming(after: timedelta) -> list[NodeRecord]:
    """Four nodes of two cores. The owners of two come then."""
    begin = START + after
    calendar = OwnerCalendar(times=f"Mon-Sun {begin:%H:%M}-{begin + timedelta(hours=1):%H:%M}")
    return [each.model_copy(update={"calendar": calendar if each.name in "cd" else None}) for each in places()]


async def looked(bus: MemoryBus, nodes: list[NodeRecord], job: JobRecord, kind: str) -> dict[str, str]:
    """What is proposed of the job in a first look: its assignments."""
    manager = FakeManager(bus)
    await manager.open()
    manager.change(nodes=nodes, links=LINKS, jobs=[job])
    scheduler = scheduler_on(bus, Clock())
    await step(scheduler, manager)
    await scheduler.reader.close()
    (proposal,) = manager.told(kind)
    found: dict[str, str] = proposal.assignments
    return found


@pytest.mark.parametrize(("minutes", "nodes"), [(1, "ab"), (30, "abcd")])
async def test_a_job_grows_onto_a_device_whose_owner_comes_only_if_it_pays_until_then(
    bus: MemoryBus, minutes: int, nodes: str
) -> None:
    there = coming(timedelta(minutes=minutes))
    found = await looked(bus, there, malleable("m", ["a"], ran_s=3600.0), "resize.proposed")
    assert set(found.values()) == set(nodes)


@pytest.mark.parametrize(("minutes", "nodes"), [(1, "ab"), (30, "abcd")])
async def test_nor_does_it_start_larger_there(bus: MemoryBus, minutes: int, nodes: str) -> None:
    found = await looked(bus, coming(timedelta(minutes=minutes)), malleable("m", []), "plan.proposed")
    assert set(found.values()) == set(nodes)


@pytest.mark.parametrize(("hours", "high", "nodes"), [(5, 4, "ab"), (11, 8, "abcd")])
async def test_it_starts_larger_where_no_owner_comes_before_its_end(
    bus: MemoryBus, hours: int, high: int, nodes: str
) -> None:
    """A job of ten hours."""
    job = malleable("m", [], high=high, expected_s=36_000)
    assert set((await looked(bus, coming(timedelta(hours=hours)), job, "plan.proposed")).values()) == set(nodes)


async def test_nor_where_there_is_no_other_device(bus: MemoryBus) -> None:
    """An office whose devices are all needed in a minute."""
    nodes = coming(timedelta(minutes=1))
    nodes = [each.model_copy(update={"calendar": nodes[-1].calendar}) for each in nodes]
    assert len(await looked(bus, nodes, malleable("m", []), "plan.proposed")) == 1


async def test_a_deadline_is_no_reason_to_grow_for_a_moment(bus: MemoryBus) -> None:
    """It would be in time with eight workers, and half of them would be gone in a minute."""
    late = malleable("m", ["a"], work=3600.0, due_s=900.0)
    found = await looked(bus, coming(timedelta(minutes=1)), late, "resize.proposed")
    assert set(found.values()) == {"a", "b"}


async def test_a_device_that_a_job_holds_keeps_it_from_growing_nowhere_else(bus: MemoryBus) -> None:
    """By the calendar its owner is there; it is not, and may stay away all day."""
    found = await looked(bus, coming(timedelta(hours=0)), malleable("m", ["c"], ran_s=3600.0), "resize.proposed")
    assert found["w-0"] == "c"
    assert len(found) == 6
    assert set(found.values()) == {"a", "b", "c"}


async def test_no_job_gives_workers_to_one_that_could_not_use_them_for_long(bus: MemoryBus) -> None:
    """All that the larger job could give lies where owners come in a minute."""
    jobs = [malleable("small", ["a"], high=8), malleable("large", ["a", "c", "c", "d", "d"])]
    manager = FakeManager(bus)
    await manager.open()
    nodes = [each.model_copy(update={"cordoned": each.name == "b"}) for each in coming(timedelta(minutes=1))]
    manager.change(nodes=nodes, links=LINKS, jobs=jobs)
    scheduler = scheduler_on(bus, Clock())
    await step(scheduler, manager)
    await scheduler.reader.close()
    assert not manager.told("resize.proposed")

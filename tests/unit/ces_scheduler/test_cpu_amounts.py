"""Amounts of CPU that the scheduler proposes: more where it is idle, less where a job waits, shared between jobs."""

from __future__ import annotations

from typing import Any

import pytest
from bus_manager import FakeManager
from cluster_state import node
from malleable_records import LINKS, NAMES, malleable, places, rigid
from memory_bus import MemoryBus
from queue_looks import placing
from scheduler_steps import Clock, scheduler_on, step

from ces_common.messages.plans import CpuProposed, CpuRejected
from ces_common.messages.records import JobRecord
from ces_common.states import JobState
from ces_core.queue.parameters import Parameters, Tenant
from ces_core.registry import DEFAULT, get_solver
from ces_core.warm_up import warm_up
from ces_scheduler.cpu_amounts import GIVES_S
from ces_scheduler.cycle_run import Placing
from ces_scheduler.service import EVENTS, Scheduler


@pytest.fixture(autouse=True, scope="module")
def _warm() -> None:
    """A first call may compile, which takes more time than a look may."""
    warm_up(get_solver(DEFAULT))


def elastic(name: str, on: list[str], now: int = 1000, held: int | None = None, **fields: Any) -> JobRecord:
    """Workers that begin with a core each, of 250 to 1800 millicores, and have so many ``now``; ``held``: while that
    changes. Their number does not."""
    record = malleable(name, on, len(on), **fields)
    assert record.spec is not None
    file = record.spec.model_dump(mode="json", by_alias=True)
    file["elastic"] |= {"workers": {"min": len(on), "max": len(on)}, "cpu": {"min": "250m", "max": "1800m"}}
    spec = type(record.spec).model_validate(file)
    changed = {} if (now, held) == (1000, None) else {"cpu": held or now, "cpu_desired": now, "cpu_since": 1}
    allocations = [each.model_copy(update=changed) for each in record.allocations]
    return record.model_copy(update={"spec": spec, "allocations": allocations})


class Looks:
    """A scheduler that looks at jobs on four nodes of two cores, step by step."""

    def __init__(self, bus: MemoryBus, how: Placing | None) -> None:
        self.manager, self.clock = FakeManager(bus), Clock()
        self.scheduler: Scheduler = scheduler_on(bus, self.clock, how)
        self._told = 0

    async def open(self) -> None:
        await self.manager.open()
        await self.scheduler.reader.start(EVENTS, self.scheduler._event)

    async def at(self, *jobs: JobRecord, **more: Any) -> list[tuple[str, int]]:
        """What is proposed once these are as they are."""
        self.manager.change(jobs=list(jobs), **more)
        for _ in range(2):
            await step(self.scheduler, self.manager)
        found: list[CpuProposed] = self.manager.told("cpu.proposed")[self._told :]
        self._told += len(found)
        return [(each.job, each.cpu) for each in found]


async def looks(bus: MemoryBus, *jobs: JobRecord, how: Placing | None = None) -> tuple[Looks, list[tuple[str, int]]]:
    made = Looks(bus, how)
    await made.open()
    found = await made.at(*jobs, nodes=places(), links=LINKS)
    return made, found


async def test_a_job_alone_grows_to_its_most_and_rests_then(bus: MemoryBus) -> None:
    look, found = await looks(bus, elastic("m", ["a", "b"]))
    assert found == [("m", 1800)]
    (told,) = look.manager.told("cpu.proposed")
    assert (told.attempt, told.version) == (1, 1)
    assert await look.at(elastic("m", ["a", "b"], 1200)) == [], "as if only part of it had been had"
    look.clock.now += 61
    assert await look.at() == [("m", 1800)]


async def test_a_gang_has_no_more_than_its_slowest(bus: MemoryBus) -> None:
    """Beside another job of 400 millicores on one of its nodes."""
    beside = rigid("r", 1, 400)
    held = malleable("r", ["b"]).allocations
    _, found = await looks(
        bus, elastic("m", ["a", "b"]), beside.model_copy(update={"state": JobState.RUNNING, "allocations": held})
    )
    assert found == [("m", 1600)]


async def test_a_job_that_waits_gets_what_it_needs_and_starts(bus: MemoryBus) -> None:
    grown, asks = elastic("m", NAMES, 1800), rigid("r", 2, 600)
    look, found = await looks(bus, grown, asks)
    assert found == [("m", 1400)]
    giving = elastic("m", NAMES, 1400, held=1800)
    assert await look.at(giving) == [], "what it gives is not free yet, and nothing else is asked for"
    assert look.manager.told("plan.proposed") == []
    await look.at(elastic("m", NAMES, 1400))
    (plan,) = look.manager.told("plan.proposed")
    assert plan.job == "r"


async def test_a_node_that_does_not_say_that_it_has_given_is_waited_for_a_while(bus: MemoryBus) -> None:
    giving, other = elastic("m", ["a", "b"], 300, held=1800), elastic("o", ["c", "d"], 1800)
    look, found = await looks(bus, giving, other, rigid("r", 2, 600))
    assert found == []
    look.clock.now += GIVES_S + 1
    assert await look.at() == [("o", 1400)]


async def test_no_job_gives_to_a_less_urgent_one(bus: MemoryBus) -> None:
    asks = rigid("r", 2, 600).model_copy(update={"priority": 49})
    _, found = await looks(bus, elastic("m", NAMES, 1800), asks)
    assert found == []


async def test_nobody_grows_while_a_job_waits_that_no_amount_helps(bus: MemoryBus) -> None:
    look, found = await looks(bus, elastic("m", ["a", "b"], 400), rigid("r", 4, 1900))
    assert found == []
    over = rigid("r", 4, 1900).model_copy(update={"state": JobState.CANCELLED})
    assert await look.at(over) == [("m", 1800)]


async def test_the_least_urgent_gives_first(bus: MemoryBus) -> None:
    high, low = elastic("m", NAMES, 900, priority=60), elastic("o", NAMES, 900, priority=50)
    _, found = await looks(bus, high, low, rigid("r", 1, 500).model_copy(update={"priority": 70}))
    assert found == [("o", 600)]


async def test_jobs_share_and_what_one_is_to_have_another_gives_up_first(bus: MemoryBus) -> None:
    one, other = elastic("m", ["a", "b"], 1700), elastic("o", ["a", "c"], 250)
    look, found = await looks(bus, one, other)
    assert found == [("m", 1000)]
    assert await look.at(elastic("m", ["a", "b"], 1000, held=1700)) == [], "o has nothing yet that it could grow into"
    assert await look.at(elastic("m", ["a", "b"], 1000)) == [("o", 1000)]
    assert await look.at(elastic("o", ["a", "c"], 1000)) == [], "both have the same"


async def test_a_tenant_grows_to_its_quota_and_gives_to_its_own_job_that_waits_for_it(bus: MemoryBus) -> None:
    how = placing(parameters=Parameters(tenants=(Tenant("t", quota={"cpu": 0.3}), Tenant("default"))))
    look, found = await looks(bus, elastic("m", ["a", "b"], tenant="t"), how=how)
    assert found == [("m", 1200)], "2400 of 8000 millicores"
    look.clock.now += 61
    grown = elastic("m", ["a", "b"], 1200, tenant="t")
    mine = rigid("r", 1, 400).model_copy(update={"tenant": "t"})
    assert await look.at(grown, mine) == [("m", 1000)]
    assert await look.at(elastic("m", ["a", "b"], 1000, tenant="t")) == []
    (plan,) = look.manager.told("plan.proposed")
    assert plan.job == "r"


async def test_where_its_tenants_quota_lacks_no_other_tenant_gives(bus: MemoryBus) -> None:
    how = placing(parameters=Parameters(tenants=(Tenant("t", quota={"cpu": 0.1}), Tenant("default"))))
    over = rigid("r", 2, 600).model_copy(update={"tenant": "t"})
    _, found = await looks(bus, elastic("m", NAMES, 1500), over, how=how)
    assert found == [("m", 1800)]


@pytest.mark.parametrize("fields", [{"state": "unreachable"}, {"cordoned": True}, {"reclaimed": True}])
async def test_nobody_grows_on_a_node_that_is_not_to_have_more(bus: MemoryBus, fields: dict[str, Any]) -> None:
    look = Looks(bus, None)
    await look.open()
    there = [node(name, i + 1, cpu=2000, **(fields if name == "b" else {})) for i, name in enumerate(NAMES)]
    assert await look.at(elastic("m", ["a", "b"]), elastic("o", ["c"]), nodes=there, links=LINKS) == [("o", 1800)]


async def test_amounts_change_before_anybody_is_preempted(bus: MemoryBus) -> None:
    how = placing(parameters=Parameters(preemption=10))
    urgent = rigid("r", 2, 600).model_copy(update={"priority": 90})
    look, found = await looks(bus, elastic("m", NAMES, 1800), urgent, how=how)
    assert found == [("m", 1400)]
    assert look.manager.told("preemption.proposed") == []


async def test_where_amounts_do_not_help_somebody_is_preempted(bus: MemoryBus) -> None:
    how = placing(parameters=Parameters(preemption=10))
    urgent = rigid("r", 4, 1900).model_copy(update={"priority": 90})
    look, found = await looks(bus, elastic("m", NAMES, 1800), urgent, how=how)
    assert found == []
    (told,) = look.manager.told("preemption.proposed")
    assert [victim.job for victim in told.victims] == ["m"]


async def test_after_a_final_no_a_job_is_left_alone_for_a_while(bus: MemoryBus) -> None:
    look, found = await looks(bus, elastic("m", ["a", "b"]), elastic("o", ["c"]))
    assert found == [("m", 1800)]
    (told,) = look.manager.told("cpu.proposed")
    no = CpuRejected(change=told.change, job="m", attempt=1, reason="no")
    await look.manager.tell("cpu", "rejected", told.change, no)
    await look.manager.settled()
    assert await look.at() == [("o", 1800)]
    assert await look.at(elastic("o", ["c"], 1800)) == []
    look.clock.now += 2
    assert await look.at() == [("m", 1800)]


async def test_one_that_has_no_answer_is_proposed_again(bus: MemoryBus) -> None:
    look, found = await looks(bus, elastic("m", ["a", "b"]))
    assert found == [("m", 1800)]
    assert await look.at() == []
    look.clock.now += 6
    assert await look.at() == [("m", 1800)]

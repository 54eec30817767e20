"""With how much CPU jobs begin whose amount CES chooses, and for how long they wait for it."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from bus_manager import FakeManager
from cluster_state import node
from hypothesis import given
from hypothesis import strategies as st
from malleable_records import LINKS, NAMES, START, malleable, places
from memory_bus import MemoryBus
from queue_looks import placing
from scheduler_steps import Clock, ask, scheduler_on, step

from ces_common import subjects
from ces_common.messages.records import JobRecord
from ces_common.state_view import StateView
from ces_core.model.errors import PolicyError
from ces_core.queue.parameters import Parameters, Tenant
from ces_core.registry import DEFAULT, get_solver
from ces_core.warm_up import warm_up
from ces_scheduler import start_amounts
from ces_scheduler.offer import Offer, offer_of
from ces_scheduler.service import EVENTS, Scheduler
from ces_scheduler.start_amounts import PATIENCE, StartAmounts, most_each
from ces_scheduler.start_cpu import begins_with, waits_for_more

LONG_S = 100.0  # with the core that its file asks for
PATIENT_S = PATIENCE * LONG_S / 2  # with two, it would take half of that


def elastic(
    name: str = "m", workers: int = 1, on: list[str] | None = None, other: str = "", **fields: Any
) -> JobRecord:
    """Workers that ask for a core each, and may have from half a core to two; submitted now. ``other``: the CPU of a
    further task, if it has one."""
    values = {"submitted_at": START, "expected_s": LONG_S} | fields
    record = malleable(name, on or [], workers, **values)
    assert record.spec is not None
    file = record.spec.model_dump(mode="json", by_alias=True)
    file["elastic"] |= {"workers": {"min": workers, "max": workers}, "cpu": {"min": "500m", "max": "2"}}
    if other:
        file["tasks"].append({"name": "ps", "command": ["x"], "resources": {"cpu": other, "memory": "64Mi"}})
    spec = type(record.spec).model_validate(file)
    sized = spec.at_size(workers)
    return record.model_copy(
        update={"spec": spec, "size": workers, "tasks": sized.expand_tasks(), "flows": sized.expand_flows()}
    )


def begins(record: JobRecord, after_s: float = 0.0, amounts: StartAmounts | None = None, cpu: int = 2000) -> int | None:
    made = amounts or StartAmounts("patient", Parameters())
    (found,), _ = made.of([record], offer(cpu), START + timedelta(seconds=after_s))
    return begins_with(found)


def offer(cpu: int = 2000, *jobs: JobRecord) -> Offer:
    view = StateView()
    view.nodes.update({each.name: each for each in places(cpu)})
    view.jobs.update({each.id: each for each in jobs})
    return offer_of(view)


def test_a_job_waits_for_its_most_twice_as_long_as_less_would_cost_it() -> None:
    record, there = elastic(), offer()
    amounts = StartAmounts("patient", Parameters())
    waiting = [record]
    found, due_s = amounts.of(waiting, there, START)
    assert (begins_with(found[0]), due_s) == (2000, PATIENT_S)
    assert [task.cpu for task in found[0].tasks] == [2000]
    assert found[0].expected_s == LONG_S / 2, "the queue goes by how long it takes"
    assert waits_for_more(found[0])
    again, _ = amounts.of(waiting, there, START + timedelta(seconds=1))
    assert again is found, "nothing is new while nothing changes"
    last, due_s = amounts.of(waiting, there, START + timedelta(seconds=PATIENT_S))
    assert last is waiting
    assert due_s == math.inf


@pytest.mark.parametrize(
    "record",
    [
        elastic(expected_s=None),
        elastic(due_s=1000.0, work=100.0),
        malleable("m", [], 8, submitted_at=START, expected_s=LONG_S),
        elastic(on=["a"]),
    ],
    ids=["says not how long it takes", "has a deadline", "its CPU is fixed", "runs"],
)
def test_who_begins_as_asked(record: JobRecord) -> None:
    assert begins(record) is None


def test_where_others_are_stopped_for_urgent_jobs_nobody_waits_for_more() -> None:
    assert begins(elastic(), amounts=StartAmounts("patient", Parameters(preemption=10))) is None
    assert begins(elastic(), amounts=StartAmounts("even", Parameters())) is None


def test_no_job_waits_for_what_is_not_there() -> None:
    assert begins(elastic(), cpu=1700) == 1700
    assert begins(elastic(workers=5), cpu=1700) is None, "two on one of four nodes have 850 each"
    assert begins(elastic(workers=5), cpu=2400) == 1200
    quota = Parameters(tenants=(Tenant("t", quota={"cpu": 0.3}), Tenant("default")))
    assert begins(elastic(workers=2, tenant="t"), amounts=StartAmounts("patient", quota)) == 1200


def test_what_lacks_beside_cpu_counts_as_well() -> None:
    """Of four nodes of two cores, two have the label, and a node has memory for four workers."""
    there = [
        node(name, i + 1, cpu=2000, memory=2**30, labels={"site": "roof"} if i < 2 else {})
        for i, name in enumerate(NAMES)
    ]
    view = StateView()
    view.nodes.update({each.name: each for each in there})
    amounts, offered = StartAmounts("patient", Parameters()), offer_of(view)

    def most(record: JobRecord, **task: Any) -> int | None:
        tasks = [each.model_copy(update=task) for each in record.tasks]
        (found,), _ = amounts.of([record.model_copy(update={"tasks": tasks})], offered, START)
        return begins_with(found)

    assert most(elastic(workers=4)) == 2000
    assert most(elastic(workers=3), labels={"site": "roof"}) is None, "two on a node have what they ask for"
    assert most(elastic(workers=2), labels={"site": "roof"}) == 2000
    assert most(elastic(workers=1), labels={"site": "moon"}) is None
    assert most(elastic(workers=4), memory=2**31) is None
    assert most(elastic(workers=2), memory=2**30) == 2000


def test_what_other_tasks_of_the_job_need_is_not_its_workers() -> None:
    quota = Parameters(tenants=(Tenant("t", quota={"cpu": 0.5}), Tenant("default")))
    both = elastic(workers=2, tenant="t", other="1")
    assert begins(both, amounts=StartAmounts("patient", quota)) == 1500, "of four cores"


def test_a_tenant_that_the_queue_does_not_know_is_no_ones_end() -> None:
    only = Parameters(tenants=(Tenant("t"),))
    assert begins(elastic(tenant="gone"), amounts=StartAmounts("patient", only)) is None


def test_patience_ends_before_a_job_is_overdue() -> None:
    amounts = StartAmounts("patient", Parameters(bound_s=60.0, overdue=0.5))
    assert begins(elastic(), 29.0, amounts) == 2000
    assert begins(elastic(), 30.0, amounts) is None


@given(
    workers=st.integers(1, 6),
    capacities=st.lists(st.integers(100, 4000), min_size=1, max_size=5),
    asked=st.integers(50, 1000),
    more=st.integers(0, 3000),
)
def test_the_most_that_fits_and_nothing_beyond(workers: int, capacities: list[int], asked: int, more: int) -> None:
    there, most = np.array(capacities, dtype=float), asked + more

    def fits(cpu: int) -> bool:
        return bool(sum(capacity // cpu for capacity in capacities) >= workers)

    found = most_each(workers, np.stack([there, np.full(len(there), np.inf)]), asked, most)
    assert asked <= found <= most
    assert found == asked or fits(found)
    assert found == most or not fits(min(most, found + start_amounts.STEP))


def test_a_policy_chooses_and_where_it_fails_jobs_are_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    amounts = StartAmounts("tapfinger", Parameters())
    jobs = [elastic(f"j{i}") for i in range(14)]
    found, _ = amounts.of(jobs, offer(), START)
    given = [begins_with(each) or 1000 for each in found]
    assert all(500 <= cpu <= 2000 for cpu in given[:10])
    assert min(given) < 2000, "not all get the most where many wait"

    def fails(*_: Any) -> Any:
        raise PolicyError("no")

    monkeypatch.setattr(start_amounts, "advised", fails)
    found, _ = StartAmounts("tapfinger", Parameters()).of(jobs, offer(), START)
    assert {begins_with(each) for each in found} == {2000}


def test_a_policy_that_cannot_be_loaded_leaves_it_to_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Any) -> Any:
        raise PolicyError("no")

    monkeypatch.setattr(start_amounts, "load_amounts_policy", refused)
    assert begins(elastic(), amounts=StartAmounts("tapfinger", Parameters())) == 2000


def test_who_has_waited_long_enough_waits_for_no_more_whatever_the_policy_says_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = [8]
    monkeypatch.setattr(start_amounts, "advised", lambda *_: said)
    amounts, record = StartAmounts("tapfinger", Parameters()), elastic()
    assert begins(record, 0, amounts) is None, "half of two cores is what it asks for"
    said[:] = [12]
    assert begins(record, PATIENT_S - 1, amounts) == 1500
    said[:] = [16]
    assert begins(record, PATIENT_S, amounts) is None
    assert begins(record, PATIENT_S - 1, amounts) == 2000, "it is asked again while the job is patient"
    anew = record.model_copy(update={"attempt": 2})
    assert begins(anew, PATIENT_S, amounts) is None, "it waits since its submission"


class Looks:
    """A scheduler with patient jobs on two nodes of two cores."""

    def __init__(self, bus: MemoryBus) -> None:
        self.manager, self.clock = FakeManager(bus), Clock()
        self.scheduler: Scheduler = scheduler_on(bus, self.clock, placing(amounts="patient"))

    async def at(self, *jobs: JobRecord, **more: Any) -> None:
        self.manager.change(jobs=list(jobs), **more)
        for _ in range(2):
            await step(self.scheduler, self.manager)


@pytest.fixture
async def looks(bus: MemoryBus) -> Looks:
    warm_up(get_solver(DEFAULT))
    made = Looks(bus)
    await made.manager.open()
    await made.scheduler.reader.start(EVENTS, made.scheduler._event)
    return made


def held(name: str, on: str, cpu: int) -> JobRecord:
    """Runs there with so much since a while."""
    record = elastic(name, on=[on], since=START, started_at=START)
    changed = {"cpu": cpu, "cpu_desired": cpu, "cpu_since": 1}
    return record.model_copy(update={"allocations": [each.model_copy(update=changed) for each in record.allocations]})


NODES = {"nodes": [node(name, i + 1, cpu=2000) for i, name in enumerate(NAMES[:2])], "links": LINKS[:2]}


async def test_plans_say_with_how_much_workers_begin(looks: Looks) -> None:
    await looks.at(elastic("q"), held("m", "a", 2000), **NODES)
    (plan,) = looks.manager.told("plan.proposed")
    assert (plan.job, plan.cpu, plan.assignments) == ("q", 2000, {"w-0": "b"})


async def test_nobody_gives_up_cpu_while_a_job_is_patient_and_it_begins_with_less_later(looks: Looks) -> None:
    """Once it no longer waits for more, others make room."""
    await looks.at(elastic("q"), held("m", "a", 2000), held("o", "b", 2000), **NODES)
    assert looks.manager.told("plan.proposed") == []
    assert looks.manager.told("cpu.proposed") == []
    (refused,) = looks.manager.told("plan.refused")
    assert "begins with 1 core" in refused.reason.text
    assert not refused.reason.forever
    looks.clock.now += PATIENT_S + 1
    await looks.at()
    (change,) = looks.manager.told("cpu.proposed")
    assert (change.job, change.cpu) == ("m", 1000)
    await looks.at(held("m", "a", 1000))
    (plan,) = looks.manager.told("plan.proposed")
    assert (plan.job, plan.cpu, plan.assignments) == ("q", None, {"w-0": "a"})


async def test_those_that_run_grow_while_a_job_is_patient(looks: Looks) -> None:
    await looks.at(elastic("q"), held("m", "a", 1500), held("o", "b", 2000), **NODES)
    (change,) = looks.manager.told("cpu.proposed")
    assert (change.job, change.cpu) == ("m", 2000)


async def test_who_is_not_patient_is_made_room_for_however_many_others_are(looks: Looks) -> None:
    """The job comes last, and has a deadline: it begins with what it asks for."""
    patient = [elastic(f"q{i}") for i in range(6)]
    due = elastic("due", due_s=10_000.0, work=100.0, priority=1).model_copy(update={"admitted": True})
    await looks.at(
        *patient, due, held("m", "a", 2000).model_copy(update={"priority": 1}), held("o", "b", 2000), **NODES
    )
    (change,) = looks.manager.told("cpu.proposed")
    assert (change.job, change.cpu) == ("m", 1000)


async def test_who_could_never_begin_with_more_begins_with_what_it_asks_for(looks: Looks) -> None:
    """Beside its other task there is room for both workers on one node alone, with just that."""
    await looks.at(elastic("q", workers=2, other="1900m"), **NODES)
    (plan,) = looks.manager.told("plan.proposed")
    assert plan.cpu is None


async def test_a_dry_run_tells_with_how_much_workers_would_begin(looks: Looks, bus: MemoryBus) -> None:
    await bus.serve(subjects.rpc("scheduler", "plan"), looks.scheduler._dry_run)
    await looks.at(held("m", "a", 2000), **NODES)
    file = {
        "tasks": [{"name": "w", "command": ["x"], "resources": {"cpu": "1", "memory": "64Mi"}}],
        "flows": {},
        "elastic": {"group": "w", "workers": {"min": 1, "max": 1}, "cpu": {"min": "500m", "max": "2"}},
    }
    answer = await ask(bus, **file, duration="10m")
    assert (answer.feasible, answer.size, answer.cpu) == (True, 1, 2000)
    assert (await ask(bus, **file)).cpu is None
    await looks.at(held("o", "b", 2000))
    answer = await ask(bus, **file, duration="10m")
    assert not answer.feasible
    assert answer.reason is not None
    assert "begins with 1 core" in answer.reason.text

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
from malleable_records import LINKS, NAMES, START, malleable, places, rigid
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
    assert found[0].expected_s == LONG_S, "it may get less, and is counted on for as long as its file says"
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
    jobs = [elastic(f"j{i:02}") for i in range(14)]
    found, _ = amounts.of(jobs, offer(), START)
    given = [begins_with(each) for each in found]
    assert all(cpu is not None and 500 <= cpu < 2000 for cpu in given[:10]), "an empty node is not for one job alone"
    assert given[10:] == [2000] * 4, "those that it is not shown"

    def fails(*_: Any) -> Any:
        raise PolicyError("no")

    monkeypatch.setattr(start_amounts, "advised", fails)
    found, _ = StartAmounts("tapfinger", Parameters()).of(jobs, offer(), START)
    assert {begins_with(each) for each in found} == {2000}


def test_the_policy_is_shown_the_most_urgent_then_the_shortest_and_the_freest_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Any] = []

    def asked(ask: object, nodes: Any, waited: Any) -> list[int]:
        shown.append((nodes, waited))
        return [16, 8, 4]

    monkeypatch.setattr(start_amounts, "advised", asked)
    monkeypatch.setattr(start_amounts, "NODES_SHOWN", 3)
    runs = held("m", "a", 1000)
    jobs = [
        elastic("long", submitted_at=START - timedelta(seconds=10)),
        elastic("short", expected_s=LONG_S / 2),
        elastic("urgent", priority=60),
        elastic("longest", expected_s=2 * LONG_S),
    ]
    found, _ = StartAmounts("tapfinger", Parameters()).of(jobs, offer(2000, runs), START)
    assert [begins_with(each) for each in found] == [500, None, 2000, 2000], "8 of 16 are what it asks for"
    ((nodes, waited),) = shown
    assert [(node.capacity, node.free, list(node.running)) for node in nodes] == [(16, 16, [])] * 3
    assert len(waited) == 4
    assert waited[2] > waited[1] == 0


def test_a_policy_that_cannot_be_loaded_leaves_it_to_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Any) -> Any:
        raise PolicyError("no")

    monkeypatch.setattr(start_amounts, "load_amounts_policy", refused)
    assert begins(elastic(), amounts=StartAmounts("tapfinger", Parameters())) == 2000


def test_how_long_a_job_waits_does_not_depend_on_what_the_policy_says(monkeypatch: pytest.MonkeyPatch) -> None:
    said = [8]
    monkeypatch.setattr(start_amounts, "advised", lambda *_: said)
    amounts, record = StartAmounts("tapfinger", Parameters()), elastic()
    assert begins(record, 0, amounts) is None, "half of two cores is what it asks for"
    said[:] = [10]
    assert begins(record, PATIENT_S - 1, amounts) == 1250
    said[:] = [16]
    assert begins(record, PATIENT_S, amounts) is None
    assert begins(record.model_copy(update={"attempt": 2}), PATIENT_S, amounts) is None, "since its submission"


def test_who_could_never_begin_with_more_waits_for_no_more_on_this_ground() -> None:
    amounts, record = StartAmounts("patient", Parameters()), elastic()
    assert begins(record, 0, amounts) == 2000
    assert amounts.give_up({"m", "other"})
    assert begins(record, 1, amounts) is None
    assert not amounts.give_up({"m"})
    amounts.of([], offer(), START)
    assert begins(record, 2, amounts) is None, "also after it was away for a look"
    assert begins(record.model_copy(update={"attempt": 2}), 3, amounts) == 2000
    assert amounts.give_up({"m"})
    assert begins(record, 4, amounts) == 2000, "of another attempt"
    assert amounts.give_up({"m"})
    assert begins(record, 5, amounts, cpu=1900) == 1900, "on other nodes"


def test_a_dry_run_knows_what_others_wait_for_and_how_long_its_job_would() -> None:
    amounts = StartAmounts("patient", Parameters())
    one, other = elastic("m"), elastic("o")
    found, _ = amounts.of([one], offer(), START)
    assert amounts.as_given([one, other]) == [found[0], other]
    assert amounts.as_given([elastic("m")])[0] is not found[0], "another record of it"
    assert begins_with(amounts.alone(other, offer())) == 2000
    assert amounts.alone(other, offer(1000)) is other
    assert StartAmounts("patient", Parameters(overdue=0.0)).alone(other, offer()) is other
    assert StartAmounts("even", Parameters()).alone(other, offer()) is other


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


async def test_malleable_jobs_grow_while_a_job_is_patient(looks: Looks) -> None:
    grows = malleable("g", ["a"], 2, ran_s=36_000.0)
    full = held("o", "b", 1000)
    await looks.at(elastic("q"), grows, full, **NODES)
    assert [(each.job, each.size) for each in looks.manager.told("resize.proposed")] == [("g", 2)]


async def test_a_job_that_is_patient_delays_no_reservation_by_what_it_hopes_for(looks: Looks) -> None:
    """Two cores are free on one node, and an overdue job is to have all of both in a minute. The job would be done by
    then if it were twice as fast, and its file says that it is not."""
    holds = held("m", "a", 2000).model_copy(update={"expected_s": 60.0})
    overdue = rigid("r", 2, 2000).model_copy(update={"submitted_at": START - timedelta(days=1), "priority": 90})
    await looks.at(holds, overdue, elastic("q"), **NODES)
    assert looks.manager.told("plan.proposed") == []


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

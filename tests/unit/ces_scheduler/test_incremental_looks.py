"""Looks that take in only what has changed see what a look at everything sees, whatever the snapshots bring."""

from __future__ import annotations

from typing import Any

import pytest
from bus_manager import FakeManager
from cluster_state import MBIT, job, node, snapshot, view_of, wire
from hypothesis import given
from hypothesis import strategies as st
from memory_bus import MemoryBus
from scheduler_steps import Clock, scheduler_on

from ces_common.messages.records import JobRecord, NodeRecord, Snapshot, Topology
from ces_common.state_view import StateView
from ces_common.states import AllocationState, JobState
from ces_scheduler.cycle_input import is_queued
from ces_scheduler.holders import Holders
from ces_scheduler.offer import Offer, offer_of
from ces_scheduler.revisable_flows import Soundness
from ces_scheduler.waiting_jobs import WaitingJobs

LINKS = [*wire("n0", "n1"), *wire("n1", "n2")]
LIVE = ["queued", "planned", "running", "paused", "suspended", "rescheduling", "failed"]


def jobs() -> st.SearchStrategy[JobRecord]:
    def made(number: int, state: str, attempt: int, placed: bool, over: bool, rate: int) -> JobRecord:
        places = ["n0", "n2"] if placed else []
        flows = [(0, 1, rate * MBIT, ["n0", "n1", "n2"])] if placed else []
        allocation = {"state": "stopped"} if over else {}
        fields: dict[str, Any] = {"state": state, "attempt": attempt, "allocation": allocation}
        return job(f"j{number}", places, flows, tasks=2, **fields)

    return st.builds(
        made,
        st.integers(0, 4),
        st.sampled_from(LIVE),
        st.integers(1, 2),
        st.booleans(),
        st.booleans(),
        st.integers(0, 90),
    )


def nodes() -> st.SearchStrategy[NodeRecord]:
    state = st.sampled_from(["ready", "unreachable"])
    return st.builds(
        lambda number, cpu, state, cordoned: node(f"n{number}", number, cpu=cpu, state=state, cordoned=cordoned),
        st.integers(0, 2),
        st.sampled_from([4000, 8000]),
        state,
        st.booleans(),
    )


def snapshots() -> st.SearchStrategy[Snapshot]:
    """Changes and removals, or all of it, at times of another epoch. Changes of the present epoch."""
    topology = st.sampled_from([Topology(links=LINKS), Topology(links=LINKS[:2]), Topology()])
    change = st.builds(
        lambda changed, places, wires, gone_jobs, gone_nodes: Snapshot(
            epoch="",
            version=1,
            full=False,
            jobs=changed,
            nodes=places,
            topology=wires,
            removed_jobs=gone_jobs,
            removed_nodes=gone_nodes,
        ),
        st.lists(jobs(), max_size=3, unique_by=lambda each: each.id),
        st.lists(nodes(), max_size=1),
        st.none() | topology,
        st.lists(st.sampled_from(["j0", "j1", "j2"]), max_size=1),
        st.lists(st.sampled_from(["n0", "n1"]), max_size=1),
    )
    whole = st.builds(
        lambda epoch, all_jobs, all_nodes: snapshot(all_nodes, LINKS, all_jobs, epoch=epoch),
        st.sampled_from(["e", "f"]),
        st.lists(jobs(), max_size=4, unique_by=lambda each: each.id),
        st.lists(nodes(), max_size=3, unique_by=lambda each: each.name),
    )
    return change | change | whole


def holders_of(view: StateView) -> set[str]:
    return {each.key for each in view.jobs.values() if each.allocations and not each.released}


def seen(offer: Offer) -> tuple[object, ...]:
    cluster = offer.cluster
    amounts = (cluster.node_capacity, cluster.node_used, cluster.link_capacity, cluster.link_used, cluster.medium_used)
    held = {name: dict(cells) for name, cells in offer.held.items()}
    return offer.nodes, offer.topology, held, offer.records, cluster.topology.nodes, [each.tolist() for each in amounts]


@given(st.lists(st.tuples(snapshots(), st.booleans()), min_size=1, max_size=10))
def test_they_see_what_a_look_at_everything_sees(steps: list[tuple[Snapshot, bool]]) -> None:
    view = StateView()
    view.merge(snapshot([node("n0"), node("n1", 1), node("n2", 2)], LINKS))
    offer, waiting, soundness, holders = offer_of(view), WaitingJobs(), Soundness(), Holders()
    held: set[str] = set()
    for each, looked_at in steps:
        view.merge(each if each.full else each.model_copy(update={"epoch": view.epoch}))
        if not (looked_at and view.nodes):
            continue
        anew, offer = offer_of(view), offer_of(view, offer)
        assert seen(offer) == seen(anew)
        waiting.look(view)
        queued = {name: record for name, record in view.jobs.items() if is_queued(record)}
        assert waiting.jobs == queued
        assert {record.id for record in waiting.but({"j1"})} == queued.keys() - {"j1"}
        assert soundness.holds(view, offer) is Soundness().holds(view, anew)
        now = holders_of(view)
        assert holders.given_back(view) is bool(held - now)
        held = now


def test_a_look_at_nothing_new_is_the_last_one() -> None:
    view = view_of([node("n0")], jobs=[job("j", tasks=1), job("k", tasks=1)])
    offer, waiting = offer_of(view), WaitingJobs()
    waiting.look(view)
    told = waiting.but(frozenset("k"))
    view.merge(Snapshot(epoch=view.epoch, version=9, full=False))
    waiting.look(view)
    assert offer_of(view, offer) is offer
    assert waiting.but(frozenset("k")) is told
    assert waiting.but(frozenset()) is not told


class Unwalked(dict[str, JobRecord]):
    """Jobs that may be asked for by their ids only."""

    def _refuse(self, *_: object) -> Any:
        raise AssertionError("all jobs are looked at")

    __iter__ = items = values = keys = _refuse


async def test_a_step_looks_at_no_job_that_has_not_changed(bus: MemoryBus, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = FakeManager(bus)
    await manager.open()
    places = [node("n0"), node("n1", 1)]
    runs = [job(f"r{i}", ["n0", "n1"], [(0, 1, MBIT, ["n0", "n1"])]) for i in range(3)]
    large = [job(f"q{i}", tasks=1, task={"cpu": 64_000}) for i in range(9)]
    manager.change(nodes=places, links=wire("n0", "n1"), jobs=[*runs, *large])
    scheduler = scheduler_on(bus, Clock(), resync_s=3600, refill_s=3600)
    for _ in range(3):
        await scheduler.step()
    view = scheduler.reader.view
    monkeypatch.setattr(view, "jobs", Unwalked(view.jobs))
    monkeypatch.setattr("ces_scheduler.service.cycle_input", _refuse_to_look)
    for _ in range(3):
        await scheduler.step()
    monkeypatch.undo()
    monkeypatch.setattr(view, "jobs", Unwalked(view.jobs))
    manager.change(jobs=[job("new", tasks=1)])
    await scheduler.step()
    await manager.settled()
    assert [plan.job for plan in manager.told("plan.proposed")] == ["new"]
    monkeypatch.undo()
    await scheduler.reader.close()


async def test_no_cycle_is_held_while_nobody_waits(bus: MemoryBus) -> None:
    """Where workers end, nothing follows for an empty queue; a job that has left it is said to wait no more."""
    manager, held = FakeManager(bus), list[int]()
    await manager.open()
    runs = [job(f"r{i}", ["n0", "n1"]) for i in range(3)]
    large = job("large", tasks=1, task={"cpu": 64_000})
    manager.change(nodes=[node("n0"), node("n1", 1)], links=wire("n0", "n1"), jobs=[*runs, large])
    scheduler = scheduler_on(bus, Clock(), record=lambda state, *_: held.append(len(state.waiting)))
    await scheduler.step()
    manager.change(jobs=[large.model_copy(update={"state": JobState.CANCELLED})])
    await scheduler.step()
    assert held == [1, 0]
    for run in runs:
        over = [each.model_copy(update={"state": AllocationState.SUCCEEDED}) for each in run.allocations]
        manager.change(jobs=[run.model_copy(update={"state": JobState.SUCCEEDED, "allocations": over})])
        assert await scheduler.step() > 0
    assert held == [1, 0]
    manager.change(jobs=[job("new", tasks=1)])
    await scheduler.step()
    await manager.settled()
    assert held == [1, 0, 1]
    assert [plan.job for plan in manager.told("plan.proposed")] == ["new"]


def _refuse_to_look(*_: object) -> Any:
    raise AssertionError("nothing has changed")

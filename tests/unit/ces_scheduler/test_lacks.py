"""How much the nodes that were refused have too little, and how many nodes with how much a waiting job needs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bus_manager import FakeManager
from cluster_state import GIB, MBIT, job, node, view_of, wire
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_bus import MemoryBus
from queue_looks import SOON, decided, placing
from scheduler_steps import ask

from ces_common.messages.events import Lack, TooFewNodes
from ces_common.messages.queries import PlanAnswer
from ces_common.messages.records import JobRecord, NodeRecord
from ces_core.model.plan import Considered
from ces_core.registry import get_solver
from ces_core.search.diagnosis import SearchTrace
from ces_scheduler.deadline_shares import Judgement
from ces_scheduler.dry_run import answer_for
from ces_scheduler.job_problem import BESIDE, explain_refusals, lacks, problem_of
from ces_scheduler.offer import offer_of
from ces_scheduler.service import Scheduler

RESOURCES = ("cpu", "memory", "gpu")


@st.composite
def states(draw: st.DrawFn) -> tuple[list[NodeRecord], list[JobRecord], JobRecord]:
    """Nodes, jobs that run on them, and one that waits."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 4)))]
    nodes = [
        node(
            name,
            i,
            cpu=draw(st.integers(1, 4)) * 500,
            memory=draw(st.integers(1, 4)) * GIB,
            gpu=draw(st.integers(0, 1)),
            cordoned=draw(st.booleans()) and draw(st.booleans()),
        )
        for i, name in enumerate(names)
    ] + [node("switch", 9, cpu=0, memory=0)]
    asked = {"cpu": draw(st.integers(1, 1500)), "memory": draw(st.integers(1, 3 * GIB)), "gpu": draw(st.integers(0, 1))}
    running = [
        job(f"r{i}", [name], task={"cpu": draw(st.integers(1, 900)), "memory": GIB, "gpu": 0})
        for i, name in enumerate(draw(st.lists(st.sampled_from(names), max_size=3)))
    ]
    return nodes, running, job("q", tasks=draw(st.integers(1, 4)), task=asked)


def free_on(nodes: list[NodeRecord], running: list[JobRecord]) -> dict[str, dict[str, int]]:
    """By resource and node, counted from the records."""
    held = {resource: Counter[str]() for resource in RESOURCES}
    for record in running:
        for allocation in record.allocations:
            for resource in RESOURCES:
                held[resource][allocation.node] += getattr(record.tasks[allocation.rank], resource)
    return {
        resource: {each.name: max(0, getattr(each, resource) - held[resource][each.name]) for each in nodes}
        for resource in RESOURCES
    }


def check(told: dict[str, dict[str, list[Lack]]], refused: dict[str, dict[str, str]], state: Any) -> None:
    nodes, running, record = state
    free, tasks = free_on(nodes, running), {task.name: task for task in record.tasks}
    for task, by_node in told.items():
        for name, short in by_node.items():
            assert refused[task][name] in RESOURCES
            assert refused[task][name] in [each.resource for each in short]
            for each in short:
                assert each.needed == getattr(tasks[task], each.resource)
                assert each.available == free[each.resource][name]
                assert each.needed > each.available
    for task, row in refused.items():
        for name, why in row.items():
            if why in RESOURCES:
                assert told[task][name], "whoever was refused for an amount is told it"
            if why.endswith(BESIDE):
                resource = why.removesuffix(BESIDE)
                assert getattr(tasks[task], resource) <= free[resource][name]


@settings(max_examples=200, deadline=None)
@given(state=states(), solver=st.sampled_from(["alone", "greedy"]))
def test_told_amounts_are_those_of_the_records(state: Any, solver: str) -> None:
    nodes, running, record = state
    offer = offer_of(view_of(nodes, [], running))
    problem = problem_of(record, offer)
    considered: Considered = (
        SearchTrace.of(problem).considered if solver == "alone" else get_solver("greedy").solve(problem).considered
    )
    refused = explain_refusals(record.tasks, offer, considered)
    check(lacks(record.tasks, offer, refused, 2000), refused, state)


def dry_run(state: Any) -> PlanAnswer:
    nodes, running, record = state
    how, offer = placing(get_solver("greedy")), offer_of(view_of(nodes, [], running))
    guest = record.model_copy(update={"submitted_at": SOON})
    return answer_for(guest, 1, [], offer, [], None, how, set(), Judgement())


@settings(max_examples=60, deadline=None)
@given(state=states())
def test_a_dry_run_tells_amounts_and_nodes_that_anybody_can_count(state: Any) -> None:
    nodes, running, record = state
    answer = dry_run(state)
    check(answer.lacking, answer.refused, state)
    if answer.reason is None or answer.reason.nodes is None:
        return
    told, task = answer.reason.nodes, record.tasks[0]
    free = free_on(nodes, [] if answer.reason.forever else running)
    assert told.each == {resource: getattr(task, resource) for resource in told.each}
    usable = [each.name for each in nodes if each.cpu and not each.cordoned]
    places = [min(int(free[key][name] // amount) for key, amount in told.each.items()) for name in usable]
    assert (told.needed, told.available) == (len(record.tasks), sum(places))
    assert told.nodes == sum(each > 0 for each in places)
    assert told.needed > told.available


def test_a_job_that_needs_several_nodes_is_told_how_many_there_are() -> None:
    nodes = [node(name, i, cpu=1000) for i, name in enumerate("abcd")]
    running = [job(f"r{name}", [name], task={"cpu": 500}) for name in "abc"]
    waits = job("q", tasks=4, task={"cpu": 900})
    reason = decided(waits, offer_of(view_of(nodes, [], running))).reason
    assert reason is not None
    assert (reason.code, reason.resource, reason.needed, reason.available) == ("cpu-total", "cpu", 3600, 2500)
    assert reason.nodes == TooFewNodes(each={"cpu": 900}, needed=4, available=1, nodes=1, apart=True)
    assert reason.text == "4 nodes with 0.9 cores free are needed, and 1 that it may use has that"


def test_where_each_node_has_some_but_too_few_have_enough_it_is_no_question_of_totals() -> None:
    nodes = [node(name, i, cpu=2000) for i, name in enumerate("abcd")]
    running = [job("r", list("abc"), task={"cpu": 1200})]
    reason = decided(job("q", tasks=4, task={"cpu": 900}), offer_of(view_of(nodes, [], running))).reason
    assert reason is not None
    assert reason.code == "packing"
    assert (
        reason.text
        == "4 tasks need at least 0.9 cores each on one node, and nodes that they may use have that free 2 times"
    )


def test_a_link_that_is_too_narrow_is_told_as_before() -> None:
    nodes = [node("a", 1), node("b", 2)]
    waits = job("q", tasks=2, asked=[(0, 1, 80 * MBIT, 90 * MBIT)], task={"cpu": 3000})
    reason = decided(waits, offer_of(view_of(nodes, wire("a", "b", 50 * MBIT)))).reason
    assert reason is not None
    assert (reason.code, reason.nodes) == ("bandwidth-per-flow", None)


async def test_a_refused_dry_run_says_what_each_node_lacks(
    running: Scheduler, bus: MemoryBus, wired: FakeManager
) -> None:
    wired.change(jobs=[job("other", ["a"], task={"cpu": 3500, "memory": 3 * GIB + GIB // 2})])
    answer = await ask(bus)
    assert not answer.feasible
    short = [Lack(resource="cpu", needed=3000, available=500), Lack(resource="memory", needed=GIB, available=GIB // 2)]
    assert answer.lacking["w-0"] == {"a": short}
    assert answer.refused["w-0"]["a"] == "cpu"
    assert answer.reason is not None
    assert answer.reason.nodes == TooFewNodes(each={"cpu": 3000}, needed=2, available=1, nodes=1, apart=True)


def test_amounts_are_told_of_so_many_nodes_as_a_message_holds() -> None:
    nodes = [node(f"n{i}", i, cpu=100) for i in range(30)]
    offer, waits = offer_of(view_of(nodes)), job("q", tasks=10, task={"cpu": 900})
    considered = SearchTrace.of(problem_of(waits, offer)).considered
    refused = explain_refusals(waits.tasks, offer, considered)
    told = lacks(waits.tasks, offer, refused, 50)
    assert [len(by_node) for by_node in told.values()] == [5] * 10
    assert lacks(waits.tasks, offer, refused, 9) == {}
    assert all(len(by_node) == 30 for by_node in lacks(waits.tasks, offer, refused, 300).values())


def test_what_a_committed_plan_keeps_is_what_was_refused_for_too_little(compiled: None) -> None:
    nodes = [node("a", 1), node("b", 2, cpu=1000)]
    decision = decided(job("q", tasks=1, task={"cpu": 3000}), offer_of(view_of(nodes))).decision
    assert decision is not None
    kept = decision.considered()
    assert kept["refused"] == {"w-0": {"b": "cpu"}}
    assert kept["lacking"] == {"w-0": {"b": [{"resource": "cpu", "needed": 3000.0, "available": 1000.0}]}}

"""Shares of cards: where they fit, on which card they go, and what is said where they fit nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from bus_manager import FakeManager
from cluster_state import job, node, view_of
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_bus import MemoryBus
from queue_looks import decided
from scheduler_steps import LINKS, ask, proposals, step

from ces_common.messages.cards import Card, held_of
from ces_common.messages.records import JobRecord, Snapshot
from ces_common.states import JobState
from ces_core.model.reason import Reason
from ces_core.registry import get_solver
from ces_scheduler.card_choice import CardRoom, cards_for
from ces_scheduler.eligibility import refusal, unmet_constraints
from ces_scheduler.job_problem import explain_refusals, lacks, problem_of
from ces_scheduler.offer import GPU, Offer, offer_of
from ces_scheduler.service import Scheduler

GIB = 2**30


def t4(number: int, memory: int = 16) -> Card:
    return Card(id=f"T4-{number}", model="Tesla T4", memory=memory * GIB, shareable="counted")


def with_cards(name: str, number: int, *cards: Card, **fields: Any) -> Any:
    return node(name, number, gpu=len(cards), cards=cards, **fields)


NODES = [with_cards("a", 1, t4(0), t4(1)), with_cards("b", 3, t4(2)), node("s", 2, cpu=0, memory=0)]


def holder(name: str, share: int, card: str = "T4-0", memory: int = 0, on: str = "a") -> JobRecord:
    """One task with a share of a card; 0 for all of it."""
    gpu = {"gpu": 0 if share else 1, "gpu_share": share, "gpu_memory": memory or share * 16 * GIB // 1000}
    held = {"cards": [card], "gpu_share": gpu["gpu_share"], "gpu_memory": gpu["gpu_memory"]}
    return job(name, [on], task=gpu | {"cpu": 100}, allocation=held)


def asking(share: int, tasks: int = 1, name: str = "q", **more: Any) -> JobRecord:
    return job(name, tasks=tasks, task={"gpu": 0, "gpu_share": share, "cpu": 100} | more)


def offered(*jobs: JobRecord, nodes: Iterable[Any] = NODES) -> Offer:
    return offer_of(view_of(nodes, LINKS, jobs))


def chosen(record: JobRecord, offer: Offer, where: str = "a") -> list[list[str]]:
    return list(cards_for(record, record.tasks, {task.name: where for task in record.tasks}, offer).values())


def free(offer: Offer, record: JobRecord) -> list[float]:
    """GPUs that the solver is told are free, by node."""
    cluster = CardRoom(offer, {record.id: record}).narrowed(record.id, problem_of(record, offer)).cluster
    found: list[float] = np.round(cluster.node_free[GPU], 9).tolist()
    return found


def test_a_share_goes_on_the_fullest_card_that_has_room() -> None:
    offer = offered(holder("x", 400), holder("y", 700, "T4-1"))
    assert chosen(asking(300), offer) == [["T4-1"]]
    assert chosen(asking(400), offer) == [["T4-0"]]
    assert chosen(asking(700), offer) == [[]]
    assert chosen(asking(300, tasks=3), offer) == [["T4-1"], ["T4-0"], ["T4-0"]]


def test_whole_cards_are_those_of_which_nobody_has_a_share() -> None:
    offer = offered(holder("x", 10))
    whole = asking(0, gpu=1)
    assert chosen(whole, offer) == [["T4-1"]]
    assert free(offer, whole) == [1.0, 1.0, 0.0]
    assert free(offered(), whole) == [2.0, 1.0, 0.0]


def test_the_solver_is_told_what_cards_can_hold_of_the_job() -> None:
    """Of two cards with 600m each, two shares of 500m, and not the 1.2 GPUs that are free."""
    offer = offered(holder("x", 400), holder("y", 400, "T4-1"))
    assert free(offer, asking(500)) == [1.0, 1.0, 0.0]
    assert free(offer, asking(300)) == [1.2, 0.9, 0.0]
    assert free(offer, asking(700)) == [0.0, 0.7, 0.0]
    assert free(offer, asking(100, gpu_memory=6 * GIB)) == [0.2, 0.2, 0.0], "memory counts by itself"
    assert free(offer, asking(0)) == [1.2, 1.0, 0.0], "it asks for none"


def test_a_cluster_that_is_freer_than_it_is_now_is_judged_by_sums() -> None:
    """As it will be once others have ended: which cards are free then is not known."""
    offer, record = offered(holder("x", 900), holder("y", 900, "T4-1")), asking(500)
    problem, room = problem_of(record, offer), CardRoom(offer, {record.id: record})
    emptied = problem.on_empty_cluster()
    assert room.narrowed("q", problem).cluster.node_free[GPU].tolist() == [0.0, 1.0, 0.0]
    assert room.narrowed("q", emptied).cluster.node_free[GPU].tolist() == [2.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("held", "record", "text"),
    [
        ([400, 400], asking(700), "a task needs 700m of one card; 2 x 600m free, none has 700m"),
        ([0, 300], asking(800), "a task needs 800m of one card; 1 x 700m free, none has 800m"),
        ([0, 0], asking(10), "a task needs 10m of one card; all 2 cards are full"),
    ],
)
async def test_why_a_share_fits_nowhere(
    scheduler: Scheduler, manager: FakeManager, bus: MemoryBus, held: list[int], record: JobRecord, text: str
) -> None:
    jobs = [holder(f"h{i}", share, f"T4-{i}") for i, share in enumerate(held)]
    manager.change(nodes=[NODES[0]], jobs=[*jobs, record])
    await step(scheduler, manager)
    (told,) = manager.told("job.refused") or manager.told("plan.refused")
    assert (told.reason.code, told.reason.text) == ("gpu-share", text)


@pytest.mark.parametrize(
    ("nodes", "jobs", "record", "text"),
    [
        (
            [NODES[0]],
            [holder("x", 300, "T4-0", 12 * GIB), holder("y", 0, "T4-1")],
            asking(500),
            "a task needs 500m of one card; 1 x 700m free, but of memory those with 500m have 4 GiB at most",
        ),
        (
            [NODES[0]],
            [holder("x", 300, "T4-0", 12 * GIB), holder("y", 600, "T4-1")],
            asking(100, gpu_memory=9 * GIB),
            "a task needs 100m of one card with 9 GiB; 1 x 700m, 1 x 400m free, "
            "but of memory those with 100m have 6.4 GiB at most",
        ),
        (
            [NODES[0], with_cards("b", 3, t4(2), cordoned=True)],
            [holder("x", 400, "T4-0"), holder("y", 400, "T4-1")],
            asking(700),
            "a task needs 700m of one card; 2 x 600m free, none has 700m",
        ),
        (
            [with_cards("a", 1, t4(0), cordoned=True)],
            [],
            asking(700),
            "a task needs 700m of one card; no node that it may use now has such a card",
        ),
    ],
)
def test_what_is_said_to_be_free_is_what_the_task_could_use(
    nodes: list[Any], jobs: list[JobRecord], record: JobRecord, text: str
) -> None:
    room = CardRoom(offered(*jobs, nodes=nodes), {record.id: record})
    assert room.said(record.id, Reason("gpu-total", resource="gpu")).text() == text


def test_how_much_gpu_is_free_in_all_is_no_answer_to_who_asks_for_a_share() -> None:
    """Two halves are a whole GPU, and hold no share of 600m."""
    offer = offered(holder("x", 500), holder("y", 500, "T4-1"), nodes=[NODES[0]])
    record = asking(600)
    result = decided(record, offer)
    assert result.reason is not None
    room = CardRoom(offer, {record.id: record})
    problem = room.narrowed(record.id, problem_of(record, offer))
    considered = get_solver("greedy").solve(problem, seed=0).considered
    refused = explain_refusals(record.tasks, offer, considered)
    assert refused == {"w-0": {"a": "gpu"}}, "and not: beside the job's other tasks"
    assert lacks(record.tasks, offer, refused, 10) == {}


async def test_shares_are_placed_and_a_dry_run_names_the_card(
    running: Scheduler, bus: MemoryBus, wired: FakeManager
) -> None:
    wired.change(nodes=[NODES[0]], jobs=[holder("x", 400)])
    group = {"name": "w", "command": ["x"], "resources": {"cpu": "100m", "memory": "1Mi", "gpu": "600m"}}
    answer = await ask(bus, tasks=[group], flows={})
    assert answer.cards == {"w-0": ["T4-0"]}


async def test_jobs_that_start_together_share_a_card(scheduler: Scheduler, manager: FakeManager) -> None:
    manager.change(nodes=[NODES[0]], jobs=[asking(400, name=f"q{i}") for i in range(6)])
    await step(scheduler, manager)
    given = Counter(card for plan in proposals(manager) for card in plan.cards["w-0"])
    assert given == {"T4-0": 2, "T4-1": 2}


def test_which_nodes_have_no_such_card() -> None:
    plain = node("p", 4, gpu=1, cards=[Card(id="gpu0")])
    small = with_cards("m", 5, t4(5, memory=4))

    def task(**more: Any) -> Any:
        return asking(500, **more).tasks[0]

    assert refusal(task(), plain) == "shares no card between jobs"
    assert refusal(task(), node("n", 6)) == "has no card"
    assert refusal(task(gpu_memory=6 * GIB), small) == "its cards have 4 GiB at most, not 6 GiB"
    assert refusal(task(gpu_models=["P100", "V100"]), small) == "has no card of model P100 or V100"
    assert refusal(task(gpu_models=["t4"]), small) is None
    reason = unmet_constraints(asking(500, gpu_models=["P100"]).tasks, {each.name: each for each in (small, plain)})
    assert reason is not None
    assert reason.text.endswith("no node has a card that jobs share of model P100 (Tesla T4 exists)")


@settings(max_examples=200, deadline=None)
@given(
    held=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 60)), max_size=12),
    share=st.integers(1, 100),
    memory=st.sampled_from([0, 1, 3, 6]),
    tasks=st.integers(1, 8),
)
def test_as_many_fit_as_the_solver_is_told(held: list[tuple[int, int]], share: int, memory: int, tasks: int) -> None:
    """And no card gets more than it has."""
    full, jobs = Counter[int](), []
    for number, (card, part) in enumerate(held):
        if full[card] + part * 10 <= 1000:
            full[card] += part * 10
            jobs.append(holder(f"h{number}", part * 10, f"T4-{card}", on="a"))
    three = [with_cards("a", 1, *(t4(i) for i in range(3)))]
    record = asking(share * 10, tasks=tasks, gpu_memory=memory * GIB)
    offer = offered(*jobs, nodes=three)
    fits = round(free(offer, record)[0] / (share / 100) + 1e-9)
    got = [cards for cards in chosen(record, offer) if cards]
    assert len(got) == min(tasks, fits)
    room = {f"T4-{i}": [1000 - full[i], 16 * GIB - full[i] * 16 * GIB // 1000] for i in range(3)}
    for (card,) in got:
        more = held_of(t4(0), share * 10, memory * GIB)
        room[card] = [room[card][0] - more[0], room[card][1] - more[1]]
    assert all(left[0] >= 0 and left[1] >= -len(held) for left in room.values())


def test_shares_count_for_quotas_as_what_they_are_and_leave_nothing_behind() -> None:
    """Added and taken away a thousand times: a tenth is no whole number of halves, and whole cards fit afterwards."""
    view = view_of([NODES[0]], LINKS)
    offer = offer_of(view)
    for number in range(1000):
        gone = number % 2
        records = [holder(f"h{i}", 100 * (i + 1)) for i in range(3)]
        ended = [each.model_copy(update={"state": "succeeded", "allocations": []}) for each in records]
        changed = Snapshot(epoch="e", version=number + 2, full=False, jobs=ended if gone else records)
        view.merge(changed)
        offer = offer_of(view, offer)
        assert offer.cluster.node_used[GPU].tolist() == [0.0 if gone else 0.6]
    assert offer.cards == {}


def test_a_suspended_job_keeps_its_share() -> None:
    kept = holder("h", 400).model_copy(update={"state": JobState.SUSPENDED})
    offer = offered(kept)
    assert offer.cluster.node_used[GPU].tolist() == [0.4, 0.0, 0.0]
    assert chosen(asking(700), offer) == [["T4-1"]]


async def test_a_whole_card_is_not_made_of_halves(scheduler: Scheduler, manager: FakeManager) -> None:
    jobs = [holder("x", 500), holder("y", 500, "T4-1")]
    manager.change(nodes=[NODES[0]], jobs=[*jobs, asking(0, gpu=1)])
    await step(scheduler, manager)
    assert proposals(manager) == []
    manager.change(jobs=[jobs[0].model_copy(update={"state": "succeeded", "allocations": []})])
    await step(scheduler, manager)
    (plan,) = proposals(manager)
    assert plan.cards == {"w-0": ["T4-0"]}


async def test_without_shares_the_solver_is_told_just_what_it_was_told(scheduler: Scheduler) -> None:
    record, offer = asking(0, gpu=1), offered(holder("x", 0))
    problem = problem_of(record, offer)
    assert CardRoom(offer, {record.id: record}).narrowed(record.id, problem) is problem

"""What of a policy's decisions cards do not bear out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from bus_manager import FakeManager
from cluster_state import NOW, job, node, view_of
from memory_bus import MemoryBus
from queue_looks import SOON, placing
from scheduler_steps import LINKS, ask

from ces_common.messages.cards import Card
from ces_common.messages.records import JobRecord
from ces_core.model.reason import Reason
from ces_core.queue.parameters import Parameters
from ces_core.queue.reservations import Preempted
from ces_core.queue.state import Decisions, Refusal, Start
from ces_core.registry import get_solver
from ces_scheduler.card_decisions import not_started
from ces_scheduler.cycle_input import cycle_input
from ces_scheduler.cycle_run import CycleRun, run_cycle
from ces_scheduler.offer import GPU, offer_of
from ces_scheduler.service import Scheduler

GIB = 2**30
CARDS = [Card(id=f"c{i}", model="Tesla T4", memory=16 * GIB, shareable="counted") for i in range(3)]
NODES = [node("a", 1, gpu=3, cards=CARDS), node("s", 2, cpu=0, memory=0), node("b", 3)]
PREEMPTING = Parameters(preemption=20)
GREEDY = get_solver("greedy")


def holder(name: str, card: str, share: int = 0, allocation_memory: int = 0, **fields: Any) -> JobRecord:
    gpu = {"gpu": 0 if share else 1, "gpu_share": share}
    held = {"cards": [card], "gpu_share": share, "gpu_memory": allocation_memory or share * 16 * GIB // 1000}
    given = {"preemption": "stop", "priority": 10, "started_at": NOW} | fields
    return job(name, ["a"], task=gpu | {"cpu": 100}, allocation=held, **given)


def asking(name: str, priority: int = 90, **task: Any) -> JobRecord:
    return job(name, task={"gpu": 0, "cpu": 100} | task, priority=priority)


def run(
    held: list[JobRecord], waiting: list[JobRecord], parameters: Parameters = PREEMPTING, cards: int = 2
) -> CycleRun:
    nodes = [node("a", 1, gpu=cards, cards=CARDS[:cards]), *NODES[1:]]
    given = cycle_input(waiting, offer_of(view_of(nodes, LINKS, held)), [], SOON, parameters, None)
    return run_cycle(1, given, placing(GREEDY, parameters))


@pytest.mark.parametrize(
    ("task", "gone", "beside"),
    [
        ({"gpu_share": 600}, ("x",), {"w-0": ["c0"]}),
        ({"gpu": 1, "gpu_models": ["T4"]}, ("x",), {"w-0": ["c1"]}),
        ({"gpu": 2}, ("x", "y"), None),
    ],
)
def test_whoever_has_a_share_makes_room_of_a_card(
    task: dict[str, Any], gone: tuple[str, ...], beside: dict[str, list[str]] | None
) -> None:
    held = [holder("x", "c0", 500), holder("y", "c1", 500)]
    played = run(held, [asking("q", **task), asking("later", 25, gpu_share=300)])
    assert played.decisions.preempted == {"q": Preempted((), gone)}
    (kept,) = played.last.memory.reservations
    assert sorted(each.card for each in kept.plan.cards) == (["c0", "c1"] if len(gone) == 2 else ["c0"])
    left = {} if beside is None else {"later": beside}
    assert {name: each.cards for name, each in played.starts.items()} == left, "nobody else goes on what is kept"
    assert played.statuses[0].reason is not None
    assert played.statuses[0].reason.code == "preempting"


def test_nobody_makes_room_where_it_would_be_on_different_cards() -> None:
    """By sums, two that go leave 1.2 GPUs; but no card has 700m then."""
    stays = [holder(name, card, 400, priority=90) for name, card in (("v", "c0"), ("w", "c1"))]
    goes = [holder("x", "c0", 400), holder("y", "c1", 400)]
    played = run([*stays, *goes], [asking("q", gpu_share=700)])
    assert played.decisions.preempted == {}
    assert played.last.memory.reservations == ()
    assert played.statuses[0].reason is not None
    assert played.statuses[0].reason.text == "a task needs 700m of one card; 2 x 200m free, none has 700m"
    fits = run([*stays, *goes], [asking("q", gpu_share=600)])
    assert fits.decisions.preempted == {"q": Preempted((), ("x",))}


def test_only_those_of_the_right_card_make_room() -> None:
    """Who was started last would be the first to go, and is on the other card, with others that stay."""
    held = [
        holder("x", "c0", 500),
        holder("y", "c1", 300, started_at=SOON),
        holder("z", "c1", 300, priority=90),
    ]
    assert run(held, [asking("q", gpu_share=900)]).decisions.preempted == {"q": Preempted((), ("x",))}


def test_memory_of_a_card_that_comes_free_counts_by_itself() -> None:
    full = holder("x", "c0", 100, allocation_memory=15 * GIB)
    stays = holder("y", "c1", 100, priority=90, allocation_memory=15 * GIB)
    played = run([full, stays], [asking("q", gpu_share=500, gpu_memory=8 * GIB)])
    assert played.decisions.preempted == {"q": Preempted((), ("x",))}


def test_a_card_is_kept_for_a_job_that_has_waited_long() -> None:
    """One that would delay it waits, and one that fits beside it on its card does not."""
    held = [holder("x", "c0", 500, expected_s=600), holder("y", "c1", 500, priority=90, expected_s=60_000)]
    first = asking("first", 50, gpu_share=600).model_copy(update={"submitted_at": SOON - timedelta(days=1)})
    others = [asking("long", 50, gpu_share=500), asking("small", 50, gpu_share=400)]
    played = run(held, [first, *others], Parameters(reservations=1))
    (kept,) = played.last.memory.reservations
    assert (kept.job, [each.card for each in kept.plan.cards]) == ("first", ["c0"])
    assert kept.start_s == pytest.approx((NOW + timedelta(seconds=600)).timestamp())
    assert {name: each.cards["w-0"] for name, each in played.starts.items()} == {"long": ["c1"], "small": ["c0"]}


def test_a_reservation_follows_into_the_next_look() -> None:
    held = [holder("x", "c0", 500, expected_s=600)]
    first = asking("first", 50, gpu_share=600).model_copy(update={"submitted_at": SOON - timedelta(days=1)})
    parameters = Parameters(reservations=1)
    nodes = [node("a", 1, gpu=1, cards=CARDS[:1]), *NODES[1:]]
    offer = offer_of(view_of(nodes, LINKS, held))
    played = run_cycle(1, cycle_input([first], offer, [], SOON, parameters, None), placing(GREEDY, parameters))
    assert played.last.by_card
    later = cycle_input([first, asking("long", 50, gpu_share=500)], offer, [], SOON, parameters, played.last)
    again = run_cycle(2, later, placing(GREEDY, parameters))
    assert [each.job for each in again.last.memory.reservations] == ["first"]
    assert again.starts == {}, "it would hold what is kept for longer"
    whole = cycle_input([asking("w", gpu=1)], offer_of(view_of(nodes, LINKS, [])), [], SOON, parameters, again.last)
    assert whole.state.ledger.base.cards is None, "nobody asks for a share any more, and nobody has one"
    assert run_cycle(3, whole, placing(GREEDY, parameters)).starts["w"].cards == {"w-0": ["c0"]}


async def test_a_dry_run_says_who_would_make_room(running: Scheduler, bus: MemoryBus, wired: FakeManager) -> None:
    wired.change(nodes=NODES, jobs=[holder("x", "c0", 500), holder("y", "c1", 500), holder("z", "c2", 500)])
    group = {"name": "w", "command": ["x"], "resources": {"cpu": "100m", "memory": "1Mi", "gpu": "600m"}}
    answer = await ask(bus, tasks=[group], flows={}, priority=90)
    assert not answer.feasible
    assert answer.reason is not None
    assert answer.reason.text == "a task needs 600m of one card; 3 x 500m free, none has 600m"
    assert answer.refused["w-0"]["a"] == "gpu-share: 3 x 500m free, none has 600m"


def test_a_job_for_which_others_have_left_no_card_waits_and_says_so() -> None:
    """By sums, what two shares leave of three cards is a whole one."""
    held = [holder("x", "c0", 500)]
    shares = [asking(name, priority, gpu_share=600) for name, priority in (("p", 60), ("q", 55))]
    whole = [asking("w", 50, gpu=1), asking("v", 45, gpu=1)]
    played = run(held, [*shares, *whole], Parameters(), cards=3)
    assert {name: each.cards for name, each in played.starts.items()} == {"p": {"w-0": ["c1"]}, "q": {"w-0": ["c2"]}}
    assert [start.job for start in played.decisions.starts] == ["p", "q"]
    assert [(each.job, each.position) for each in played.statuses] == [("w", 1), ("v", 2)]
    assert played.statuses[0].reason is not None
    assert played.statuses[0].reason.text == "task w-0 needs 1 gpu on one node; the largest free node (a) has 0 gpu"
    assert "w" in played.last.entries, "it goes on waiting"
    assert played.last.offer.cluster.node_used[GPU].tolist() == [1.7, 0.0, 0.0]
    assert played.started.keys() == played.starts.keys()


def test_a_job_that_alone_finds_no_card_is_not_tried_again_before_something_is_freed() -> None:
    start = Start("w", None)  # type: ignore[arg-type]
    reason = Reason("gpu-share", where="none is free")
    told = not_started(Decisions((start,)), {"w": reason}, 7)
    assert (told.starts, told.refused) == ((), {"w": reason})
    assert told.memory.refusals == {"w": Refusal(7, reason)}
    assert [(each.job, each.reason) for each in told.queue] == [("w", reason)]

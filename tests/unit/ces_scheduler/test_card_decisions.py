"""What of a policy's decisions cards do not bear out."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_state import NOW, job, node, view_of
from queue_looks import SOON, placing
from scheduler_steps import LINKS

from ces_common.messages.cards import Card
from ces_common.messages.records import JobRecord
from ces_core.model.reason import Reason
from ces_core.queue.parameters import Parameters
from ces_core.queue.reservations import Preempted, Reservation
from ces_core.queue.scores import NO_SCORE
from ces_core.queue.state import Decisions, Memory, Refusal, Start
from ces_core.queue.status import QueueStatus
from ces_core.registry import get_solver
from ces_scheduler.card_decisions import decided, not_started
from ces_scheduler.cycle_input import cycle_input
from ces_scheduler.cycle_run import CycleRun, run_cycle
from ces_scheduler.offer import GPU, offer_of

GIB = 2**30
CARDS = [Card(id=f"c{i}", model="Tesla T4", memory=16 * GIB, shareable="counted") for i in range(3)]
NODES = [node("a", 1, gpu=3, cards=CARDS), node("s", 2, cpu=0, memory=0), node("b", 3)]
PREEMPTING = Parameters(preemption=20)


def holder(name: str, card: str, share: int = 0, **fields: Any) -> JobRecord:
    gpu = {"gpu": 0 if share else 1, "gpu_share": share}
    held = {"cards": [card], "gpu_share": share, "gpu_memory": share * 16 * GIB // 1000}
    given = {"preemption": "stop", "priority": 10, "started_at": NOW} | fields
    return job(name, ["a"], task=gpu | {"cpu": 100}, allocation=held, **given)


def asking(name: str, priority: int = 90, **task: Any) -> JobRecord:
    return job(name, task={"gpu": 0, "cpu": 100} | task, priority=priority)


def run(
    held: list[JobRecord], waiting: list[JobRecord], parameters: Parameters = PREEMPTING, cards: int = 2
) -> CycleRun:
    nodes = [node("a", 1, gpu=cards, cards=CARDS[:cards]), *NODES[1:]]
    given = cycle_input(waiting, offer_of(view_of(nodes, LINKS, held)), [], SOON, parameters, None)
    return run_cycle(1, given, placing(get_solver("greedy"), parameters))


@pytest.mark.parametrize("task", [{"gpu_share": 600}, {"gpu": 1, "gpu_models": ["T4"]}])
def test_nobody_makes_room_for_shares_or_models(task: dict[str, Any]) -> None:
    held = [holder("x", "c0", 500), holder("y", "c1", 500)]
    waiting = [asking("q", **task), asking("later", 50, cpu=200)]
    played = run(held, waiting)
    assert played.decisions.preempted == {}
    assert [each for each in played.last.memory.reservations if each.preempted is not None] == []
    assert list(played.starts) == ["later"], "no room is kept that nobody makes"
    (told,) = played.statuses
    assert told.job == "q"
    assert told.reason is not None
    assert told.reason.code != "preempting"
    if "gpu_share" in task:
        assert told.reason.text == "a task needs 600m of one card; 2 x 500m free, none has 600m"


def test_others_make_room_as_before() -> None:
    held = [holder("x", "c0"), holder("y", "c1")]
    share, whole = asking("q", gpu_share=600), asking("w", 80, gpu=1)
    played = run(held, [share, whole])
    assert list(played.decisions.preempted) == ["w"]
    assert {each.job: each.reason.code for each in played.statuses if each.reason} == {
        "q": "gpu-share",
        "w": "preempting",
    }


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
    assert played.statuses[0].reason.text == "a task needs 1 whole card on one node; a has 0 free"
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


def test_a_policy_that_goes_on_preempting_is_not_followed() -> None:
    offer = offer_of(view_of(NODES, LINKS))
    state = cycle_input([asking("q", gpu_share=600)], offer, [], SOON, PREEMPTING, None).state
    gone = Preempted((), ("x",))
    kept = [Reservation(name, (0, 0.0), None, {}, ("x",), gone) for name in ("q", "w")]  # type: ignore[arg-type]
    status = [QueueStatus(name, 1, NO_SCORE, Reason("preempting"), True, 9.0, ("x",)) for name in ("q", "w")]
    wanted = Decisions((), Memory(3, tuple(kept)), {}, {"q": gone, "w": gone}, _explain=lambda: tuple(status))
    _, told = decided(lambda _: wanted, state, 20, {"q"})
    assert told.preempted == {"w": gone}
    assert told.memory.reservations == (kept[1],)
    assert told.queue[0].reason is not None
    assert told.queue[0].reason.code == "packing"
    assert told.queue[1] is status[1]

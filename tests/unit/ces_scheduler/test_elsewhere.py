"""Whether jobs have places elsewhere before their node is drained."""

from __future__ import annotations

from bus_manager import FakeManager
from cluster_state import GIB, job, node, view_of, wire
from memory_bus import MemoryBus
from queue_looks import placing

from ces_common import subjects
from ces_common.messages.queries import DrainAnswer, DrainQuery
from ces_common.messages.records import JobRecord
from ces_scheduler import elsewhere
from ces_scheduler.elsewhere import places_elsewhere
from ces_scheduler.offer import offer_of
from ces_scheduler.service import Scheduler

NODES = [node("a", 1), node("s", 2, cpu=0, memory=0), node("b", 3)]
LINKS = [*wire("a", "s"), *wire("s", "b")]


def holds(name: str, where: str, cpu: int, tasks: int = 1) -> JobRecord:
    return job(name, [where] * tasks, task={"cpu": cpu, "memory": GIB // 4}, state="running")


def asked(node_name: str, *jobs: JobRecord, nodes: list = NODES) -> DrainAnswer:
    offer = offer_of(view_of(nodes, LINKS, jobs))
    return places_elsewhere(node_name, 7, offer, placing())


def test_a_job_has_a_place_where_the_others_have_room_for_all_of_it() -> None:
    answer = asked("a", holds("small", "a", 1000), holds("large", "a", 3000), holds("other", "b", 2000))
    assert answer.version == 7
    assert answer.places == ["small"]
    assert set(answer.reasons) == {"large"}
    assert "the largest free node (b) has 2 cores" in answer.reasons["large"]


def test_what_a_job_holds_elsewhere_is_its_own_to_use() -> None:
    spread = job("spread", ["a", "b"], task={"cpu": 2000, "memory": GIB}, state="running")
    assert asked("a", spread).places == ["spread"], "both tasks fit b once it has given back what it holds there"
    assert asked("a", spread, holds("other", "b", 1000)).places == []


def test_nothing_is_said_of_jobs_that_are_not_there_or_of_a_node_that_is_unknown() -> None:
    assert asked("a", holds("other", "b", 1000)) == DrainAnswer(version=7)
    assert asked("nobody", holds("other", "b", 1000)) == DrainAnswer(version=7)


def test_where_nobody_else_takes_work_there_is_no_place() -> None:
    alone = [node("a", 1), node("b", 3, cordoned=True)]
    assert set(asked("a", holds("j", "a", 100), nodes=alone).reasons) == {"j"}


def test_of_those_that_take_too_long_nothing_is_said() -> None:
    offer = offer_of(view_of(NODES, LINKS, [holds(f"j{i}", "a", 100) for i in range(4)]))
    ticks = iter(range(0, 1000, 4))
    answer = places_elsewhere("a", 1, offer, placing(), lambda: float(next(ticks)))
    assert 0 < len(answer.places) < 4
    assert answer.reasons == {}
    assert elsewhere.LONGEST_S == 10


async def test_the_scheduler_answers_and_does_nothing(running: Scheduler, bus: MemoryBus, wired: FakeManager) -> None:
    wired.change(jobs=[holds("j", "a", 1000)])
    raw = await bus.request(subjects.rpc("scheduler", "drain"), DrainQuery(node="a").encode())
    assert DrainAnswer.model_validate_json(raw).places == ["j"]
    await wired.settled()
    assert wired.facts == []

"""Paths for a task that is to move, beside all that is held."""

from __future__ import annotations

from bus_manager import FakeManager
from cluster_state import MBIT, job, node, view_of, wire
from memory_bus import MemoryBus

from ces_common import subjects
from ces_common.messages.moves import MoveAnswer, MoveQuery
from ces_common.messages.records import AllocationRecord, FlowRecord, JobRecord, LinkRecord, Moving
from ces_common.task_move import MoveState
from ces_scheduler.move_paths import paths_of_move
from ces_scheduler.offer import offer_of
from ces_scheduler.revisable_flows import revisable_flows
from ces_scheduler.service import Scheduler

NODES = [node("a", 1), node("s", 2, cpu=0, memory=0), node("b", 3), node("c", 4), node("d", 5)]
LINKS = [*wire("a", "s"), *wire("s", "b"), *wire("s", "c")]
QUERY = MoveQuery(job="j", task="w-0", node="c")


def pair(rate: int = 20 * MBIT, **fields: object) -> JobRecord:
    """Flows both ways between w-0 on a and w-1 on b."""
    return job("j", ["a", "b"], [(0, 1, rate, ["a", "s", "b"]), (1, 0, MBIT, ["b", "s", "a"])], **fields)


def asked(*jobs: JobRecord, query: MoveQuery = QUERY, links: list[LinkRecord] = LINKS) -> MoveAnswer:
    return paths_of_move(query, 7, offer_of(view_of(NODES, links, jobs)))


def test_flows_of_the_task_get_paths_to_the_node_that_was_named() -> None:
    answer = asked(pair())
    assert (answer.version, answer.reason) == (7, None)
    assert [(flow.src, flow.path) for flow in answer.flows] == [("w-0", ["c", "s", "b"]), ("w-1", ["b", "s", "c"])]
    assert [flow.rate for flow in answer.flows] == [20 * MBIT, MBIT]


def test_what_the_flows_have_now_is_not_theirs_to_use_again() -> None:
    least = pair(60 * MBIT)
    least = least.model_copy(update={"flows": [f.model_copy(update={"min": f.max}) for f in least.flows]})
    reason = asked(least).reason
    assert reason == "no paths have room for its flows beside what they have now", "60 and 60 of 95 Mbit/s"


def test_where_no_path_leads_or_nothing_is_known_it_says_so() -> None:
    assert asked(pair(), query=MoveQuery(job="j", task="w-0", node="d")).reason is not None
    assert asked(pair(), query=MoveQuery(job="j", task="w-0", node="z")).reason == "node z is not there"
    assert "does not know yet" in (asked().reason or "")


def test_what_is_held_for_a_move_is_no_one_elses_and_its_flows_are_left_alone() -> None:
    new = AllocationRecord(id="new", task="w-0", rank=0, node="c", address="10.77.4.2", port=1)
    flow = FlowRecord(number=9, src="w-0", dst="w-1", min=1, max=MBIT, rate=MBIT, path=["c", "s", "b"])
    moving = pair(moving=Moving(move="m", state=MoveState.RESERVED, task="w-0", beside=new, reserved=[flow]))
    view = view_of(NODES, LINKS, [moving])
    offer = offer_of(view)
    index = offer.cluster.topology.node_index
    assert offer.cluster.node_used[0, index["a"]] == offer.cluster.node_used[0, index["c"]] == 500
    link = offer.cluster.topology.link_index[index["s"], index["b"]]
    assert offer.cluster.link_used[link] == 21 * MBIT
    assert revisable_flows(view, offer).flows == ()


async def test_the_manager_asks_over_the_bus(running: Scheduler, bus: MemoryBus, wired: FakeManager) -> None:
    wired.change(jobs=[job("j", ["a", "b"], [(0, 1, MBIT, ["a", "s", "b"])])])
    raw = await bus.request(subjects.rpc("scheduler", "move"), MoveQuery(job="j", task="w-0", node="b").encode())
    assert [flow.path for flow in MoveAnswer.model_validate_json(raw).flows] == [["b"]]

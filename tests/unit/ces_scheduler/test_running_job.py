"""What the decision on a running job is told, and what it says of an application whose surroundings change."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from applications import inspection_file, street, street_links
from cluster_state import NOW, job, node, view_of, wire

from ces_common.jobfile import Restart
from ces_common.messages.adjustments import MOST_MOVES, AdjustmentProposal, AdjustmentQuery, ProposedMove
from ces_common.messages.records import AllocationRecord, FlowRecord, JobRecord, LinkRecord, Moving, NodeRecord
from ces_common.states import AllocationState, JobState
from ces_common.task_move import MoveState
from ces_core.adjustment import terms
from ces_scheduler import running_job
from ces_scheduler.adjustment_decision import decided
from ces_scheduler.dry_run import guest_of
from ces_scheduler.offer import Offer, holder_of, offer_of
from ces_scheduler.running_job import MOST_TASKS, question_of, running_problem, why_not

SPEEDS = {"gate1": 1.0, "rack1": 4.0}
RATE = 8_000_000


def running(place: str = "gate1", hop: str = "switch1", **fields: Any) -> JobRecord:
    """The camera's application, its detector at the gate."""
    record = guest_of(inspection_file(**fields), NOW)
    places = {"client-0": "roof1", "detect-0": place}
    path = ["roof1", hop, place]
    flows = [("client-0", "detect-0", path), ("detect-0", "client-0", path[::-1])]
    return record.model_copy(
        update={
            "state": JobState.RUNNING,
            "allocations": [
                AllocationRecord(
                    id=f"a{t.rank}", task=t.name, rank=t.rank, node=places[t.name], address="10.77.0.2", port=1,
                    state=AllocationState.RUNNING,
                )
                for t in record.tasks
            ],
            "reserved": [
                FlowRecord(number=i, src=src, dst=dst, min=RATE, max=RATE, rate=RATE, path=way)
                for i, (src, dst, way) in enumerate(flows, 1)
            ],
        }
    )  # fmt: skip


def offered(record: JobRecord, nodes: list[NodeRecord] | None = None, links: list[LinkRecord] | None = None) -> Offer:
    return offer_of(view_of(nodes or street(**SPEEDS), links or street_links(), [record]))


def proposed(record: JobRecord, offer: Offer, **asked: Any) -> AdjustmentProposal:
    query = AdjustmentQuery.model_validate({"job": record.id, **asked})
    answer = decided(question_of(query, 7, record, offer, None))
    assert answer.proposal is not None, answer.refusal
    assert answer.proposal.version == 7
    return answer.proposal


def test_what_is_best_already_stays() -> None:
    record = running("rack1")
    told = proposed(record, offered(record))
    assert (told.broken, told.adjustment) == ([], None)
    assert told.certificate.proven
    assert told.certificate.text.startswith("No adjustment with at most 3 moves gains more than")


def test_a_link_that_slows_down_breaks_a_deadline_and_its_task_is_to_move() -> None:
    record = running()
    told = proposed(record, offered(record, links=street_links(gate=20_000)), restarts={"detect-0": 4.0, "old-0": 1.0})
    (broken,) = told.broken
    assert (broken.code, broken.message.startswith("loop: 82 ms of 60 ms")) == ("deadline", True)
    assert told.adjustment is not None
    (move,) = told.adjustment.moves
    assert (move.task, move.src, move.dst) == ("detect-0", "gate1", "rack1")
    assert (move.seconds, move.requests) == (4.0, 40.0), "what is known of restarts; 10 requests a second"
    assert told.adjustment.assignments == {"client-0": "roof1", "detect-0": "rack1"}
    assert [flow.path for flow in told.adjustment.flows] == [
        ["roof1", "switch1", "rack1"],
        ["rack1", "switch1", "roof1"],
    ]


def test_without_moves_nothing_ends_it() -> None:
    record = running()
    told = proposed(record, offered(record, links=street_links(gate=20_000)), moves=0)
    assert (len(told.broken), told.adjustment) == (1, None)
    assert told.certificate.text == "No adjustment with at most 0 moves ends what is broken."


SLOW = street_links(gate=20_000)


def only_move(told: AdjustmentProposal) -> ProposedMove:
    assert told.adjustment is not None
    (move,) = told.adjustment.moves
    return move


def test_what_moves_of_the_hour_took_is_not_in_the_budget_any_more() -> None:
    """The move takes 300 requests; one that did not pay counts double."""
    record = running()
    offer = offered(record, links=SLOW)
    move = only_move(proposed(record, offer))
    assert move.requests == 300
    past = [{"ago_s": 600, "requests": 100, "paid": False}]
    assert proposed(record, offer, terms={"budget": 500}, past=past).adjustment is not None
    assert proposed(record, offer, terms={"budget": 499}, past=past).adjustment is None
    assert proposed(record, offer, terms={"budget": 499}, past=[past[0] | {"paid": True}]).adjustment is not None
    assert proposed(record, offer, terms={"budget": 499}, past=[past[0] | {"ago_s": 3601}]).adjustment is not None


def test_the_reserve_and_the_time_after_a_move_are_for_broken_limits() -> None:
    """A faster node is worth a move while nothing is broken, and only then the terms forbid it."""
    record = running()
    offer = offered(record, nodes=street(gate1=1.0, rack1=8.0))
    move = only_move(proposed(record, offer))
    assert (proposed(record, offer).broken, move.requests) == ([], 300)
    assert proposed(record, offer, terms={"budget": 400, "reserve": 101}).adjustment is None
    past = [{"ago_s": 119, "requests": 0, "paid": None}]
    assert proposed(record, offer, terms={"cooldown_s": 120}, past=past).adjustment is None
    assert proposed(record, offer, terms={"cooldown_s": 119}, past=past).adjustment is not None
    assert proposed(record, offer, terms={"least_gain": 1.0}).adjustment is None
    broken = offered(record, links=SLOW)
    told = proposed(record, broken, terms={"budget": 400, "reserve": 101, "cooldown_s": 120}, past=past)
    assert told.adjustment is not None


def test_what_the_job_has_itself_is_not_in_its_way() -> None:
    """Its flows need more than half of each wire."""
    record = running()
    narrow = [link.model_copy(update={"bandwidth": 10_000_000}) for link in street_links()]
    assert proposed(record, offered(record, links=narrow)).broken == []


def test_a_cordoned_node_keeps_what_runs_there_and_gets_nothing_new() -> None:
    nodes = [each.model_copy(update={"cordoned": True}) for each in street(**SPEEDS)]
    record = running()
    for gate in (1_000, 20_000):  # the rack would be better, and much better
        told = proposed(record, offered(record, nodes, street_links(gate=gate)))
        assert "not-allowed" not in {each.code for each in told.broken}
        assert told.adjustment is None


def test_a_node_that_its_owner_has_back_is_to_be_left() -> None:
    nodes = [n.model_copy(update={"reclaimed": n.name == "gate1"}) for n in street(**SPEEDS)]
    record = running()
    told = proposed(record, offered(record, nodes))
    assert [each.code for each in told.broken] == ["not-allowed"]
    assert told.adjustment is not None
    assert [move.dst for move in told.adjustment.moves] == ["rack1"]


def test_a_path_that_jobs_do_not_begin_with_is_no_broken_limit() -> None:
    """It was led over the longest of many ways."""
    record = running(hop="way5")
    assert proposed(record, offered(record, *detours(6))).broken == []


def detours(count: int) -> tuple[list[NodeRecord], list[LinkRecord]]:
    """As many more ways between the roof and the gate, each longer than the one before."""
    more = [link for i in range(count) for a in ("roof1", "gate1") for link in wire(a, f"way{i}", delay=1000 + i)]
    nodes = [*street(**SPEEDS), *(node(f"way{i}", 10 + i, cpu=0, memory=0) for i in range(count))]
    return nodes, [*street_links(), *more]


def test_a_path_beyond_all_that_are_examined_is_said_and_no_plan_is_proposed() -> None:
    record = running(hop="way39")
    nodes, links = detours(40)
    answer = decided(question_of(AdjustmentQuery(job=record.id), 7, record, offered(record, nodes, links), None))
    assert answer.proposal is None
    assert str(answer.refusal).startswith("flow client-0 -> detect-0 is led over roof1 way39 gate1, which is not among")


def test_a_rerouted_flow_is_healthy_though_the_link_of_another_is_gone() -> None:
    nodes, links = detours(6)
    record = running(hop="way5")
    there, back = record.reserved
    record = record.model_copy(update={"reserved": [there.model_copy(update={"path": ["roof1", "no", "gate1"]}), back]})
    told = proposed(record, offered(record, nodes, links))
    assert [each.message.split(" has ")[0] for each in told.broken] == ["flow client-0 -> detect-0"]


def test_a_path_whose_link_is_gone_is_one() -> None:
    record = running(hop="gone")
    told = proposed(record, offered(record), moves=0)
    assert {each.code for each in told.broken} == {"path"}
    assert told.adjustment is not None
    assert told.adjustment.step == "paths"


def test_what_cannot_be_decided_is_said() -> None:
    record = running()
    offer = offered(record)
    assert why_not(record, offer) is None
    assert "does not know yet" in str(why_not(None, offer))
    assert "does not know yet" in str(why_not(record.model_copy(update={"state": JobState.PLANNED}), offer))
    moving = Moving(move="m", state=MoveState.RESERVED, task="detect-0")
    assert "try again when that is over" in str(why_not(record.model_copy(update={"moving": moving}), offer))
    over = record.allocations[1].model_copy(update={"state": AllocationState.SUCCEEDED})
    ended = record.model_copy(update={"allocations": [record.allocations[0], over]})
    assert str(why_not(ended, offer)).startswith("detect-0 has ended")
    many = record.model_copy(update={"tasks": record.tasks * MOST_TASKS})
    assert "64 at most are looked at" in str(why_not(many, offer))


def test_tables_that_would_not_fit_into_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two flows between four nodes."""
    record = running()
    monkeypatch.setattr(running_job, "MOST_PAIRS", 2 * 4**2)
    assert why_not(record, offered(record)) is None
    monkeypatch.setattr(running_job, "MOST_PAIRS", 2 * 4**2 - 1)
    assert str(why_not(record, offered(record))).startswith(
        "the job has 2 flows: between 4 nodes, the tables for these do not fit into memory, and 3 nodes are the most"
    )


def test_amounts_of_a_broken_limit_have_units() -> None:
    record = running()
    narrow = [link.model_copy(update={"bandwidth": 5_000_000}) for link in street_links()]
    small = [each.model_copy(update={"cpu": 1500}) if each.name == "gate1" else each for each in street(**SPEEDS)]
    told = proposed(record, offered(record, small, narrow), moves=0)
    texts = {each.code: each.message for each in told.broken}
    assert texts["cpu-capacity"] == "node gate1 has 1.5 cores for the job, which uses 2 cores"
    assert texts["bandwidth-capacity"].endswith(" has 4.75 Mbit/s for the job, which uses 8 Mbit/s")


@pytest.mark.parametrize("state", [{"reclaimed": True}, {"state": "unreachable"}])
def test_a_task_with_cards_goes_nowhere_else_from_a_node_that_is_to_be_left(state: dict[str, Any]) -> None:
    record = running()
    tasks = [each.model_copy(update={"gpu": 1}) if each.name == "detect-0" else each for each in record.tasks]
    record = record.model_copy(update={"tasks": tasks})
    nodes = [each.model_copy(update={"gpu": 1} | (state if each.name == "gate1" else {})) for each in street(**SPEEDS)]
    problem = running_problem(record, offered(record, nodes).without(holder_of(record)), None)
    (detect,) = (task for task in problem.tasks if task.name == "detect-0")
    assert detect.allowed == ()


@pytest.mark.parametrize(("scope", "remark"), [("task", None), ("gang", running_job.FIXED)])
def test_moves_that_the_service_cannot_make_say_so(scope: Literal["task", "gang"], remark: str | None) -> None:
    record = running().model_copy(update={"restart": Restart(scope=scope)})
    assert proposed(record, offered(record), moves=0).remark is None, "nothing would move"
    told = proposed(record, offered(record, links=street_links(gate=20_000)))
    assert told.adjustment is not None
    assert told.adjustment.moves
    assert told.remark == remark


@pytest.mark.parametrize("paths", [None, 3])
def test_a_job_without_goals_is_refused_by_the_decision_too(paths: int | None) -> None:
    record = job("j", ["gate1", "rack1"])
    query = AdjustmentQuery(job="j")
    answer = decided(question_of(query, 1, record, offered(record), paths))
    assert answer.refusal is not None
    assert answer.refusal.startswith("job: has no goals to be adjusted for")


def test_as_many_moves_may_be_asked_for_as_are_decided_on() -> None:
    assert MOST_MOVES == terms.MOST_MOVES

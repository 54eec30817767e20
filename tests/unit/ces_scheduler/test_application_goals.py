"""Applications as the core sees them, and what a dry run says of their requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from applications import inspection_file, request, street, street_links
from cluster_state import MBIT, NOW, job, node, view_of
from queue_looks import decided, placing

from ces_common.jobfile import JobFile
from ces_common.messages.queries import PlanAnswer
from ces_common.messages.records import LinkRecord, NodeRecord
from ces_common.states import JobState
from ces_core.model.goals import UNITS
from ces_core.registry import get_solver
from ces_scheduler.application_goals import goals_of, node_profile, task_profiles
from ces_scheduler.deadline_shares import Judgement
from ces_scheduler.dry_run import answer_for, guest_of
from ces_scheduler.job_problem import problem_of
from ces_scheduler.offer import offer_of

SPEEDS = {"gate1": 1.0, "rack1": 4.0}


def planned(
    file: JobFile, nodes: Sequence[NodeRecord] | None = None, links: Sequence[LinkRecord] | None = None
) -> PlanAnswer:
    """What the default solver and ``exact`` answer alike."""
    offer = offer_of(view_of(street(**SPEEDS) if nodes is None else nodes, street_links() if links is None else links))
    answer, proven = (
        answer_for(guest_of(file, NOW), 1, [], offer, [], None, how, (), Judgement())
        for how in (placing(), placing(get_solver("exact")))
    )
    assert (answer.assignments, answer.refused) == (proven.assignments, proven.refused)
    assert (answer.reason and answer.reason.text) == (proven.reason and proven.reason.text)
    return answer


def test_times_are_those_of_the_equations() -> None:
    """By hand, at the gate: 2 x 1 ms of access, 2 x 3 ms of delays, 10 ms and 1 ms for messages, and 20 ms of work at
    a load of 0.2, which take 25 ms."""
    answer = planned(inspection_file(), street(gate1=1.0))
    assert answer.feasible
    assert answer.assignments == {"client-0": "roof1", "detect-0": "gate1"}
    (loop,) = answer.requests
    assert (loop.name, loop.deadline_ms, loop.hard) == ("loop", 60.0, True)
    assert loop.time_ms == pytest.approx(44.0)
    assert [(step.what, pytest.approx(step.ms)) for step in loop.steps] == [
        ("access", 2.0),
        ("roof1 -> gate1", 13.0),
        ("detect-0 on gate1", 25.0),
        ("gate1 -> roof1", 4.0),
    ]


def test_time_that_counts_moves_work_to_where_requests_are_faster() -> None:
    """The rack: 24 ms of delays, but 20 ms of work take 5 ms, 5.26 among others."""
    soft = request(hard=False, deadline="1s")
    answer = planned(inspection_file(requests=[soft], objective={"time": 1.0}))
    assert answer.assignments["detect-0"] == "rack1"
    assert answer.requests[0].time_ms == pytest.approx(2 + 24 + 11 + 5 / (1 - 0.05))


def test_a_refusal_names_the_tightest_part() -> None:
    answer = planned(inspection_file(requests=[request(deadline="40ms")]), street(gate1=1.0))
    assert not answer.feasible
    assert answer.reason is not None
    assert answer.reason.code == "deadline"
    assert answer.reason.text == "loop: 44 ms of 40 ms, 25 ms of it detect-0 on gate1; 4 ms are missing"


def test_no_speed_is_guessed() -> None:
    answer = planned(inspection_file(), street())
    assert not answer.feasible
    assert answer.reason is not None
    assert answer.reason.text == (
        "task detect-0 is allowed on no node: no node was measured for matrix (ces node measure does it)"
    )
    assert answer.refused["detect-0"]["gate1"] == "was not measured for matrix"


def test_the_least_delay_may_be_the_longer_way() -> None:
    links = street_links(gate=30_000)
    shortcut = [
        link.model_copy(update={"src": a, "dst": b, "delay": 1000})
        for link in links[:1]
        for a, b in (("switch1", "rack1"), ("rack1", "switch1"), ("rack1", "gate1"), ("gate1", "rack1"))
    ]
    others = [link for link in links if (link.src, link.dst) not in {(each.src, each.dst) for each in shortcut}]
    answer = planned(inspection_file(objective={"time": 1.0}), street(gate1=1.0), [*others, *shortcut])
    assert answer.flows[0].path == ["roof1", "switch1", "rack1", "gate1"]


def test_a_user_is_at_the_nearest_node_that_covers_it() -> None:
    places = {"a": (51.05, 13.737), "b": (51.051, 13.737), "c": (51.0505, 13.737)}
    nodes = [
        node(name, i, profile={"position": {"lat": lat, "lon": lon}, "coverage": 40 if name == "c" else 100})
        for i, (name, (lat, lon)) in enumerate(places.items())
    ]
    file = inspection_file(users=[{"name": "cam", "at": {"lat": 51.0509, "lon": 13.737}}])
    problem = problem_of(guest_of(file, NOW), offer_of(view_of(nodes)))
    assert problem.tasks[0].allowed == ("b",)


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ({"node": "gone"}, "user cam: no node is named gone; ces get nodes lists those that have joined"),
        (
            {"lat": 0, "lon": 0},
            "user cam: no node says where it is; set CES_NODE_POSITION and CES_NODE_COVERAGE on one, or give at.node",
        ),
    ],
)
def test_a_user_in_nobodys_reach_keeps_the_job_waiting(at: dict[str, Any], text: str) -> None:
    answer = planned(inspection_file(users=[{"name": "cam", "at": at}]))
    assert answer.reason is not None
    assert (answer.reason.code, answer.reason.text) == ("no-access", text)


def test_jobs_that_are_no_applications_have_no_goals_and_the_usual_units() -> None:
    offer = offer_of(view_of(street(**SPEEDS), street_links()))
    problem = problem_of(job("q", tasks=2, asked=[(0, 1, 1, 2)]), offer)
    assert not problem.has_goals
    assert (problem.goals, problem.units, problem.path_set) == (None, UNITS, "hop-shortest")


def test_a_cluster_of_which_nothing_is_known_has_no_profile() -> None:
    links = [link.model_copy(update={"delay": 0}) for link in street_links()]
    assert offer_of(view_of(street(), links)).cluster.profile is None


def test_watts_become_a_line_or_a_curve() -> None:
    line = node_profile(node("a", profile={"power": [3, 9]}))
    curve = node_profile(node("a", profile={"power": [float(i) for i in range(11)]}))
    assert line is not None
    assert curve is not None
    assert (line.idle_w, line.peak_w, line.power_w) == (3, 9, None)
    assert curve.power_w == tuple(range(11))


def test_an_offer_follows_delays_and_speeds() -> None:
    view = view_of(street(gate1=1.0), street_links())
    before = offer_of(view)
    faster = offer_of(view_of(street(gate1=2.0), street_links()), before)
    nearer = offer_of(view_of(street(gate1=1.0), street_links(gate=1)), before)
    assert before.same_ground(offer_of(view, before))
    assert not before.same_ground(faster)
    assert not before.same_ground(nearer)
    assert faster.cluster.profile is not None
    assert faster.cluster.profile.nodes[0].speed == {"matrix": 2.0}


def test_of_a_suspended_job_of_which_a_task_has_ended_no_request_is_reckoned() -> None:
    file = inspection_file()
    record = guest_of(file, NOW)
    placed = job("q", ["roof1", "gate1"], allocation={"state": "succeeded"}).model_copy(
        update={"tasks": record.tasks, "flows": record.flows, "users": file.users, "requests": file.requests}
    )
    suspended = placed.model_copy(update={"state": JobState.SUSPENDED})
    goals = goals_of(suspended)
    assert goals is not None
    assert goals.chains == ()
    assert task_profiles(suspended, suspended.tasks) == {}


def test_what_is_known_of_nodes_and_links_changes_nothing_for_a_job_without_goals() -> None:
    """The default solver's whole answer."""
    record = job("q", tasks=3, asked=[(0, 1, MBIT, 9 * MBIT), (1, 2, MBIT, 60 * MBIT), (2, 0, MBIT, 80 * MBIT)])
    known = offer_of(view_of(street(**SPEEDS), street_links()))
    unknown = offer_of(view_of(street(), [link.model_copy(update={"delay": 0}) for link in street_links()]))
    assert known.cluster.profile is not None
    assert unknown.cluster.profile is None
    one, other = decided(record, known).decision, decided(record, unknown).decision
    assert one is not None
    assert other is not None
    assert (one.assignments, one.flows, one.metrics) == (other.assignments, other.flows, other.metrics)
    assert (one.bound, one.considered()) == (other.bound, other.considered())

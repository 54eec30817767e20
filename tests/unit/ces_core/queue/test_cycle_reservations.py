"""Whom CES-Multi protects: large and overdue jobs have room kept for them, and nobody takes it."""

from __future__ import annotations

import pytest
from queue_desk import PLAIN, Desk, one_node, started, wants

from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.problem import Cluster, Problem
from ces_core.queue.jobs import WaitingJob
from ces_core.queue.parameters import Parameters
from ces_core.queue.state import carried


def test_a_large_job_starves_without_protection_and_not_with_it() -> None:
    def waited(parameters: Parameters) -> float:
        cluster = one_node(2)
        desk = Desk(cluster, parameters)
        desk.run(wants(cluster, "s0", 1, lasts=10))
        desk.waiting.append(wants(cluster, "large", 2, submitted=1))
        for second in range(5, 400, 5):  # every five seconds a small job comes, and lasts ten
            for job in list(desk.running):
                if job.started_s + (job.expected_s or 0) <= second:
                    desk.end(job.name)
            if "large" in started(desk.at(second, wants(cluster, f"s{second}", 1, submitted=second))):
                return second - 1
        return float("inf")

    assert waited(Parameters(bound_s=100, overdue=None)) == float("inf")
    assert waited(Parameters(bound_s=100, overdue=0.5, reservations=0)) == float("inf")
    assert waited(PLAIN) <= 100


def test_backfill_ends_in_time_or_stays_out_of_the_way() -> None:
    cluster = Cluster.make([Node("a", cpu=10), Node("b", cpu=4)], [])
    desk = Desk(cluster)
    desk.run(wants(cluster, "now", 6, lasts=100))
    decided = desk.at(60, wants(cluster, "big", 8, submitted=0, lasts=50))
    (promise,) = decided.memory.reservations
    assert (promise.start_s, promise.waits_for) == (100, ("now",))
    assert decided.queue[0].reserved
    assert decided.queue[0].start_s == 100
    assert decided.queue[0].held_by == ("now",)
    assert "held by now; room is kept for it" in decided.queue[0].text()
    decided = desk.at(
        61,
        wants(cluster, "too-long", 3, submitted=61, lasts=60),
        wants(cluster, "too-long-too", 3, submitted=61, lasts=61),
        wants(cluster, "unknown", 3.5, submitted=61, lasts=None),
    )
    # Only node b is left to those that outlast the reservation; one that says nothing may outlast anything.
    assert started(decided) == ["too-long"]
    decided = desk.at(62, wants(cluster, "in-time", 4, submitted=62, lasts=38))
    assert started(decided) == ["in-time"]
    assert decided.memory.reservations[0].start_s == 100
    desk.end("now")
    desk.end("in-time")
    assert started(desk.at(100))[0] == "big"


def test_who_must_begin_now_comes_before_all_others_and_has_room_kept() -> None:
    cluster = one_node(4)
    desk = Desk(cluster)
    large = {"submitted": 59, "lasts": 50, "priority": 0, "pressing": True}
    decided = desk.at(60, wants(cluster, "overdue", 4), wants(cluster, "first", 3, **large))
    assert started(decided) == ["first"], "though it is neither older nor cheaper nor more urgent"
    desk.waiting.clear()
    second = wants(cluster, "second", 2, submitted=61, lasts=50, pressing=True)
    assert started(desk.at(62, second)) == []
    small = wants(cluster, "small", 1, submitted=63, lasts=200)
    assert started(desk.at(63, small)) == ["small"], "which leaves what is kept for them"
    desk.end("first")
    assert started(desk.at(110)) == ["second"]


def test_without_stated_durations_room_is_kept_on_the_nodes_that_will_be_used() -> None:
    cluster = Cluster.make([Node("a", cpu=10), Node("b", cpu=4)], [])
    desk = Desk(cluster)
    desk.run(wants(cluster, "now", 6, lasts=None))
    decided = desk.at(60, wants(cluster, "big", 8, lasts=None))
    (promise,) = decided.memory.reservations
    assert (promise.start_s, promise.waits_for) == (None, ("now",))
    assert decided.queue[0].start_s is None
    decided = desk.at(61, wants(cluster, "x", 4, submitted=61, lasts=1), wants(cluster, "y", 3, submitted=61, lasts=1))
    assert len(started(decided)) == 1  # on b; a is kept
    desk.end("now")
    assert "big" in started(desk.at(62))


def test_who_ends_early_brings_the_promise_forward_and_who_overruns_puts_it_off() -> None:
    cluster = one_node()
    desk = Desk(cluster)
    desk.run(wants(cluster, "a", 5, lasts=100))
    desk.run(wants(cluster, "b", 5, lasts=200))
    assert desk.at(60, wants(cluster, "big", 10)).memory.reservations[0].start_s == 200
    desk.end("b")
    assert desk.at(70).memory.reservations[0].start_s == 100
    promise = desk.at(150).memory.reservations[0]  # a should have ended
    assert promise.waits_for == ("a",)
    assert promise.start_s == pytest.approx(150)
    desk.end("a")
    assert started(desk.at(160)) == ["big"]


def test_a_promised_time_holds_against_a_later_promise_of_no_time() -> None:
    cluster = Cluster.make([Node("a", cpu=4), Node("b", cpu=4)], [])

    def wanting(name: str, *nodes: str, lasts: float | None, submitted: float = 0) -> WaitingJob:
        tasks = [Task(node, cpu=4, allowed=(node,)) for node in nodes]
        return WaitingJob(name, Problem.make(cluster, tasks), submitted, expected_s=lasts)

    desk = Desk(cluster)
    desk.run(wanting("open", "a", lasts=None))
    desk.run(wanting("closed", "b", lasts=80))
    promised = desk.at(60, wanting("one", "b", lasts=100), wanting("both", "a", "b", lasts=None, submitted=1)).queue
    assert [(each.job, each.reserved, each.start_s) for each in promised] == [("one", True, 80), ("both", True, None)]
    desk.end("open")
    assert [(each.job, each.start_s) for each in desk.at(70).queue] == [("one", 80), ("both", 180)]


def test_a_promise_is_carried_to_another_cluster_where_its_plan_is_possible_there() -> None:
    def two(*, wired: bool = True, more: bool = False) -> Cluster:
        links = [Link("a", "b", 9), Link("b", "a", 9)] if wired else []
        return Cluster.make([*([Node("_", cpu=1)] if more else []), Node("a", cpu=4), Node("b", cpu=4)], links)

    def asking(cluster: Cluster, *allowed: str) -> WaitingJob:
        tasks = [Task("x", cpu=4, allowed=allowed or None), Task("y", cpu=4)]
        return WaitingJob("j", Problem.make(cluster, tasks, [Flow("x", "y", 1, 1)]), 0, expected_s=5)

    desk = Desk(two())
    desk.run(wants(desk.cluster, "open", 1, lasts=90))
    promise = desk.at(60, asking(desk.cluster)).queue[0]
    assert (promise.reserved, promise.start_s) == (True, 90)
    assert not carried(desk.memory, [asking(two(wired=False))], two(wired=False)).reservations
    assert not carried(desk.memory, [], two()).reservations
    first = str(desk.memory.reservations[0].plan.assignments["x"])
    assert not carried(desk.memory, [asking(two(), *{"a", "b"} - {first})], two()).reservations
    (before,), (after,) = (
        desk.memory.reservations,
        carried(desk.memory, [asking(two(more=True))], two(more=True)).reservations,
    )
    assert (after.begin, after.plan) == (before.begin, before.plan)
    assert {node for resource, node in after.cells if resource == 0} == {1, 2}

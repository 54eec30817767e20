"""Somebody whom jobs need is away: they wait, and go on by themselves."""

from __future__ import annotations

from typing import Any

import pytest
from manager_world import World, ring

from ces_common.messages.reports import Status, WorkerStatus
from ces_common.states import JobState
from ces_manager.jobs import network_readiness
from ces_manager.nodes.deadlines import COMPUTE_CTL, NETWORK_CTL
from ces_manager.nodes.expiry import Due

J = JobState
NODES = ["a", "b", "c", "d"]
TEN_MINUTES = 600
LOOK_S = 4


def pass_time(world: World, seconds: float, *beating: str) -> list[Due]:
    """Look again and again; what was due."""
    due = []
    for _ in range(round(seconds / LOOK_S)):
        world.wait(LOOK_S)
        world.beat(*beating)
        due += [found] if (found := world.expire()) else []
    return due


def planned(world: World, **more: Any) -> str:
    job = world.submit(ring(tasks=1, **more))
    assert world.commit(world.propose(job, ["a"])) is None
    return job


def test_ten_minutes_without_controllers_fail_no_job_at_any_stage(world: World) -> None:
    at_plan, at_network, at_start, at_restart = (planned(world, restart={"scope": "task"}) for _ in range(4))
    world.write(lambda tx: network_readiness.network_preparing(tx, at_network, 1))
    world.network(at_start)
    world.network(at_restart)
    world.tell(at_restart, "running")
    world.tell(at_restart, "exited", exit_code=1)
    assert pass_time(world, 32, *NODES) == []
    world.controllers.clear()
    assert pass_time(world, TEN_MINUTES, *NODES) == []
    hindrances = world.failure_detector.hindrances
    assert hindrances[at_plan] == hindrances[at_network] == "waiting for network-ctl, not heard for 600 s"
    assert hindrances[at_start] == hindrances[at_restart] == "waiting for compute-ctl, not heard for 600 s"
    world.controllers |= {NETWORK_CTL, COMPUTE_CTL}
    assert pass_time(world, 20, *NODES) == []
    assert world.failure_detector.hindrances == {}
    for job in (at_plan, at_network, at_start, at_restart):
        world.network(job)
        world.tell(job, "running")
        assert (world.job(job).state, world.job(job).attempt) == (J.RUNNING, 1)


@pytest.mark.parametrize("away", [NETWORK_CTL, COMPUTE_CTL])
def test_a_deadline_goes_on_where_it_stood(world: World, away: str) -> None:
    job = planned(world)
    patience_s = world.timeouts.planned_s
    if away == COMPUTE_CTL:
        world.network(job)
        patience_s = world.timeouts.starting_s
    assert pass_time(world, patience_s - 2 * LOOK_S, *NODES) == []
    world.controllers.remove(away)
    assert pass_time(world, TEN_MINUTES, *NODES) == []
    world.controllers.add(away)
    (due,) = pass_time(world, 4 * LOOK_S, *NODES)
    assert list(due.late) == [job]
    assert world.job(job).state in (J.QUEUED, J.RESCHEDULING)


def test_a_controller_that_comes_and_goes_fails_no_job(world: World) -> None:
    """Away for a minute in every two, so that some deadline ends in each silence that nobody has noticed yet."""
    job = planned(world)
    for _ in range(2):
        world.controllers.discard(NETWORK_CTL)
        assert pass_time(world, 60, *NODES) == []
        world.controllers.add(NETWORK_CTL)
        assert pass_time(world, 24, *NODES) == []
    world.network(job)
    assert world.job(job).state is J.STARTING


def test_a_network_that_never_comes_up_leads_to_attempts_elsewhere_that_take_longer_each(world: World) -> None:
    """Its node is heard and so is network-ctl: this is the job's own trouble, and has an end."""
    job, took = planned(world), []
    for place in ("b", "c", "d"):
        seconds = 0
        while not pass_time(world, LOOK_S, *NODES):
            seconds += LOOK_S
        took.append(seconds)
        if place != "d":
            assert world.job(job).state is J.QUEUED
            assert world.commit(world.propose(job, [place])) is None
    assert took == [60, 120, 240]
    assert world.job(job).state is J.FAILED


def test_workers_on_a_node_that_is_away_are_waited_for(world: World) -> None:
    job = planned(world, disconnect="keep")
    world.network(job)
    pass_time(world, TEN_MINUTES, "b", "c", "d")
    assert world.job(job).state is J.STARTING
    assert world.failure_detector.hindrances[job] == "waiting for node a, not heard for 600 s"
    world.beat("a")
    world.tell(job, "running")
    assert world.job(job).state is J.RUNNING


def cross(world: World, job: str, tasks: list[str], hop: str) -> None:
    """Commit a plan whose flows pass ``hop``."""
    world.beat(hop)  # or nothing is planned across it
    plan = world.propose(job, tasks)
    flows = [flow.model_copy(update={"path": [flow.path[0], hop, flow.path[1]]}) for flow in plan.flows]
    assert world.commit(plan.model_copy(update={"flows": flows})) is None


def test_a_node_that_falls_silent_on_the_way_of_flows_leads_elsewhere_and_counts_against_no_job(world: World) -> None:
    job = world.submit(ring(tasks=2))
    for attempt in range(1, world.timeouts.max_late + 3):
        assert world.job(job).attempt == attempt
        cross(world, job, ["b", "c"], "a")
        pass_time(world, world.timeouts.planned_s + LOOK_S, "b", "c", "d")
        assert (world.job(job).state, world.job(job).reason) == (J.QUEUED, "planned for more than 60 s")


def test_nor_does_one_that_is_back_just_before_the_deadline_ends(world: World) -> None:
    job = world.submit(ring(tasks=2))
    for attempt in range(1, world.timeouts.max_late + 3):
        assert world.job(job).attempt == attempt
        cross(world, job, ["b", "c"], "a")
        assert all(not due.late for due in pass_time(world, world.timeouts.planned_s - 2 * LOOK_S, "b", "c", "d"))
        assert [list(due.late) for due in pass_time(world, 3 * LOOK_S, *NODES) if due] == [[job]]
        assert (world.job(job).state, world.job(job).reason) == (J.QUEUED, "planned for more than 60 s")


def test_nor_one_that_this_manager_knows_only_from_its_predecessor_to_be_away(world: World) -> None:
    """``unreachable`` in the database, and not yet silent for as long as that takes."""
    world.timeouts = type(world.timeouts)(unreachable_after_s=50)
    job = world.submit(ring(tasks=2))
    cross(world, job, ["b", "c"], "a")
    pass_time(world, world.timeouts.unreachable_after_s + LOOK_S, "b", "c", "d")
    world.restart()
    pass_time(world, world.timeouts.planned_s - 5 * LOOK_S, "b", "c", "d")
    (due,) = [due for due in pass_time(world, 6 * LOOK_S, *NODES) if due]
    assert due.late[job].hindered


@pytest.mark.parametrize("away", [NETWORK_CTL, COMPUTE_CTL])
def test_a_deadline_during_which_a_controller_was_away_counts_against_no_job(world: World, away: str) -> None:
    job = planned(world)
    for attempt in range(1, world.timeouts.max_late + 3):
        assert world.job(job).attempt == attempt
        if away == COMPUTE_CTL:
            world.network(job)
        world.controllers.remove(away)
        assert pass_time(world, 60, *NODES) == []
        world.controllers.add(away)
        patience_s = world.timeouts.planned_s if away == NETWORK_CTL else world.timeouts.starting_s
        (due,) = pass_time(world, patience_s + LOOK_S, *NODES)
        assert list(due.late) == [job]
        world.confirm(job)
        assert world.job(job).state is J.QUEUED
        assert world.commit(world.propose(job, ["a"])) is None


def test_what_was_not_started_on_a_lost_node_goes_elsewhere_even_if_its_workers_were_to_be_kept(world: World) -> None:
    job = planned(world, disconnect="keep")
    due = pass_time(world, world.timeouts.lease_s + world.timeouts.margin_s + LOOK_S, "b", "c", "d")
    assert [each.lost for each in due if each.lost] == [["a"]]
    assert world.job(job).state is J.QUEUED
    assert world.commit(world.propose(job, ["b"])) is None


def say_starting(world: World, job: str, *incarnations: int) -> None:
    (allocation,) = world.job(job).allocations
    workers = [
        WorkerStatus(allocation=allocation.id, incarnation=incarnation, state="starting")
        for incarnation in incarnations
    ]
    world.report(Status(node=allocation.node, generation=0, workers=workers))


def test_an_image_that_takes_long_to_fetch_is_waited_for(world: World) -> None:
    job = planned(world)
    world.network(job)
    say_starting(world, job, 1)
    assert pass_time(world, 3 * TEN_MINUTES, *NODES) == []
    words = "waiting for agents that have been preparing workers for 1800 s"
    assert world.failure_detector.hindrances[job] == words
    world.tell(job, "running")
    assert world.job(job).state is J.RUNNING
    assert world.expire() == Due()


def test_what_a_start_waits_for_is_said_until_it_runs(world: World) -> None:
    job = planned(world)
    world.network(job)
    for reason in ("waits for its secrets: no manager answers", "waits for its secrets: the database does not answer"):
        world.tell(job, "starting", reason=reason)
        pass_time(world, 10, *NODES)
        (allocation,) = world.job(job).allocations
        assert world.failure_detector.hindrances[job] == f"{allocation.task} on {allocation.node} {reason}"
        said = WorkerStatus(allocation=allocation.id, incarnation=1, state="starting", reason=reason)
        assert not world.report(Status(node=allocation.node, generation=0, workers=[said])), "it is no news"
    say_starting(world, job, 1)
    pass_time(world, 10, *NODES)
    assert world.failure_detector.hindrances[job].startswith("waiting for agents that have been preparing workers")
    world.tell(job, "running")
    assert world.job(job).allocations[0].reason is None


def test_one_that_takes_more_than_an_hour_is_given_up_there(world: World) -> None:
    world.timeouts = type(world.timeouts)(longest_s=900)
    job = planned(world)
    world.network(job)
    say_starting(world, job, 1)
    (due,) = pass_time(world, 910, *NODES)
    assert due.late[job].why == "starting though agents were at it for more than 900 s"
    assert world.job(job).state is J.RESCHEDULING


def test_an_agent_that_is_at_it_no_more_has_its_deadline_again(world: World) -> None:
    job = planned(world)
    world.network(job)
    say_starting(world, job, 1)
    assert pass_time(world, TEN_MINUTES, *NODES) == []
    say_starting(world, job)
    (due,) = pass_time(world, world.timeouts.starting_s + LOOK_S, *NODES)
    assert list(due.late) == [job]

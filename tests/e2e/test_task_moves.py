"""One task of a running job moves to another node: on a real cluster, with the manager killed in between."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from fault_cluster import FaultCluster, recorded_job, wait_for

from ces_common.messages.api import JobView, TaskView

EXAMPLES = Path(__file__).parents[2] / "examples" / "applications"
SENDING_S = 25


def held_job(cluster: FaultCluster, name: str, hold: Path) -> str:
    """Its two workers live until the file is gone."""
    hold.touch()
    job = cluster.submit(recorded_job(name, 0.5, 0, hold, replicas=2, restart={"scope": "task"}))
    cluster.await_state(job, "running")
    wait_for(lambda: len(cluster.lives(job)) == 2, "two workers have begun their records")
    return job


def view_of(cluster: FaultCluster, job: str) -> JobView:
    return cluster.ask(lambda: cluster.client.jobs.get(job))


def task(view: JobView, name: str) -> TaskView:
    return next(each for each in view.placement if each.name == name)


def free_node(cluster: FaultCluster, job: str) -> str:
    used = {each.node for each in view_of(cluster, job).placement}
    return next(node for node in cluster.nodes if node not in used)


def moved(cluster: FaultCluster, job: str, node: str) -> bool:
    move = view_of(cluster, job).move
    assert move is not None
    assert move.destination != node or move.state not in ("kept", "failed"), cluster.story(job)
    return (move.destination, move.state) == (node, "done")


def test_a_task_moves_while_its_job_runs(cluster: FaultCluster, open_folder: Path) -> None:
    job = held_job(cluster, "moves", open_folder / "hold")
    before, node = view_of(cluster, job), free_node(cluster, job)
    cluster.client.jobs.move(job, "w-0", to=node)
    wait_for(lambda: moved(cluster, job, node), "it runs there")
    view = view_of(cluster, job)
    assert task(view, "w-0").node == node
    assert task(view, "w-1") == task(before, "w-1").model_copy(update={"progress": task(view, "w-1").progress})
    assert {flow.number for flow in view.flows} == {flow.number for flow in before.flows}
    assert {flow.path[0] for flow in view.flows} == {node, task(view, "w-1").node}
    wait_for(lambda: len(cluster.lives(job)) == 3, "the new worker lives")
    peer = cluster.cluster.files.agents / str(task(view, "w-1").node) / "sandboxes" / str(task(view, "w-1").allocation)
    if cluster.cluster.spec.network == "tc":
        known = f"{task(view, 'w-0').address}\tw-0"
        wait_for(lambda: known in (peer / "hosts").read_text(), "its peer finds it by its name")
    (open_folder / "hold").unlink()
    view = cluster.finish(job)
    assert (view.attempt, view.restarts) == (1, 0)
    assert [life.task for life in cluster.lives(job)].count("w-0") == 2


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "faults",
    [
        ["move-committed", "move-starting"],  # all is held, nobody was told; the old worker is gone, unknown to all
        pytest.param(["move-stopping", "move-carrying", "move-done"], marks=pytest.mark.soak),
    ],
    ids=["some", "more"],
)
def test_the_manager_dies_between_two_steps(cluster: FaultCluster, open_folder: Path, faults: list[str]) -> None:
    job = held_job(cluster, f"moves-{faults[0]}", open_folder / "hold")
    for fault in faults:
        node, starts = free_node(cluster, job), cluster.arm("manager", f"{fault}:1")
        cluster.ask(lambda node=node: cluster.client.jobs.move(job, "w-0", to=node))
        cluster.await_start_of("manager", starts + 1)
        wait_for(lambda node=node: moved(cluster, job, node), f"it runs on {node}")
    (open_folder / "hold").unlink()
    view = cluster.finish(job)
    assert (view.attempt, view.restarts) == (1, 0)
    assert [life.task for life in cluster.lives(job)].count("w-0") == 1 + len(faults)


def test_an_application_loses_no_request_while_its_detector_moves(cluster: FaultCluster) -> None:
    """A camera asks it 30 times a second, and again where no answer comes."""
    file = yaml.safe_load((EXAMPLES / "compute.yaml").read_text()) | {"restart": {"scope": "task"}}
    for group in file["tasks"]:
        group["command"] += ["--seconds", str(SENDING_S), "--again", "1"]
    for each in file["tasks"]:
        each.get("work", {})["per_request"] = "1ru"  # what has waited is soon worked off, on a busy machine too
    for each in file["requests"]:
        each |= {"rate": 30, "deadline": "6s"}  # none is given up as lost within ten times its deadline
    job = cluster.submit(file)
    cluster.await_state(job, "running")
    wait_for(lambda: [count["answers"] > 15 for count in counts(cluster, job)] == [True], "requests are answered")
    node = free_node(cluster, job)
    cluster.client.jobs.move(job, "detect-0", to=node)
    wait_for(lambda: moved(cluster, job, node), "it runs there")
    before = counts(cluster, job)
    view = cluster.finish(job, timeout_s=120)
    after = counts(cluster, job)
    print(before, after)
    assert (view.attempt, view.restarts, task(view, "detect-0").node) == (1, 0, node)
    assert all(count["lost"] == 0 and count["sent"] == count["answers"] for count in after)
    assert sum(count["sent"] for count in after) > sum(count["sent"] for count in before)


def counts(cluster: FaultCluster, job: str) -> list[dict[str, int]]:
    """Of each class of requests, as its sender tells."""
    lines = [each.progress or {} for each in view_of(cluster, job).placement]
    told = [line.get("result") or line.get("progress", line) for line in lines]
    return [counted for each in told for counted in each.get("requests", {}).values()]

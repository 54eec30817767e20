"""A wire slows down under a running application, or its user moves: the scheduler proposes the move that ends what is
broken, and the service makes it, asked or by itself. On a real cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ces_command import ces
from fault_cluster import FaultCluster, running, star, wait_for

from ces_client.errors import ApiError
from ces_common.messages.adjustments import AdjustmentProposal
from ces_common.messages.api import JobView
from ces_testbed.topology import Topology

EXAMPLES = Path(__file__).parents[2] / "examples" / "applications"
DELAY = "2ms"
SLOW = 40_000  # microseconds, one way
ASKED_S = 120.0  # a busy machine decides within its limit at last


def wired() -> Topology:
    told = star(3).model_dump(mode="json")
    return Topology.model_validate(told | {"links": [link | {"delay": DELAY} for link in told["links"]]})


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    with running("adj", tmp_path_factory.mktemp("adj"), wired()) as cluster:
        yield cluster
        cluster.check()


def application() -> dict[str, Any]:
    """The detector has no room beside the camera."""
    file: dict[str, Any] = yaml.safe_load((EXAMPLES / "compute.yaml").read_text()) | {"restart": {"scope": "task"}}
    file["tasks"][1]["resources"]["cpu"] = "1900m"
    file["tasks"][0]["resources"]["cpu"] = "200m"
    return file


def place(view: JobView, name: str = "detect-0") -> str:
    found = next(task.node for task in view.placement if task.name == name)
    assert found is not None
    return found


def proposed(cluster: FaultCluster, job: str) -> AdjustmentProposal:
    found: list[AdjustmentProposal] = []

    def told() -> bool:
        try:
            found.append(cluster.client.jobs.adjustment(job))
        except ApiError as error:
            if "not decided within" not in str(error) and "another job" not in str(error):
                raise
        return bool(found)

    wait_for(told, "the scheduler has decided", ASKED_S)
    return found[0]


def slow_down(cluster: FaultCluster, node: str | None) -> None:
    """Of all wires, only those of ``node`` are slow from now on."""
    file = cluster.cluster.spec.topology.network
    links = [link.model_copy(update={"delay": SLOW}) if node in (link.src, link.dst) else link for link in file.links]
    cluster.client.topology.put(file.model_copy(update={"links": links}))


@pytest.mark.timeout(600)
def test_a_task_whose_wire_slows_down_is_moved_as_proposed(
    cluster: FaultCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    job = cluster.submit(application())
    cluster.await_state(job, "running")
    before = place(cluster.client.jobs.get(job))
    assert proposed(cluster, job).broken == []

    slow_down(cluster, before)
    told = proposed(cluster, job)
    assert [each.code for each in told.broken] == ["deadline"]
    assert told.adjustment is not None
    (move,) = told.adjustment.moves
    assert (move.task, move.src) == ("detect-0", before)

    monkeypatch.setenv("CES_CONTEXT", str(tmp_path / "none" / "context.json"))
    monkeypatch.setenv("CES_URL", cluster.cluster.url)
    monkeypatch.setenv("CES_TOKEN", cluster.cluster.token)
    said = ces("adjust", job, "--apply", "-o", "json").stdout
    print(said)
    assert json.loads(said)["carried_out"]["dst"] == move.dst
    wait_for(lambda: (moved := cluster.client.jobs.get(job).move) is not None and moved.state == "done", "it is there")
    view = cluster.client.jobs.get(job)
    assert (place(view), view.attempt, view.restarts) == (move.dst, 1, 0)
    assert proposed(cluster, job).broken == []
    cluster.client.jobs.cancel(job)


@pytest.mark.timeout(900)
def test_an_application_that_says_so_is_changed_without_being_asked(cluster: FaultCluster) -> None:
    job = cluster.submit(application() | {"adjust": {"budget": 10_000}})
    cluster.await_state(job, "running")
    before = place(cluster.client.jobs.get(job))

    def moved(task: str, away: str) -> bool:
        move = cluster.client.jobs.get(job).move
        return move is not None and (move.task, move.source, move.state) == (task, away, "done")

    wait_for(lambda: cluster.client.jobs.get(job).last_look is not None, "the first look, as it began", 2 * ASKED_S)
    slow_down(cluster, before)
    wait_for(lambda: moved("detect-0", before), "the detector has moved by itself", 2 * ASKED_S)
    view = cluster.client.jobs.get(job)
    assert view.move is not None
    assert view.move.why is not None
    assert f"link {before} -> s1 has changed" in view.move.why
    assert (place(view) != before, view.attempt, view.restarts) == (True, 1, 0)
    assert view.last_look is not None
    assert view.last_look.left is not None
    assert view.last_look.left < 10_000

    slow_down(cluster, None)
    cluster.client.jobs.place_user(job, "cam", node=before)  # where the detector has left room
    wait_for(lambda: moved("camera-0", "n1"), "the camera has followed its user", 2 * ASKED_S)
    view = cluster.client.jobs.get(job)
    assert place(view, "camera-0") == before
    print(view.move, view.last_look, sep="\n")
    assert proposed(cluster, job).broken == []
    cluster.client.jobs.cancel(job)

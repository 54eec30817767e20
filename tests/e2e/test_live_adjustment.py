"""A wire slows down under a running application: the scheduler proposes the move that ends what is broken, and the
service makes it. On a real cluster."""

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


def place(view: JobView) -> str:
    found = next(task.node for task in view.placement if task.name == "detect-0")
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


def slow_down(cluster: FaultCluster, node: str) -> None:
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

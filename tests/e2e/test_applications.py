"""Applications on emulated hosts: requests go through the pipeline, and what they take is told beside what was
reckoned. Wires take the time that the topology file says.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fault_cluster import FaultCluster, running, star, wait_for

from ces_client.errors import ApiError
from ces_client.view.requests import measured_requests
from ces_common.jobfile import JobFile
from ces_core.registry import get_solver
from ces_testbed.taps import why_no_taps
from ces_testbed.topology import Topology

EXAMPLES = Path(__file__).parents[2] / "examples" / "applications"
DELAY_MS = 2.0


@pytest.fixture(scope="module")
def _delayed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    told = star(4).model_dump(mode="json")
    links = [link | {"delay": f"{DELAY_MS:g}ms"} for link in told["links"]]
    topology = Topology.model_validate(told | {"links": links})
    with running("app", tmp_path_factory.mktemp("app"), topology) as cluster:
        yield cluster


@pytest.fixture
def delayed(_delayed: FaultCluster) -> Iterator[FaultCluster]:
    """A cluster with the scheduler as it is started by default."""
    yield _delayed
    _delayed.check()


def example(kind: str, **fields: Any) -> dict[str, Any]:
    file: dict[str, Any] = yaml.safe_load((EXAMPLES / f"{kind}.yaml").read_text())
    return file | fields


@pytest.mark.parametrize("kind", ["compute", "communication", "content", "complex"])
def test_a_shipped_application_serves_its_requests_and_ends(delayed: FaultCluster, kind: str) -> None:
    file = example(kind)
    for group in file["tasks"]:
        group["command"] += ["--seconds", "6"]
    forecast = delayed.client.plan(JobFile.model_validate(file))
    assert forecast.feasible, forecast.reason
    assert {each.name for each in forecast.requests} == {each["name"] for each in file["requests"]}
    job = delayed.submit(file)
    view = delayed.finish(job)
    committed = delayed.client.jobs.plan(job)
    assert committed.solver == get_solver().name
    reckoned = {each["name"]: each for each in committed.considered["requests"]}
    places = {task.name: task.node for task in view.placement}
    served = {task.name: (task.progress or {}).get("served", 0) for task in view.placement}
    assert max(served.values()) > 0, served
    measured = measured_requests(view.placement)
    senders = {user: group["name"] for group in file["tasks"] if (user := group.get("constraints", {}).get("user"))}
    for request in file["requests"]:
        steps = {step["what"]: step["ms"] for step in reckoned[request["name"]]["steps"]}
        assert reckoned[request["name"]]["time_ms"] == pytest.approx(sum(steps.values()))
        if request["chain"][-1] == request["from"]:
            told = measured[request["name"]]
            assert told.answers > 0
            assert told.p50 is not None
            assert told.p95 is not None
            assert told.p50 <= told.p95
            passed = {f"{each}-0" for each in (senders[request["from"]], *request["chain"])}
            hops = sum(len(flow.path) - 1 for flow in committed.flows if {flow.src, flow.dst} <= passed)
            delayed = why_no_taps() is None
            assert not delayed or told.p50 >= DELAY_MS * hops, "what was measured is more than the wires take"
            print(f"{request['name']}: {told.text}; reckoned {reckoned[request['name']]['time_ms']:.4g} ms")
    for user in file["users"]:
        assert places[f"{senders[user['name']]}-0"] == user["at"]["node"]


def test_a_deadline_that_no_plan_keeps_keeps_it_waiting_with_the_tightest_part(delayed: FaultCluster) -> None:
    """The detector is to run elsewhere than where its camera is, so that requests cross four links, there and back."""
    file = example("compute")
    file["tasks"][1]["constraints"] = {"labels": {"host": "n2"}}
    file["requests"][0]["deadline"] = "9ms"
    forecast = delayed.client.plan(JobFile.model_validate(file))
    assert not forecast.feasible
    assert forecast.reason is not None
    assert forecast.reason.text.startswith("loop: ")
    assert " ms of 9 ms, " in forecast.reason.text
    assert forecast.reason.text.endswith(" ms are missing")
    job = delayed.submit(file)
    wait_for(lambda: delayed.client.jobs.get(job).waiting, "the scheduler has said why it waits")
    waiting = delayed.client.jobs.get(job).waiting
    assert waiting is not None
    assert waiting.code == "deadline"
    delayed.client.jobs.cancel(job)


def test_a_user_at_no_node_is_refused_with_the_field(delayed: FaultCluster) -> None:
    file = example("compute", users=[{"name": "cam", "at": {"lat": 51.05, "lon": 13.74}}])
    with pytest.raises(ApiError) as error:
        delayed.submit(file)
    assert error.value.status == 422
    assert "users[0].at" in str(error.value)
    assert "no node says where it is" in str(error.value)

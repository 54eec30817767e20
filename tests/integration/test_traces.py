"""A job's attempt in one trace, made by every service that it passes through, also over the death of a manager; and
what is shown of one that is not traced."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from fault_cluster import FaultCluster, recorded_job, running, star
from otlp_receiver import OtlpReceiver
from waiting import wait_for

from ces_client.errors import ApiError
from ces_common.messages.traces import JobTrace

LIFE_S = 2
TASKS = 3
CHAIN = (  # each follows from the one before
    "POST /v1/jobs",
    "publish job.queued",
    "decide",
    "commit plan",
    "publish plan.committed",
    "plan network",
    "await agents",
    "network in place",
    "publish job.starting",
    "plan workers",
)
WHO = {
    "decide": "scheduler",
    "plan network": "network-ctl",
    "await agents": "network-ctl",
    "plan workers": "compute-ctl",
}


@pytest.fixture(scope="module")
def receiver() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def traced(receiver: OtlpReceiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)  # services inherit it
        folder = tmp_path_factory.mktemp("traced")
        settings = {"CES_TRACE_RATIO": "1"}
        with running("traced", folder / "cluster", star(3), network="none", settings=settings) as cluster:
            yield cluster


def whole_trace(
    cluster: FaultCluster, job: str, attempt: int | None = None, steps: Collection[str] = CHAIN
) -> JobTrace:
    """The trace once every worker's start and these steps are told, each by a service of its own."""

    def told() -> bool:
        names = [span.name for span in look().spans]
        return names.count("start worker") == TASKS and {*steps, "workers run"} <= {*names}

    def look() -> JobTrace:
        return cluster.ask(lambda: cluster.client.jobs.trace(job, attempt=attempt))

    wait_for(told, "the whole trace is told")
    return look()


def check_chain(trace: JobTrace) -> None:
    by_id, by_name = {span.id: span for span in trace.spans}, {span.name: span for span in trace.spans}
    assert len(by_id) == len(trace.spans)
    assert by_name[CHAIN[0]].parent is None
    for before, after in pairwise(CHAIN):
        assert by_name[after].parent == by_name[before].id, (before, after)
        assert by_name[after].service == WHO.get(after, "manager")
    starts = [span for span in trace.spans if span.name == "start worker"]
    assert {span.attributes["task"] for span in starts} == {f"w-{i}" for i in range(TASKS)}
    for span in starts:
        assert (span.service, span.parent) == ("edge-agent", by_name["plan workers"].id)
    for span in (span for span in trace.spans if span.name == "apply network"):
        assert (span.service, span.parent) == ("edge-agent", by_name["plan network"].id)
    assert by_name["workers run"].parent == by_name["network in place"].id
    roots = [span for span in trace.spans if span.parent not in by_id]
    assert [span.name for span in roots] == [CHAIN[0]]
    assert trace.spans[0].name == CHAIN[0]


def test_one_trace_holds_every_hop(traced: FaultCluster, receiver: OtlpReceiver) -> None:
    job = traced.submit(recorded_job("traced", LIFE_S))
    traced.await_state(job, "running", "succeeded")

    def applied() -> set[str | None]:
        return {span.node for span in whole_trace(traced, job).spans if span.name == "apply network"}

    wait_for(lambda: "s1" in applied(), "the switch between its workers' nodes has told of its part")
    trace = whole_trace(traced, job)
    assert (trace.source, trace.attempt, trace.attempts) == ("spans", 1, 1)
    check_chain(trace)
    # The switch between them has no worker, and a part in the network.
    nodes = {span.node for span in trace.spans if span.name == "start worker"}
    assert {span.node for span in trace.spans if span.name == "apply network"} == {*nodes, "s1"}
    told = {span.id for span in trace.spans}
    wait_for(lambda: told <= receiver.of_trace(str(trace.trace)).keys(), "the collector has got the same spans")
    exported = receiver.of_trace(str(trace.trace))
    assert {exported[span.id].name for span in trace.spans} == {span.name for span in trace.spans}
    assert all(exported[span.id].parent == (span.parent or "") for span in trace.spans)
    assert {each.service for each in exported.values()} == {
        "ces-manager",
        "ces-scheduler",
        "ces-network-ctl",
        "ces-compute-ctl",
        "ces-edge-agent",
    }
    (decide,) = [span for span in trace.spans if span.name == "decide"]
    wait_for(lambda: decide.links[0] in {each.id for each in receiver.named("cycle")}, "the cycle's own span has come")
    cycles = {each.id: each for each in receiver.named("cycle")}
    assert str(trace.trace) in cycles[decide.links[0]].linked_traces
    traced.finish(job)


@pytest.mark.parametrize("fault", ["commit-relay:1", "commit-ack:1"])
def test_a_manager_that_dies_breaks_no_trace(traced: FaultCluster, fault: str) -> None:
    """Between commit and relay, and after the plan was committed and before the broker heard of it."""
    starts = traced.arm("manager", fault)
    job = traced.submit(recorded_job(f"traced-{fault.replace(':', '-')}", LIFE_S))
    view = traced.finish(job)
    traced.await_start_of("manager", starts + 1)
    assert view.attempt == 1
    if fault == "commit-relay:1":
        check_chain(whole_trace(traced, job))
    else:  # what had not reached the database went with the manager: hops that it only relayed
        steps = {"POST /v1/jobs", "decide", "commit plan", "network in place", "plan workers"}
        spans = whole_trace(traced, job, steps=steps).spans
        assert len({span.id for span in spans}) == len(spans)


def test_a_caller_s_context_is_gone_on_with_where_it_is_one(traced: FaultCluster) -> None:
    trace, parent = "ab" * 16, "cd" * 8
    for given, kept in ((f"00-{trace}-{parent}-00", True), (f"00-{trace}-{'0' * 16}-01", False), ("nonsense", False)):
        answer = httpx.post(
            f"{traced.cluster.url}/v1/jobs",
            json=recorded_job("called", 0, replicas=1),
            headers={"Authorization": f"Bearer {traced.cluster.token}", "traceparent": given},
            trust_env=False,
            verify=traced.cluster.layout.tls() or False,
        )
        job = answer.raise_for_status().json()["id"]
        traced.finish(job)
        told = traced.client.jobs.trace(job)
        assert (told.trace == trace) is kept
        post = next(span for span in told.spans if span.name == "POST /v1/jobs")
        assert post.parent == (parent if kept else None)


def test_the_events_tell_of_what_is_not_traced(tmp_path: Path) -> None:
    with running("untraced", tmp_path / "cluster", star(3), network="none") as cluster:
        job = cluster.submit(recorded_job("untraced", LIFE_S))
        cluster.finish(job)
        told = cluster.client.jobs.trace(job)
        assert (told.source, told.trace) == ("events", None)
        assert [span.name for span in told.spans if span.depth < 2] == ["attempt", "queued", "network", "workers"]
        assert {span.name for span in told.spans if span.depth == 2} == {f"w-{i}" for i in range(TASKS)}
        assert all(span.duration_us is not None for span in told.spans)
        with pytest.raises(ApiError, match="attempt"):
            cluster.client.jobs.trace(job, attempt=2)
        assert all("traceparent" not in event for event in cluster.events())
        pid = cluster.cluster.supervisor.pid("manager")
        assert "google/_upb" not in Path(f"/proc/{pid}/maps").read_text()  # which the exporter needs

"""One job on a cluster that runs, from its submission until its training has ended; and what was seen meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ces_client import Client
from ces_common.jobfile import JobFile
from ces_common.messages.api import JobFlowsView, JobView
from ces_common.states import JOB_OVER, JobState
from ces_testbed.bench.testbed.readings import delivered, promised, record, trained
from ces_testbed.errors import TestbedError

LOOK_S = 0.25
PATIENCE_S = 180.0
REFUSED_S = 3.0  # a job that has had no place for so long will have none: nothing else changes


def wait_for(condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Raises TestbedError."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise TestbedError(f"not within {patience_s:g} s: {what}")
        time.sleep(LOOK_S)


def settled(client: Client, tasks: int) -> bool:
    """Whether so many tasks hold something of a node, and no more."""
    return sum(len(node.allocations) for node in client.nodes.list()) == tasks


def enforced(view: JobFlowsView, reserve: bool) -> bool:
    """Whether all flows over links are promised what they were given, or none is."""
    known = [(promised(flow), flow.bandwidth) for flow in view.flows if len(flow.path) > 1]
    return all(now is not None and (now == given) is reserve for now, given in known)


def run_job(client: Client, job: JobFile, asked: JobFile, background: str, limit_s: float) -> dict[str, Any]:
    """``job``: what is submitted; ``asked``: as its user wrote it; ``background``: the id of the background's job.
    A training that is not at its end ``limit_s`` after it began is ended."""
    began = datetime.now(UTC)
    submitted = client.jobs.submit(job)
    view = _decided(client, submitted.id)
    if view.state == JobState.QUEUED:
        client.jobs.cancel(submitted.id)
        return {"placed": False, "reason": view.waiting.text if view.waiting else None}
    flows = None
    deadline = time.monotonic() + limit_s + PATIENCE_S  # the job must start, too
    started: float | None = None
    while view.state not in JOB_OVER and time.monotonic() < deadline:
        time.sleep(LOOK_S)
        view = client.jobs.get(submitted.id)
        if view.state == JobState.RUNNING:
            if started is None:
                started = time.monotonic()
                deadline = started + limit_s
            flows = client.jobs.flows(submitted.id, since=began)
    others = delivered(client.jobs.flows(background, since=view.started_at or began))
    if view.state not in JOB_OVER:
        client.jobs.cancel(submitted.id)
    plan = client.jobs.plan(submitted.id)
    tasks = [task.name for task in job.expand_tasks()]
    logs = {task: list(client.jobs.logs(submitted.id, task)) for task in tasks} if view.state in JOB_OVER else {}
    found = record(plan, asked, flows, trained(logs), others)
    if plan.considered.get("fallback"):
        raise TestbedError(f"another solver decided: {plan.considered['fallback']}")
    if view.state == JobState.FAILED:
        raise TestbedError(f"job {job.name} failed: {view.reason}")
    return found


def _decided(client: Client, job: str) -> JobView:
    """The job once it has a place, or will have none: then it is still queued."""
    deadline, refused = time.monotonic() + PATIENCE_S, None
    while True:
        view = client.jobs.get(job)
        now = time.monotonic()
        refused = (refused or now) if view.waiting is not None else None
        if view.state != JobState.QUEUED or (refused is not None and now - refused > REFUSED_S):
            return view
        if now > deadline:
            raise TestbedError(f"job {view.name} is still queued after {PATIENCE_S:g} s")
        time.sleep(LOOK_S)

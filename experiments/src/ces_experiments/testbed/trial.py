"""One job on a cluster that runs, from its submission until its training has ended; and what was seen meanwhile."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from ces_client import Client
from ces_common.jobfile import JobFile
from ces_common.messages.api import JobFlowsView, JobView
from ces_common.states import JOB_OVER, JobState
from ces_experiments.common.conditions import LOOK_S, PATIENCE_S
from ces_experiments.testbed.readings import Trained, delivered, promised, record, trained
from ces_testbed.errors import TestbedError

REFUSED_S = 20.0
"""A job without a place for longer will get none: nothing else changes, and a node that missed heartbeats on a busy
machine is back by then."""


def enforced(view: JobFlowsView, reserve: bool) -> bool:
    """Whether every link promises all flows that cross it what they were given, or none does so for any."""
    for flow in view.flows:
        if len(flow.path) < 2:
            continue
        rates = promised(flow)
        if rates is None or (min(rates) != flow.rate if reserve else flow.rate in rates):
            return False
    return True


def run_job(client: Client, job: JobFile, asked: JobFile, background: str, limit_s: float) -> dict[str, Any]:
    """``job``: what is submitted; ``asked``: as its user wrote it; ``background``: the id of the background's job.
    A job that runs for longer than ``limit_s`` is ended; one that fails is told with the reason."""
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
        view = client.jobs.get(submitted.id)  # it may have come to its end before
    plan = client.jobs.plan(submitted.id)
    if plan.considered.get("fallback"):
        raise TestbedError(f"another solver decided: {plan.considered['fallback']}")
    tasks = [task.name for task in job.expand_tasks()]
    training = trained({task: list(client.jobs.logs(submitted.id, task)) for task in tasks})
    return record(plan, asked, flows, training, others, failure(view, training, ran=started is not None))


def failure(view: JobView, training: Trained | None, *, ran: bool) -> str | None:
    """Why a job that is over came to nothing; None where it did not. ``ran``: it was seen running."""
    if view.state == JobState.FAILED:
        return view.reason or "no reason was told"
    if view.state == JobState.SUCCEEDED and not (training and training.ended):
        return "it succeeded, but not every worker's log holds a result"
    if view.state == JobState.CANCELLED and not ran:
        return "its workers were not all started in time"
    return None


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

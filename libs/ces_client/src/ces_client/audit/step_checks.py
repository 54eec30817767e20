"""What is wrong with a change of a job or of a task by its state. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ces_client.audit.lifecycle import ALLOCATION_STEPS, JOB_STEPS, PLACED, RUNS, Allocation, Job


def wrong_job_step(name: str, job: Job, data: Mapping[str, Any], tasks: Sequence[str | None]) -> Iterator[str]:
    """``job``: as it was before; ``tasks``: the states of the tasks of its attempt."""
    state, expected = data["state"], job.attempt + (data["state"] == "queued")
    if data.get("previous") != job.state:
        yield f"job {name} comes from {data.get('previous')} but was {job.state}"
    if state not in JOB_STEPS.get(job.state, set()):
        yield f"job {name} goes from {job.state} to {state}"
    if data["attempt"] != expected:
        yield f"job {name} is at attempt {data['attempt']}, not {expected}"
    if (job.state, state) == ("starting", "running") and not set(tasks) <= {"running", "succeeded"}:
        yield f"job {name} runs while its tasks are {tasks}"
    if state == "succeeded" and job.state != "elsewhere" and set(tasks) != {"succeeded"}:
        yield f"job {name} succeeds while its tasks are {tasks}"


def wrong_allocation_step(who: str, known: Allocation, job: Job, data: Mapping[str, Any]) -> Iterator[str]:
    """``known``: as it was before."""
    expected = known.incarnation + (data["state"] == "pending")
    if data.get("previous") != known.state:
        yield f"{who} comes from {data.get('previous')} but was {known.state}"
    if data["state"] not in ALLOCATION_STEPS.get(known.state, set()):
        yield f"{who} goes from {known.state} to {data['state']}"
    if data["incarnation"] != expected:
        yield f"{who} is at incarnation {data['incarnation']}, not {expected}"
    if data["state"] == "running" and job.state not in RUNS:
        yield f"{who} runs while its job is {job.state}"
    if known.id not in job.allocations:
        yield f"{who} belongs to an attempt that is over"


def runs_twice(who: str, allocation: Allocation, others: Iterable[Allocation], old: str | None) -> Iterator[str]:
    """``others``: that hold something of the same job; ``old``: the allocation that a task which moves has left."""
    for other in others:
        there = other.state == "running" or other.id == old
        if other.task == allocation.task and other.id != allocation.id and there:
            yield f"{who} runs while {other.task} of job {allocation.job} runs on {other.node}, too"


def wrong_revision_step(name: str, job: Job, data: Mapping[str, Any]) -> Iterator[str]:
    if job.state not in PLACED or data["attempt"] != job.attempt:
        yield f"attempt {data['attempt']} is revised while {name} is {job.state} at {job.attempt}"
    if job.state == "suspended" and data["cause"] != "resumed":
        yield f"the flows of {name} are revised while it is suspended"

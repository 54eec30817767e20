"""Records of malleable jobs and rigid ones on four nodes of two cores each, for tests of the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from cluster_state import node, wire
from scheduler_steps import Clock

from ces_common.jobfile import JobFile
from ces_common.messages.records import AllocationRecord, JobRecord
from ces_common.messages.speeds import JobSpeeds, SizeSpeed
from ces_common.states import AllocationState, JobState

START = Clock().time()
NAMES = ["a", "b", "c", "d"]
LINKS = [link for i, one in enumerate(NAMES) for other in NAMES[i + 1 :] for link in wire(one, other)]


def places(cpu: int = 2000) -> list[Any]:
    return [node(name, i + 1, cpu=cpu) for i, name in enumerate(NAMES)]


def malleable(
    name: str,
    on: list[str],
    high: int = 8,
    *,
    ran_s: float = 3600.0,
    speed: Mapping[str, Any] | None = None,
    work: float | None = None,
    hint: Mapping[int, float] | None = None,
    due_s: float | None = None,
    policy: str = "refuse",
    **fields: Any,
) -> JobRecord:
    """A job whose workers take one core each, running with one on each of these nodes; queued where there are none.
    ``speed``: as in its file; or ``work``: units that it has to do, by default as many a second as it has workers.
    It has told that nothing
    of it is done. ``due_s``: its deadline, from now on."""
    if work is not None:
        speed = {"total": work, "hint": {size: float(size) for size in range(1, high + 1)} if hint is None else hint}
    spec = JobFile.model_validate(
        {
            "name": name,
            "tasks": [{"name": "w", "command": ["x"], "resources": {"cpu": "1", "memory": "64Mi"}}],
            "flows": {"topology": "ring", "bandwidth": {"min": "1Mbit", "max": "10Mbit"}},
            "elastic": {"group": "w", "workers": {"min": 1, "max": high}, "speed": speed or {}},
            "deadline": None if due_s is None else {"within": "1d", "policy": policy},
        }
    )
    size = max(len(on), 1)
    sized = spec.at_size(size)
    allocations = [
        AllocationRecord(
            id=f"{name}-{i}",
            task=f"w-{i}",
            rank=i,
            node=place,
            address=f"10.64.0.{i + 2}",
            port=29400,
            state=AllocationState.RUNNING,
        )
        for i, place in enumerate(on)
    ]
    values: dict[str, Any] = {
        "id": name,
        "name": name,
        "priority": 50,
        "state": JobState.RUNNING if on else JobState.QUEUED,
        "size": size,
        "spec": spec,
        "tasks": sized.expand_tasks(),
        "flows": sized.expand_flows(),
        "allocations": allocations,
        "submitted_at": START - timedelta(hours=2),
        "deadline": spec.deadline,
        "deadline_at": None if due_s is None else START + timedelta(seconds=due_s),
        "checkpoint_node": on[0] if on else None,
        "since": START - timedelta(seconds=ran_s),
        "started_at": START - timedelta(seconds=ran_s) if on else None,
        "speeds": speeds({}) if on and work is not None else None,
    }
    return JobRecord.model_validate(values | fields)


def rigid(name: str, tasks: int, cpu: int = 1000) -> JobRecord:
    record = malleable(name, [])
    assert record.spec is not None
    sized = record.spec.at_size(tasks)
    return record.model_copy(
        update={
            "size": None,
            "spec": None,
            "tasks": [task.model_copy(update={"cpu": cpu}) for task in sized.expand_tasks()],
            "flows": sized.expand_flows(),
        }
    )


def speeds(measured: Mapping[int, float], step: int = 0) -> JobSpeeds:
    """Measured now."""
    sizes = {size: SizeSpeed(rate=rate, at=START) for size, rate in measured.items()}
    return JobSpeeds(step=step, attempt=1, incarnation=1, at=START, sizes=sizes)

"""Records of malleable jobs, as the scheduler reads them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from scheduler_steps import Clock

from ces_common.jobfile import JobFile
from ces_common.messages.records import AllocationRecord, JobRecord
from ces_common.messages.speeds import JobSpeeds, SizeSpeed
from ces_common.states import AllocationState, JobState

START = Clock().time()


def malleable(
    name: str,
    on: list[str],
    high: int = 8,
    *,
    ran_s: float = 3600.0,
    speed: Mapping[str, Any] | None = None,
    **fields: Any,
) -> JobRecord:
    """A job whose workers take one core each, running with one on each of these nodes; queued where there are none."""
    spec = JobFile.model_validate(
        {
            "name": name,
            "tasks": [{"name": "w", "command": ["x"], "resources": {"cpu": "1", "memory": "64Mi"}}],
            "flows": {"topology": "ring", "bandwidth": {"min": "1Mbit", "max": "10Mbit"}},
            "elastic": {"group": "w", "workers": {"min": 1, "max": high}, "speed": speed or {}},
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
        "checkpoint_node": on[0] if on else None,
        "since": START - timedelta(seconds=ran_s),
        "started_at": START - timedelta(seconds=ran_s) if on else None,
    }
    return JobRecord.model_validate(values | fields)


def speeds(measured: Mapping[int, float], step: int = 0) -> JobSpeeds:
    """Measured now."""
    sizes = {size: SizeSpeed(rate=rate, at=START) for size, rate in measured.items()}
    return JobSpeeds(step=step, attempt=1, incarnation=1, at=START, sizes=sizes)

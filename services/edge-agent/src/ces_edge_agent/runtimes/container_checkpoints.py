"""Volumes for the checkpoints of malleable jobs, one for each job, which its containers have one after the other."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Final

from docker.errors import APIError
from docker.types import Mount

from ces_edge_agent.runtimes.engine import Engine
from ces_edge_agent.runtimes.names import check_name

_VOLUME: Final = "/checkpoints"
FOLDER: Final = f"{_VOLUME}/job"  # within the volume, since an engine leaves the volume itself to root
_ROLE: Final = "checkpoints"


def mount(engine: Engine, job: str, limit: int | None) -> Mount:
    """The job's volume, made where there is none. ``limit``: bytes that a new one may hold, where the engine can limit
    it; None where it cannot. Raises APIError."""
    name = engine.name(f"{_ROLE}.{check_name(job)}")
    engine.client.create_volume(
        name,
        driver="local",
        driver_opts=None if limit is None else {"size": str(limit)},
        labels={**engine.labels, "ces.role": _ROLE, "ces.job-id": job},
    )
    return Mount(_VOLUME, name, type="volume")


def keep(engine: Engine, jobs: Collection[str]) -> None:
    """Remove all others', but those that a container still has. Raises APIError."""
    labels = [f"{name}={value}" for name, value in {**engine.labels, "ces.role": _ROLE}.items()]
    for volume in engine.client.volumes(filters={"label": labels})["Volumes"] or []:
        if volume["Labels"]["ces.job-id"] not in jobs:
            with contextlib.suppress(APIError):
                engine.client.remove_volume(volume["Name"])

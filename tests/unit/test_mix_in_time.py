"""A mix of jobs with deadlines on CES as a whole, on time that is told to pass: whatever sizes they go through, each
comes to an end, or is refused, and nothing is given twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from run_auditor import judge
from training_world import TrainingWorld

from ces_common.states import JOB_OVER
from ces_experiments.malleable.mix.jobs import MALLEABLE, draw, file_of
from ces_manager.jobs import submission

NODES = {"a": 4000, "b": 4000}
JOBS = 12
LATE_S = 60.0  # after the last deadline


def run(world: TrainingWorld, seed: int, way: str) -> dict[str, dict[str, Any]]:
    """The jobs of a mix as they are in the end, with their deadlines and when they ended, by name."""
    coming = list(draw(seed, JOBS, len(NODES)))
    until = max(job.arrives_s + job.within_s for job in coming) + LATE_S
    began = world.loop.time()
    while (now := world.loop.time() - began) < until:
        while coming and coming[0].arrives_s <= now:
            file = file_of(coming[0], way, f"mix-{coming.pop(0).name}")
            world.write(lambda tx, file=file: submission.submit_job(tx, file, None))
        world.train()
        states = [state for (state,) in world.books.ask("SELECT state FROM jobs")]
        if not coming and all(state in JOB_OVER for state in states):
            break
    found = world.books.ask("SELECT id, name, state, reason, deadline_at, finished_at FROM jobs")
    names = "id", "name", "state", "reason", "due", "ended"
    return {each[1]: dict(zip(names, each, strict=True)) for each in found}


@pytest.mark.parametrize(("seed", "way"), [(11, MALLEABLE), (12, MALLEABLE), (11, "1")])
def test_every_job_is_in_time_or_refused(seed: int, way: str, tmp_path: Path) -> None:
    world = TrainingWorld(tmp_path, NODES, resize_s=5.0)
    try:
        jobs = run(world, seed, way)
        assert world.errors == [], "no service ends by itself"
        assert len(jobs) == JOBS
        for job in jobs.values():
            assert job["state"] in ("succeeded", "failed"), job
            assert job["state"] == "succeeded" or job["reason"].startswith("deadline: "), job
        done = [job["id"] for job in jobs.values() if job["state"] == "succeeded"]
        assert all(world.trainings[job].done == world.trainings[job].steps for job in done)
        assert len(done) >= JOBS // 2
        late = [job for job in jobs.values() if job["state"] == "succeeded" and job["ended"] > job["due"]]
        assert len(late) <= (way == MALLEABLE), "what was promised is kept; one resize may come too late"
        assert judge(world.journal, NODES) == []
    finally:
        world.close()

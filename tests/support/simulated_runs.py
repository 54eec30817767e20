"""Jobs for simulations of the queue, and what became of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import strategies as st

from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.problem import Cluster
from ces_core.queue.parameters import Parameters
from ces_sim.arrivals import TimedJob, poisson
from ces_sim.outcome import Fate

parameters = st.builds(
    Parameters,
    window=st.sampled_from([None, 1, 4]),
    bound_s=st.sampled_from([1.0, 20.0, 100.0]),
    overdue=st.sampled_from([None, 0.0, 0.5]),
    reservations=st.integers(0, 3),
    crowded=st.sampled_from([None, 0.0, 0.5]),
    declined=st.sampled_from([None, 0.0, 0.1]),
    patience_s=st.sampled_from([0.0, 10.0]),
)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[Cluster, list[TimedJob]]:
    regime = draw(st.sampled_from(["thesis", "tight", "scarce"]))
    cluster = read_instance(random_instance(regime, draw(st.integers(0, 50)), nodes=4)).cluster
    jobs = poisson(
        draw(st.integers(1, 14)), draw(st.floats(0.1, 2)), 20, draw(st.sampled_from([(1,), (1, 2), (2, 3, 4)])),
        draw(st.integers(0, 10_000)), regime=regime,
    )  # fmt: skip
    said = draw(st.lists(st.booleans(), min_size=len(jobs), max_size=len(jobs)))
    urgent = draw(st.lists(st.sampled_from([0, 50, 100]), min_size=len(jobs), max_size=len(jobs)))
    return cluster, [
        replace(job, expected_s=job.duration_s if known else None, priority=priority, tenant=f"t{i % 3}")
        for i, (job, known, priority) in enumerate(zip(jobs, said, urgent, strict=True))
    ]


def held(fate: Fate) -> dict[tuple[str, ...], float]:
    """What a job takes, by names, read off its plan."""
    assert fate.plan is not None
    found: dict[tuple[str, ...], float] = {}
    for task in fate.job.tasks:
        for what in ("cpu", "memory"):
            key = (what, fate.plan.assignments[task.name])
            found[key] = found.get(key, 0.0) + getattr(task, what)
    for flow in fate.plan.flows:
        for hop in pairwise(flow.path):
            found[hop] = found.get(hop, 0.0) + flow.bandwidth
    return found

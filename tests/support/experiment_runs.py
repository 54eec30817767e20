"""Runs of the experiment on the testbed in a few words: what a manager says of them, and what is kept of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from ces_common.jobfile import JobFile
from ces_common.messages.api import FlowHop, FlowRates, FlowSample, FlowView, JobFlowsView, JobView, PlanView
from ces_common.states import JobState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MBIT = 1_000_000


def flow(src: str, dst: str, bandwidth: int, path: list[str], rates: list[list[float]], given: int = 0) -> FlowRates:
    """``rates``: what each hop's source reported."""
    hops = [
        FlowHop(src=a, dst=b, samples=[FlowSample(at=NOW, measured=rate, rate=given) for rate in told])
        for a, b, told in zip(path, path[1:], rates, strict=False)
    ]
    return FlowRates(src=src, dst=dst, min=1, max=bandwidth, rate=bandwidth, path=path, hops=hops)


def flows_view(*flows: FlowRates) -> JobFlowsView:
    return JobFlowsView(id="1", name="j", state=JobState.RUNNING, at=NOW, flows=list(flows))


def log(rounds: int, seconds: float, *, over: bool = True) -> Iterator[str]:
    yield "rank 0: some words"
    for i in range(1, rounds + 1):
        told = {"bytes_sent": 1000 * i, "seconds_communicating": i / 2}
        yield json.dumps({"progress": {"round": i, "seconds": i, "accuracy": i / rounds} | told})
    result = {
        "rounds": rounds, "seconds": seconds, "accuracy": 0.9, "bytes_sent": 500_000, "seconds_communicating": 1.0
    }  # fmt: skip
    if over:
        yield json.dumps({"result": result})


def job_view(state: JobState, reason: str | None = None) -> JobView:
    return JobView(
        id="1", name="j", state=state, reason=reason, priority=1, tasks=5, attempt=1, restarts=0, submitted_at=NOW
    )


def plan_of(job: JobFile) -> PlanView:
    """Every flow has its maximum, within one node."""
    flows = [FlowView(src=f.src, dst=f.dst, min=0, max=f.max, rate=f.max, path=["a"]) for f in job.expand_flows()]
    return PlanView(
        plan="p", job="1", attempt=1, solver="x", version=1, committed_at=NOW, metrics={"load_imbalance": 0.2},
        flows=flows, assignments={"worker0-0": "a"},
    )  # fmt: skip


def run_of(
    seed: int, architecture: str, scheduler: str, seconds: float | None, *, placed: bool = True, best: float = 0.91
) -> Any:
    """``seconds`` None: it was ended in its first round; ``best`` below 0.9: the accuracy was not reached."""
    key = {"seed": seed, "architecture": architecture, "scheduler": scheduler, "accuracy": 0.9, "placed": placed}
    if not placed:
        return key | {"reason": "no room"}
    planned = {
        "load_imbalance": 0.2, "bandwidth_satisfaction": 0.6, "composite": 0.7, "local": 0.2, "nodes": 4
    }  # fmt: skip
    carried = {"src": "a", "dst": "b", "hops": 2, "given": 2 * MBIT, "mean": 1e6, "most": 1.8e6, "reports": 3}
    training = {
        "ended": True, "seconds": seconds, "rounds": 9, "accuracy": 0.9, "best": best, "megabytes": 1,
        "communicating": 0.9, "curve": [],
    }  # fmt: skip
    return key | {
        "solver": scheduler,
        "planned": planned,
        "flows": [carried],
        "training": training if seconds is not None else None,
        "failed": None,
        "background_delivered": 0.98,
    }

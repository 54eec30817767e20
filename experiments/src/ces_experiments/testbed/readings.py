"""What one run tells: the plan's figures, what its flows carried, how its training went. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from ces_common.jobfile import JobFile
from ces_common.messages.api import FlowRates, JobFlowsView, PlanView
from ces_core.model.objective import composite

CURVE_POINTS = 40


@dataclass(frozen=True)
class Planned:
    """``load_imbalance`` and ``bandwidth_satisfaction`` as the thesis has them; ``local``: share of the flows that need
    no link; ``nodes``: how many are used."""

    load_imbalance: float
    bandwidth_satisfaction: float
    composite: float
    local: float
    nodes: int

    @staticmethod
    def of(plan: PlanView, job: JobFile) -> Planned:
        """``job``: as its user wrote it. Where nothing was reserved, a flow may have less than it asked for: that
        satisfies it not at all."""
        asked = {(flow.src, flow.dst): flow for flow in job.expand_flows()}
        shares = []
        for given in plan.flows:
            low, high = asked[given.src, given.dst].min, asked[given.src, given.dst].max
            shares.append(min(1.0, max(0.0, ((given.rate or 0) - low) / (high - low))) if high > low else 1.0)
        imbalance, satisfaction = plan.metrics["load_imbalance"], fmean(shares)
        return Planned(
            imbalance,
            satisfaction,
            composite(imbalance, satisfaction),
            fmean(len(flow.path) < 2 for flow in plan.flows),
            len(set(plan.assignments.values())),
        )


@dataclass(frozen=True)
class Carried:
    """A flow that crosses links. bit/s: what the plan gave it, what its source's counters saw from report to report
    (the mean, and the most in one), and the number of reports."""

    src: str
    dst: str
    hops: int
    given: int
    mean: float
    most: float
    reports: int


def carried(view: JobFlowsView) -> list[Carried]:
    """Flows that cross no link have no counters, and are left out; so are those of which nothing was reported."""
    found = []
    for flow in view.flows:
        rates = [sample.measured for sample in flow.hops[0].samples] if flow.hops else []
        if rates:
            given = flow.rate or 0
            found.append(Carried(flow.src, flow.dst, len(flow.hops), given, fmean(rates), max(rates), len(rates)))
    return found


def delivered(view: JobFlowsView) -> float | None:
    """Of what background streams reserved, the share that went over their last link; None where nothing was told."""
    shares = [
        fmean(sample.measured for sample in flow.hops[-1].samples) / flow.rate
        for flow in view.flows
        if flow.rate and flow.hops and flow.hops[-1].samples
    ]
    return fmean(shares) if shares else None


def promised(flow: FlowRates) -> list[int] | None:
    """What the classes of a flow guaranteed at the last report, link by link, in bit/s: less than was given where
    nothing is. None where it crosses no link, or not all have told."""
    last = [hop.samples[-1].rate for hop in flow.hops if hop.samples]
    return last if last and len(last) == len(flow.hops) else None


@dataclass(frozen=True)
class Trained:
    """``ended``: every worker told its result. ``seconds``: from the first round until the last worker stopped, having
    reached the accuracy or heard of it; of a training that was cut, until the last round that a worker told of.
    ``accuracy``: the least of the workers' last ones; ``best``: the most that any of them told in any round. ``curve``:
    seconds and accuracy as the worker of rank 0 told them, some of its rounds."""

    ended: bool
    seconds: float
    rounds: int
    accuracy: float
    best: float
    megabytes: float
    communicating: float
    curve: list[tuple[float, float]]


def trained(logs: Mapping[str, Iterable[str]]) -> Trained | None:
    """From the lines of every worker's log, by rank's order; None where no worker has come through a round."""
    told = [list(_told(lines)) for lines in logs.values()]
    every = [line for lines in told for line in lines]
    if not every:
        return None
    last = [lines[-1] for lines in told if lines]
    return Trained(
        all(lines and not lines[-1]["going"] for lines in told),
        max(line["seconds"] for line in last),
        max(line["done"] for line in last),
        min(line["accuracy"] for line in last),
        max(line["accuracy"] for line in every),
        sum(line["bytes_sent"] for line in last) / 1e6,
        fmean(line["seconds_communicating"] / line["seconds"] for line in last),
        thinned([(line["seconds"], line["accuracy"]) for line in told[0] if line["going"]], CURVE_POINTS),
    )


def _told(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """What a worker said of its rounds and of its end; ``done``: how many rounds that is, ``going``: it went on."""
    for line in lines:
        if not line.startswith("{"):
            continue
        try:
            found = json.loads(line)
        except ValueError:
            continue  # it was ended while it wrote
        if "progress" in found:
            yield found["progress"] | {"done": found["progress"]["round"], "going": True}
        elif "result" in found:
            yield found["result"] | {"done": found["result"]["rounds"], "going": False}


def thinned(points: Sequence[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """At most ``most`` of the points, evenly spaced, the first and the last included."""
    if len(points) <= most:
        return list(points)
    return [points[round(i * (len(points) - 1) / (most - 1))] for i in range(most)]


def record(
    plan: PlanView,
    job: JobFile,
    flows: JobFlowsView | None,
    training: Trained | None,
    background: float | None,
    failed: str | None,
) -> dict[str, Any]:
    """A run whose job found a place, for ``results.json``. ``failed``: why it came to nothing; what its workers said
    until then is no training."""
    return {
        "placed": True,
        "solver": plan.solver,
        "decision_ms": plan.considered.get("decision_ms"),
        "planned": asdict(Planned.of(plan, job)),
        "flows": [asdict(flow) for flow in carried(flows)] if flows is not None else [],
        "training": asdict(training) if training is not None and failed is None else None,
        "failed": failed,
        "background_delivered": background,
    }

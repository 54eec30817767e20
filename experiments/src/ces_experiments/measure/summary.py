"""What was found of emulated nodes, and how well one tells of another. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import permutations
from statistics import median
from typing import Any

from ces_common.messages.scores import Measured, Measurement, NodeScores, RawScore
from ces_common.messages.work import ClassWork, SeenWork, Span
from ces_common.scores import NOISY_OTHERS, scores_of
from ces_common.work import NodeSpeeds, predicted, speeds_of, work_of

Row = Mapping[str, Any]
PATTERN = datetime(2000, 1, 1, tzinfo=UTC)  # scores say when they were measured, which is told elsewhere
CPU_KINDS = ("integer", "float", "matrix", "inference", "memory")


def nodes(results: Mapping[str, Any]) -> list[tuple[int, float, NodeScores, NodeSpeeds]]:
    """Repeat, share, scores and speeds of each node that was measured."""
    found = []
    for row in results["rows"]:
        if "measured" not in row:
            continue
        told = [Measurement.model_validate(each) for each in row["measured"]]
        speeds = speeds_of(told)
        if speeds is not None:
            found.append((row["repeat"], row["share"], scores_of(Measured(at=PATTERN, measurements=told)), speeds))
    return found


def all_threads(scores: NodeScores, kind: str) -> RawScore | None:
    some = [each for each in scores.raw if each.kind == kind]
    return max(some, key=lambda each: each.threads, default=None)


def ratios(results: Mapping[str, Any], share: float, kind: str) -> list[float]:
    """Of this share of the machine to all of it, by what all threads do, divided by the share: 1 is right. Of each
    repeat with the whole machine of the same one."""
    by: dict[tuple[int, float], float] = {}
    for repeat, of, scores, _ in nodes(results):
        raw = all_threads(scores, kind)
        if raw is not None:
            by[repeat, of] = raw.score
    return [
        score / by[repeat, 1.0] / share for (repeat, of), score in by.items() if of == share and (repeat, 1.0) in by
    ]


def taus(results: Mapping[str, Any]) -> list[float]:
    """Kendall's tau between the order by score in computing and by share, of the nodes of each repeat: 1 where all
    pairs are in the right order."""
    from scipy.stats import kendalltau

    found = []
    for repeat in range(results["question"]["repeats"]):
        some = [(share, computing(scores)) for at, share, scores, _ in nodes(results) if at == repeat]
        if len(some) > 1:
            found.append(float(kendalltau(*zip(*some, strict=True)).statistic))
    return found


def computing(scores: NodeScores) -> float:
    """The score by which nodes are ordered: of all threads together, before it is rounded to a level."""
    return next(each.score for each in scores.categories if each.category == "computing")


def errors(results: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Of each program, each pair of nodes of one repeat: by which share the prediction for the second one, by what was
    seen on the first, differs from what was seen there. It may use a core for each process. ``within``: it lies
    in the interval."""
    speeds = {(repeat, share): each for repeat, share, _, each in nodes(results)}
    runs = [row for row in results["rows"] if "program" in row]
    for one, other in permutations(runs, 2):
        same = all(one[key] == other[key] for key in ("repeat", "program", "processes"))
        here, there = speeds.get((one["repeat"], one["share"])), speeds.get((other["repeat"], other["share"]))
        if not same or here is None or there is None:
            continue
        cpu = Span(ms=one["cpu_ms"], low=one["cpu_ms"], high=one["cpu_ms"])
        seen = SeenWork(node="here", tasks=1, steps=one["steps"], cpu=cpu, step=one["step_ms"], cores=one["processes"])
        classes = {kind: ClassWork(work=work) for kind, work in work_of(cpu.ms, here).items()}
        told = predicted("there", classes, there, seen, here)
        if told is None or told.step is None:
            continue
        yield {
            "program": one["program"],
            "processes": one["processes"],
            "from": one["share"],
            "to": other["share"],
            "quiet": max(one["others"], other["others"]) <= NOISY_OTHERS,
            "cpu": abs(told.cpu.ms / other["cpu_ms"] - 1),
            "step": abs(told.step.ms / other["step_ms"] - 1),
            "unscaled": abs(one["step_ms"] / other["step_ms"] - 1),
            "predicted_ms": told.step.ms,
            "seen_ms": other["step_ms"],
            "within": told.step.low <= other["step_ms"] <= told.step.high,
        }


def spreads(results: Mapping[str, Any], share: float) -> list[float]:
    """Between the slowest and the fastest repeat of each measurement of the CPU, as shares of the median."""
    return [
        raw.spread for _, of, scores, _ in nodes(results) if of == share for raw in scores.raw if raw.kind in CPU_KINDS
    ]


def others(results: Mapping[str, Any], share: float) -> list[float]:
    """The most that others used of the machine beside a measurement, of each node."""
    return [row["others"] for row in results["rows"] if "measured" in row and row["share"] == share]


def middle(values: Sequence[float]) -> float | None:
    return median(values) if values else None

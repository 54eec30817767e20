"""The benchmarks that are compared, and the figures that are taken from what each writes."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Results = Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """``read``: out of a benchmark's results; raises KeyError where a former commit did not measure it. ``more``:
    whether more is better."""

    name: str
    read: Callable[[Results], float]
    more: bool = False


@dataclass(frozen=True)
class Benchmark:
    """``command``: what follows ``ces bench``, without where results go."""

    name: str
    command: tuple[str, ...]
    figures: tuple[Figure, ...]
    needs_root: bool = False


def at(*path: str) -> Callable[[Results], float]:
    """The number that lies there."""

    def read(results: Results) -> float:
        found: Any = results
        for key in path:
            found = found[key]
        return float(found)

    return read


def _solver(name: str) -> tuple[Figure, ...]:
    where = "regimes", "tight", "solvers", name, "all_tasks"
    return (
        Figure(f"{name}: CPU of a decision, p50, ms", at(*where, "cpu_ms", "p50")),
        Figure(f"{name}: composite, 0 where not placed", at(*where, "composite_or_0", "mean"), more=True),
    )


SERVICES = ("manager", "scheduler", "network-ctl", "compute-ctl", "nats")
BENCHMARKS = (
    Benchmark(
        "control-plane",
        ("control-plane", "--nodes", "100", "--jobs", "200", "--rate", "10", "--run-s", "5"),
        (
            Figure("submit to running, p50, ms", at("submit_to_running_ms", "p50")),
            Figure("submit to running, p99, ms", at("submit_to_running_ms", "p99")),
            Figure("heartbeat round trip, p99, ms", at("heartbeat_ms", "p99")),
            *(Figure(f"CPU of {name} for a job, ms", at("cpu_ms_per_job", name)) for name in SERVICES),
        ),
    ),
    Benchmark(
        "burst",
        ("control-plane", "--nodes", "100", "--jobs", "300", "--run-s", "5"),
        (
            Figure("jobs brought to running per second", at("jobs_per_s"), more=True),
            Figure("heartbeat round trip, p99, ms", at("heartbeat_ms", "p99")),
        ),
    ),
    Benchmark(
        "placement",
        (
            *("placement", "--regime", "tight", "--tasks", "5", "--rounds", "30", "--solvers", "search,greedy"),
            *("--anytime", "", "--no-exact", "--no-plots"),
        ),
        (*_solver("search"), *_solver("greedy")),
    ),
    Benchmark(
        "network",
        ("network", "--quick"),
        (
            Figure(
                "a changed rate in the kernel, p50, ms",
                lambda results: statistics.median(results["changes"]["applied_ms"]),
            ),
            Figure(
                "a rate's worst undisturbed second, % off",
                lambda results: max(abs(rate["worst_undisturbed"]) for rate in results["rates"].values()),
            ),
        ),
        needs_root=True,
    ),
)

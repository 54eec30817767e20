"""The scale benchmark: one large cluster, many jobs, one process for each solver and size.

A process of its own knows no path yet, so that its first decision is truly a first one, and its memory is its own.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ces_core.bench import scale_process
from ces_core.bench.scale_process import Measured
from ces_core.bench.spread import share, spread
from ces_core.generate import random_instance
from ces_core.simulator.rounds import derived_seed


@dataclass(frozen=True)
class Question:
    """What is compared. ``limits``: time limits in seconds. ``reference`` is asked for every job, untimed, with
    ``reference_s`` seconds, so that there is something good to compare with."""

    nodes: tuple[int, ...]
    topology: str
    regime: str
    tasks: int
    jobs: int
    seed: int
    solvers: tuple[str, ...]
    limits: tuple[float, ...]
    reference: str
    reference_s: float

    def instances(self, nodes: int) -> list[dict[str, Any]]:
        """One cluster, and on it a job for each instance."""
        seed = derived_seed(self.seed, nodes)
        whole = random_instance(self.regime, seed, nodes=nodes, tasks=self.tasks, topology=self.topology)
        jobs = [whole["job"]]
        for number in range(1, self.jobs):
            other = random_instance(self.regime, derived_seed(self.seed, nodes, number), nodes=1, tasks=self.tasks)
            jobs.append(other["job"])
        return [{**whole, "job": job} for job in jobs]

    @property
    def processes(self) -> int:
        return len(self.nodes) * (len(self.solvers) + 1)


def compare(question: Question, advance: Callable[[], None]) -> dict[str, Any]:
    """One process after the other, and what they saw. Raises BadDecisionError."""
    sizes = {}
    for nodes in question.nodes:
        instances = question.instances(nodes)
        with TemporaryDirectory(prefix="ces-bench-") as folder:
            file = Path(folder) / "instances.pickle"
            file.write_bytes(pickle.dumps(instances))
            reference = run_alone(file, question.reference, question.seed, question.reference_s)
            advance()
            found = {}
            for name in question.solvers:
                found[name] = run_alone(file, name, question.seed, question.limits[-1], question.limits)
                advance()
        sizes[str(nodes)] = {"links": len(instances[0]["links"])} | summarise(found, reference)
    return {"question": asdict(question), "sizes": sizes}


def run_alone(file: Path, name: str, seed: int, new_limit: float, limits: Sequence[float] = ()) -> Measured:
    """In a process of its own. Raises what :func:`ces_core.bench.scale_process.measure` raises there."""
    into = file.with_name(f"{name}.pickle")
    words = [str(file), str(into), name, str(seed), str(new_limit), *map(str, limits)]
    subprocess.run([sys.executable, "-m", scale_process.__name__, *words], check=True)
    answer = pickle.loads(into.read_bytes())  # noqa: S301  our own, a moment old
    if isinstance(answer, Exception):
        raise answer
    assert isinstance(answer, Measured)
    return answer


def summarise(found: Mapping[str, Measured], reference: Measured) -> dict[str, Any]:
    """Per solver and time limit (``solver @ 20 ms``). Pure."""
    runs = [run for each in (*found.values(), reference) for run in (each.new, *each.known.values())]
    best = [
        max((taken.composite for taken in job if taken.composite is not None), default=None)
        for job in zip(*runs, strict=True)
    ]
    entries = {}
    for name, each in found.items():
        for limit, known in each.known.items():
            placed = [
                (taken.composite, top) for taken, top in zip(known, best, strict=True) if taken.composite is not None
            ]
            entries[label(name, limit)] = {
                "first_ms": spread([each.new[0].wall_ms]),
                "new_ms": spread(taken.wall_ms for taken in each.new[1:]),
                "wall_ms": spread(taken.wall_ms for taken in known),
                "placed": share(len(placed), len(known)),
                "composite_or_0": spread(taken.composite or 0.0 for taken in known),
                "regret": spread(top - composite for composite, top in placed if top is not None),
                "memory_mib": spread([each.memory_after / 2**20]),
                "memory_grown_mib": spread([(each.memory_after - each.memory_before) / 2**20]),
            }
    return {"placed_by_somebody": sum(top is not None for top in best), "entries": entries}


def label(name: str, limit: float) -> str:
    return f"{name} @ {limit * 1e3:g} ms"

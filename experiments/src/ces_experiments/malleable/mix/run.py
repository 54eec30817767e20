"""Run the mixes: for each seed the same jobs, once malleable and once rigid, one run after the other on one cluster of
emulated hosts with real services."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.progress import Progress

from ces_experiments.common.emulated import emulated
from ces_experiments.common.job_runs import Arrival, JobRuns, after_each, each_run, found_by_audit
from ces_experiments.common.report import Found
from ces_experiments.malleable.mix import jobs as mixes
from ces_experiments.malleable.mix.jobs import MALLEABLE, MixJob
from ces_experiments.malleable.mix.outcome import record
from ces_testbed.capability import why_no_tc
from ces_testbed.errors import TestbedError

RESIZE_S = 5  # jobs take a minute here, and hours elsewhere
FIRST_SEED = 11  # the mix was made with a simulation of those before it in sight
LATE_S = 60.0  # after the last deadline the jobs that still run are cancelled


@dataclass(frozen=True)
class Question:
    """``rigid``: the shares of their time that rigid jobs are sized for, as text."""

    seeds: Sequence[int]
    jobs: int
    nodes: int
    rigid: Sequence[str]

    @staticmethod
    def of(*, seeds: int, **values: Any) -> Question:
        """``seeds``: how many."""
        return Question(seeds=tuple(range(FIRST_SEED, FIRST_SEED + seeds)), **values)

    @property
    def ways(self) -> list[str]:
        return [MALLEABLE, *self.rigid]


class Bench(JobRuns):
    """Runs of mixes."""

    def run(self, seed: int, way: str, jobs: Sequence[MixJob]) -> dict[str, Any]:
        """Submit the jobs at their times, and look at what became of them once all are over. Raises TestbedError."""
        prefix = f"mix-{seed}-{way.replace('.', '-')}"
        arrivals = [Arrival(job.arrives_s, mixes.file_of(job, way, f"{prefix}-{job.name}")) for job in jobs]
        found, events = self.submitted(arrivals, max(job.arrives_s + job.within_s for job in jobs) + LATE_S)
        ids = dict(zip(found, jobs, strict=True))
        notes = {name: self.said(name, "w-0", "notes") or [] for name in ids} if way == MALLEABLE else {}
        return record(events, ids, way, notes)


def runs(question: Question) -> Generator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each run, and the verdict on all so far. Raises TestbedError."""
    settings, topology = {"CES_RESIZE_S": str(RESIZE_S)}, mixes.topology(question.nodes)
    with emulated("mix", topology, settings=settings) as cluster, cluster.client() as client:
        bench = Bench(client)

        def run(seed: int, way: str) -> dict[str, Any]:
            return bench.run(seed, way, mixes.draw(seed, question.jobs, question.nodes))

        for found in each_run(question.seeds, question.ways, run):
            yield found, bench.audit(topology.network)


def measure(question: Question, progress: Progress) -> Iterator[Found]:
    """What is known after each run. Findings of the audit make it a failure. Raises TestbedError."""
    if (reason := why_no_tc()) is not None:
        raise TestbedError(f"ces bench malleable runs on emulated hosts: {reason}")
    known = {"question": asdict(question), "setting": mixes.setting() | {"resize_s": RESIZE_S}}
    count = len(question.seeds) * len(question.ways)

    def failure(audit: Mapping[str, Any], done: Sequence[Mapping[str, Any]]) -> str | None:
        return failure_of(audit["findings"], done, audit["deadlines_kept"])

    yield from after_each(runs(question), count, known, failure, progress)


def failure_of(findings: Sequence[Mapping[str, Any]], runs: Sequence[Mapping[str, Any]], kept: int) -> str | None:
    """What is wrong, in words. ``kept``: deadlines, by the audit's count. Pure."""
    if (found := found_by_audit(findings)) is not None:
        return found
    counted = sum(job["on_time"] for run in runs for job in run["jobs"])
    return None if counted == kept else f"{counted} jobs were on time, and {kept} by the audit"

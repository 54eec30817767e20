"""Run the jobs: for each seed the same ones, once with each rule by which CES chooses CPU and once with each fixed
amount, one run after the other on one cluster of emulated hosts with real services."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.progress import Progress

from ces_experiments.common.emulated import emulated, restart
from ces_experiments.common.job_runs import Arrival, JobRuns, after_each, each_run, found_by_audit
from ces_experiments.common.report import Found
from ces_experiments.common.service_time import cpu_seconds
from ces_experiments.malleable.cpu import jobs as drawn
from ces_experiments.malleable.cpu.jobs import RULES, CpuJob
from ces_experiments.malleable.cpu.outcome import Burnt, record, unsuccessful
from ces_testbed.capability import why_no_tc
from ces_testbed.errors import TestbedError
from ces_testbed.services import SCHEDULER

RESIZE_S = 5  # jobs take half a minute here, and hours elsewhere
FIRST_SEED = 11  # load and amounts were chosen with a simulation of those before it in sight


@dataclass(frozen=True)
class Question:
    """``amounts``: rules by which CES chooses CPU; ``fixed``: amounts that workers have throughout, as text."""

    seeds: Sequence[int]
    jobs: int
    nodes: int
    amounts: Sequence[str]
    fixed: Sequence[str]

    @staticmethod
    def of(*, seeds: int, **values: Any) -> Question:
        """``seeds``: how many."""
        return Question(seeds=tuple(range(FIRST_SEED, FIRST_SEED + seeds)), **values)

    @property
    def ways(self) -> list[str]:
        return [*self.amounts, *self.fixed]


class Bench(JobRuns):
    """Runs of jobs that spend CPU time."""

    def run(self, seed: int, way: str, jobs: Sequence[CpuJob]) -> dict[str, Any]:
        """Submit the jobs at their times, and look at what became of them once all are over. Raises TestbedError."""
        arrivals = [Arrival(job.arrives_s, job.file(way, f"cpu-{seed}-{way}-{job.name}")) for job in jobs]
        found, events = self.submitted(arrivals, drawn.until_s(jobs, way))
        ids = dict(zip(found, jobs, strict=True))
        return record(events, ids, way, {name: self._burnt(name, job) for name, job in ids.items()})

    def _burnt(self, name: str, job: CpuJob) -> Burnt:
        told = {task: self.said(name, task, "burnt") for task in job.tasks}
        return {task: said for task, said in told.items() if said is not None}


def runs(question: Question) -> Generator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each run, and the verdict on all so far. Raises TestbedError."""
    settings, topology = {"CES_RESIZE_S": str(RESIZE_S)}, drawn.topology(question.nodes)
    with emulated("cpu", topology, settings=settings) as cluster, cluster.client() as client:
        bench = Bench(client)

        def run(seed: int, way: str) -> dict[str, Any]:
            restart(cluster, SCHEDULER, {"CES_AMOUNTS": way if way in RULES else RULES[0]})
            before = cpu_seconds(cluster)
            found = bench.run(seed, way, drawn.draw(seed, question.jobs, question.nodes))
            return found | {"services_s": sum(cpu_seconds(cluster).values()) - sum(before.values())}

        for found in each_run(question.seeds, question.ways, run):
            yield found, bench.audit(topology.network)


def measure(question: Question, progress: Progress) -> Iterator[Found]:
    """What is known after each run. Findings of the audit make it a failure. Raises TestbedError."""
    if (reason := why_no_tc()) is not None:
        raise TestbedError(f"ces bench cpu runs on emulated hosts: {reason}")
    known = {"question": asdict(question), "setting": drawn.setting() | {"resize_s": RESIZE_S}}
    yield from after_each(runs(question), len(question.seeds) * len(question.ways), known, failure_of, progress)


def failure_of(audit: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> str | None:
    """What is wrong, in words. Pure."""
    if (found := found_by_audit(audit["findings"])) is not None:
        return found
    lost = unsuccessful(runs)
    return f"{lost} jobs did not succeed, so that means leave them out" if lost else None

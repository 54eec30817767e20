"""Run the mixes: for each seed the same jobs, once malleable and once rigid, one run after the other on one cluster of
emulated hosts with real services."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from rich.progress import Progress

from ces_client import Client
from ces_client.audit import Inventory
from ces_client.audit_inputs import events_until_now, judge, links_of_file, request_of
from ces_common.jobfile import JobFile
from ces_common.states import JOB_OVER, JobState
from ces_experiments.common.console import told
from ces_experiments.common.emulated import emulated
from ces_experiments.common.machine import CoreTime
from ces_experiments.common.report import Found
from ces_experiments.malleable.mix import jobs as mixes
from ces_experiments.malleable.mix.jobs import MALLEABLE, MixJob
from ces_experiments.malleable.mix.outcome import record
from ces_experiments.malleable.mix.resizes import Notes
from ces_experiments.testbed.trial import settled, wait_for
from ces_testbed.capability import why_no_tc
from ces_testbed.errors import TestbedError

RESIZE_S = 5  # jobs take a minute here, and hours elsewhere
FIRST_SEED = 11  # the mix was made with a simulation of those before it in sight
LOOK_S = 2.0
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

    def in_order(self, seed: int) -> list[str]:
        """The ways in the order that the seed draws, so that what changes on the machine over time favours none."""
        return random.Random(seed).sample(self.ways, len(self.ways))


class Bench:
    """A cluster on which one run follows another. Keeps the whole log, and what all jobs asked for."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._asked: dict[str, JobFile] = {}
        self.events: list[dict[str, Any]] = []

    def run(self, seed: int, way: str, jobs: Sequence[MixJob]) -> dict[str, Any]:
        """Submit the jobs at their times, and look at what became of them once all are over. Raises TestbedError."""
        start = time.monotonic()
        ids: dict[str, MixJob] = {}
        for job in jobs:
            file = mixes.file_of(job, way, f"mix-{seed}-{way.replace('.', '-')}-{job.name}")
            self._asked[file.name] = file
            time.sleep(max(0.0, start + job.arrives_s - time.monotonic()))
            ids[self._client.jobs.submit(file).id] = job
        until = start + max(job.arrives_s + job.within_s for job in jobs) + LATE_S
        while (left := self._running(ids)) and time.monotonic() < until:
            time.sleep(LOOK_S)
        for name in left:
            self._client.jobs.cancel(name)
        wait_for(lambda: settled(self._client, 0), "nothing of the jobs is left")
        notes = {name: self._notes(name) for name in ids} if way == MALLEABLE else {}
        before, self.events = len(self.events), [dict(event) for event in events_until_now(self._client)]
        return record(self.events[before:], ids, way, notes)

    def audit(self, nodes: int) -> dict[str, Any]:
        """The verdict on the whole log."""
        requests = {name: request_of(file) for name, file in self._asked.items()}
        inventory = Inventory(jobs=requests, **links_of_file(mixes.topology(nodes).network))
        return judge(self.events, inventory, finished=True).to_dict()

    def _running(self, ids: Mapping[str, MixJob]) -> list[str]:
        return [job.id for job in self._client.jobs.list() if job.id in ids and job.state not in JOB_OVER]

    def _notes(self, job: str) -> Notes:
        """What rank 0 said in the end; nothing where it did not come to its end."""
        if self._client.jobs.get(job).state is not JobState.SUCCEEDED:
            return []
        lines = [line for line in self._client.jobs.logs(job, "w-0") if '"notes"' in line]
        notes: Notes = json.loads(lines[-1])["notes"] if lines else []
        return notes


def runs(question: Question) -> Generator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each run, and the verdict on all so far. Raises TestbedError."""
    settings = {"CES_RESIZE_S": str(RESIZE_S)}
    with emulated("mix", mixes.topology(question.nodes), settings=settings) as cluster, cluster.client() as client:
        bench = Bench(client)
        for seed in question.seeds:
            jobs = mixes.draw(seed, question.jobs, question.nodes)
            for way in question.in_order(seed):
                began, before, load = time.monotonic(), CoreTime.now(), round(os.getloadavg()[0], 2)
                found = bench.run(seed, way, jobs)
                key = {"seed": seed, "way": way, "load_average": load}
                spent = {"stolen": CoreTime.now().stolen_since(before), "took_s": round(time.monotonic() - began)}
                yield key | spent | found, bench.audit(question.nodes)


def measure(question: Question, progress: Progress) -> Iterator[Found]:
    """What is known after each run. Findings of the audit make it a failure. Raises TestbedError."""
    if (reason := why_no_tc()) is not None:
        raise TestbedError(f"ces bench malleable runs on emulated hosts: {reason}")
    step = told(progress, len(question.seeds) * len(question.ways))
    done: list[dict[str, Any]] = []
    setting = mixes.setting() | {"resize_s": RESIZE_S}
    with closing(runs(question)) as measured:
        for found, audit in measured:
            done.append(found)
            results = {"question": asdict(question), "setting": setting, "runs": done, "audit": audit}
            step(f"seed {found['seed']}, {found['way']}")
            yield Found(results, failure=failure_of(audit["findings"], done, audit["deadlines_kept"]))


def failure_of(findings: Sequence[Mapping[str, Any]], runs: Sequence[Mapping[str, Any]], kept: int) -> str | None:
    """What is wrong, in words. ``kept``: deadlines, by the audit's count. Pure."""
    if findings:
        first = findings[0]
        return f"{len(findings)} findings, first: event {first['event']}: {first['text']}"
    counted = sum(job["on_time"] for run in runs for job in run["jobs"])
    return None if counted == kept else f"{counted} jobs were on time, and {kept} by the audit"

"""Runs of real jobs that follow one another on one cluster: submitted at their times, waited for, and audited."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from rich.progress import Progress

from ces_client import Client
from ces_client.audit import Inventory
from ces_client.audit_inputs import events_until_now, judge, links_of_file, request_of
from ces_common.jobfile import JobFile
from ces_common.messages.api import TopologyFile
from ces_common.states import JOB_OVER, JobState
from ces_experiments.common.conditions import settled, wait_for
from ces_experiments.common.console import told
from ces_experiments.common.machine import CoreTime
from ces_experiments.common.report import Found
from ces_experiments.common.ways import in_order

LOOK_S = 2.0

Event = Mapping[str, Any]
Results = dict[str, Any]


@dataclass(frozen=True)
class Arrival:
    """``at_s``: seconds after the run began."""

    at_s: float
    file: JobFile


class JobRuns:
    """A cluster on which one run follows another. Keeps the whole log, and what all jobs asked for."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._asked: dict[str, JobFile] = {}
        self.events: list[dict[str, Any]] = []

    def submitted(self, arrivals: Iterable[Arrival], until_s: float) -> tuple[list[str], Sequence[Event]]:
        """Submit the jobs at their times, and wait until no task holds anything of a node: nothing else may run there.
        Jobs that are not over ``until_s`` seconds after the run began are cancelled. Returns the jobs' ids, and the
        events since the run before. Raises TestbedError."""
        start = time.monotonic()
        ids: list[str] = []
        for each in arrivals:
            self._asked[each.file.name] = each.file
            time.sleep(max(0.0, start + each.at_s - time.monotonic()))
            ids.append(self._client.jobs.submit(each.file).id)
        while (left := self._running(set(ids))) and time.monotonic() < start + until_s:
            time.sleep(LOOK_S)
        for name in left:
            self._client.jobs.cancel(name)
        wait_for(lambda: settled(self._client, 0), "nothing of the jobs is left")
        before, self.events = len(self.events), [dict(event) for event in events_until_now(self._client)]
        return ids, self.events[before:]

    def said(self, job: str, task: str, key: str) -> Any:
        """The value of this key in the task's last line of JSON that has it. None if there is no such line, or the job
        did not succeed."""
        if self._client.jobs.get(job).state is not JobState.SUCCEEDED:
            return None
        lines = [line for line in self._client.jobs.logs(job, task) if f'"{key}"' in line]
        return json.loads(lines[-1])[key] if lines else None

    def audit(self, topology: TopologyFile) -> dict[str, Any]:
        """The verdict on the whole log."""
        requests = {name: request_of(file) for name, file in self._asked.items()}
        return judge(self.events, Inventory(jobs=requests, **links_of_file(topology)), finished=True).to_dict()

    def _running(self, ids: set[str]) -> list[str]:
        return [job.id for job in self._client.jobs.list() if job.id in ids and job.state not in JOB_OVER]


def each_run(seeds: Iterable[int], ways: Sequence[str], run: Callable[[int, str], Results]) -> Iterator[Results]:
    """What ``run`` finds for each seed in every way, with ``seed``, ``way``, ``took_s``, ``load_average`` and
    ``stolen`` (the share of the CPU that others had)."""
    for seed in seeds:
        for way in in_order(seed, ways):
            began, before, load = time.monotonic(), CoreTime.now(), round(os.getloadavg()[0], 2)
            found = run(seed, way)
            key = {"seed": seed, "way": way, "load_average": load}
            spent = {"stolen": CoreTime.now().stolen_since(before), "took_s": round(time.monotonic() - began)}
            yield key | spent | found


def after_each(
    runs: Generator[tuple[Results, Results]],
    count: int,
    known: Results,
    failure: Callable[[Results, Sequence[Results]], str | None],
    progress: Progress,
) -> Iterator[Found]:
    """The results so far, after each of ``count`` runs. ``runs``: a run's results, with the audit's verdict on the log
    so far. ``known``: what all results say. ``failure``: what is wrong by verdict and runs, or None."""
    step, done = told(progress, count), list[Results]()
    with closing(runs) as measured:
        for found, audit in measured:
            done.append(found)
            step(f"seed {found['seed']}, {found['way']}")
            yield Found(known | {"runs": done, "audit": audit}, failure=failure(audit, done))


def found_by_audit(findings: Sequence[Mapping[str, Any]]) -> str | None:
    """In words; None where it found nothing wrong."""
    if not findings:
        return None
    return f"{len(findings)} findings, first: event {findings[0]['event']}: {findings[0]['text']}"

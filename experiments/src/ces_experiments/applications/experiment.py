"""Applications drawn at random run on emulated hosts, a few at a time, alone and beside a flood of all wires."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from rich.progress import Progress

from ces_client import Client
from ces_common.jobfile import JobFile
from ces_common.states import JOB_OVER, JobState
from ces_experiments.applications.draw import SITES, applications, topology
from ces_experiments.applications.judge import Counts, missed, reckoned, told, waiting
from ces_experiments.applications.waits import waited_ms
from ces_experiments.common.conditions import settled, wait_for
from ces_experiments.common.console import told as told_of
from ces_experiments.common.emulated import emulated, restart
from ces_experiments.common.machine import CoreTime
from ces_experiments.common.report import Found
from ces_experiments.testbed.run import NETWORK
from ces_experiments.testbed.trial import enforced
from ces_testbed.capability import why_no_tc
from ces_testbed.cluster import Cluster
from ces_testbed.errors import TestbedError
from ces_testbed.taps import why_no_taps

FLOOD = 45_000_000
"""bit/s that each host sends without a reservation: more than its link carries."""
SETTLE_S = 2.0
AFTER_S = 25.0
"""How long it is waited at most, after a flood, for answers that are still on their way; what has none by then is
lost by the senders' own count."""
ON_THEIR_WAY = 2
"""Requests that are under way at most when nothing holds them up."""


@dataclass(frozen=True)
class Question:
    """``applications`` are drawn with ``seed``; ``together`` at a time run for ``seconds``, alone and beside each
    flood."""

    applications: int = 20
    seed: int = 1
    seconds: float = 20.0
    together: int = 2
    floods: bool = True


class Running:
    """An application whose requests are answered. ``file``: as it was submitted."""

    def __init__(self, client: Client, file: dict[str, Any]) -> None:
        self.file, self._client = file, client
        self.id = client.jobs.submit(JobFile.model_validate(file)).id

    def counts(self) -> dict[str, Any] | None:
        """What its user's task has told last."""
        tasks = self._client.jobs.get(self.id).placement
        return next((found for task in tasks if (found := told(task)) is not None), None)

    def answered(self) -> bool:
        """Raises TestbedError where it will not run."""
        view = self._client.jobs.get(self.id)
        if view.state in JOB_OVER:
            raise TestbedError(f"{view.name} is {view.state}: {view.reason}")
        found = self.counts()
        return view.state == JobState.RUNNING and found is not None and found["answers"] > 0

    def reserved(self, reserve: bool) -> bool:
        """Whether every link promises its flows what they were given, or none does."""
        return enforced(self._client.jobs.flows(self.id), reserve)

    def reckoned(self) -> dict[str, Any]:
        return reckoned(self._client.jobs.plan(self.id), topology())

    def cancel(self) -> None:
        self._client.jobs.cancel(self.id)


def flood_file(rate: int) -> dict[str, Any]:
    """A job without flows: a task on each host, and each sends to one of the other site."""
    hosts = [host for pair in zip(*SITES.values(), strict=True) for host in pair]
    return {
        "name": "flood",
        "tasks": [
            {
                "name": f"f{host}",
                "command": ["python", "-m", "ces_experiments.applications.flood", str(rate)],
                "resources": {"cpu": "500m", "memory": "128Mi"},
                "constraints": {"labels": {"host": host}},
            }
            for host in hosts
        ],
    }


@contextmanager
def _flooded(client: Client) -> Iterator[None]:
    job = client.jobs.submit(JobFile.model_validate(flood_file(FLOOD))).id
    try:
        wait_for(lambda: client.jobs.get(job).state == JobState.RUNNING, "the flood runs")
        time.sleep(SETTLE_S)
        yield
        view = client.jobs.get(job)
        if view.state != JobState.RUNNING:
            raise TestbedError(f"the flood ended before its time: it is {view.state} ({view.reason})")
    finally:
        client.jobs.cancel(job)


def _counts(running: Running) -> dict[str, Any]:
    found = running.counts()
    if found is None:
        raise TestbedError(f"{running.file['name']} tells nothing any more")
    return found


def _alone(batch: Sequence[Running], seconds: float) -> list[dict[str, Any]]:
    waits = [waited_ms(each.id) for each in batch]
    before = [_counts(each) for each in batch]
    time.sleep(seconds)
    found = []
    for each, begun, wait in zip(batch, before, waits, strict=True):
        now = _counts(each)
        sent = max(1, now["sent"] - begun["sent"])
        found.append(now | {"core_wait_ms": (waited_ms(each.id) - wait) / sent})
    return found


def _beside_flood(client: Client, batch: Sequence[Running], seconds: float) -> list[dict[str, int]]:
    before: list[Counts] = [_counts(each) for each in batch]
    with _flooded(client):
        before = [_counts(each) for each in batch]
        time.sleep(seconds)
    deadline = time.monotonic() + AFTER_S
    time.sleep(SETTLE_S)
    while any(waiting(_counts(each)) > ON_THEIR_WAY for each in batch) and time.monotonic() < deadline:
        time.sleep(SETTLE_S)
    return [missed(begun, _counts(each)) for begun, each in zip(before, batch, strict=True)]


@contextmanager
def _batch(client: Client, files: Sequence[dict[str, Any]], *, reserve: bool) -> Iterator[list[Running]]:
    batch: list[Running] = []
    try:
        batch += (Running(client, file) for file in files)
        for each in batch:
            wait_for(each.answered, f"requests of {each.file['name']} are answered")
            wait_for(partial(each.reserved, reserve), f"what is reserved for {each.file['name']} is known")
        time.sleep(SETTLE_S)
        yield batch
    finally:
        for each in batch:
            each.cancel()
        wait_for(lambda: settled(client, 0), "the applications are gone")


def runs(question: Question) -> Generator[tuple[str, dict[str, Any]]]:
    """The name of each application with what was found of it so far. Raises TestbedError."""
    files = applications(question.seed, question.applications)
    groups = [files[first : first + question.together] for first in range(0, len(files), question.together)]
    found: dict[str, dict[str, Any]] = {}
    with emulated("apps", topology()) as cluster, cluster.client() as client:
        for files in groups:
            before = CoreTime.now()
            with _batch(client, files, reserve=True) as batch:
                alone = _alone(batch, question.seconds)
                beside = _beside_flood(client, batch, question.seconds) if question.floods else [None] * len(batch)
                stolen = CoreTime.now().stolen_since(before)
                for each, calm, flooded in zip(batch, alone, beside, strict=True):
                    plain = {"kind": each.file["kind"], "tasks": len(each.file["tasks"]) - 1}
                    rate = {"rate": each.file["requests"][0]["rate"], "stolen": stolen}
                    found[each.file["name"]] = plain | rate | {
                        "reckoned": each.reckoned(), "alone": calm, "reserved": flooded,
                    }  # fmt: skip
            for file in files:
                yield file["name"], found[file["name"]]
        if question.floods:
            yield from _unreserved(cluster, client, question, groups, found)


def _unreserved(
    cluster: Cluster,
    client: Client,
    question: Question,
    groups: Sequence[Sequence[dict[str, Any]]],
    found: dict[str, dict[str, Any]],
) -> Generator[tuple[str, dict[str, Any]]]:
    restart(cluster, NETWORK, {"CES_RESERVE": "False"})
    for files in groups:
        with _batch(client, files, reserve=False) as batch:
            for each, flooded in zip(batch, _beside_flood(client, batch, question.seconds), strict=True):
                found[each.file["name"]]["unreserved"] = flooded
        for file in files:
            yield file["name"], found[file["name"]]


def measure(question: Question, progress: Progress) -> Iterator[Found]:
    """What is known after each application. Raises TestbedError."""
    if (reason := why_no_tc()) is not None:
        raise TestbedError(f"ces bench applications shapes real links: {reason}")
    if (reason := why_no_taps()) is not None:
        raise TestbedError(f"ces bench applications needs wires with delays: {reason}")
    step, started = told_of(progress, question.applications * (2 if question.floods else 1)), time.monotonic()
    done: dict[str, Any] = {}
    with closing(runs(question)) as measured:
        for name, found in measured:
            done[name] = found
            step(name)
            yield Found(
                {"question": asdict(question), "applications": done, "took_s": round(time.monotonic() - started)}
            )

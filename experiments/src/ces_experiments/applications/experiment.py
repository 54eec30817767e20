"""Applications drawn at random run on emulated hosts, a few at a time, alone and beside a flood of all wires."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any

from rich.progress import Progress

from ces_client import Client
from ces_common.jobfile import JobFile
from ces_common.states import JOB_OVER, JobState
from ces_experiments.applications.draw import LARGEST, SITES, applications, topology
from ces_experiments.applications.judge import (
    Answer,
    Counts,
    answers,
    missed,
    reckoned,
    times,
    told,
    undisturbed,
    waiting,
)
from ces_experiments.applications.plain import plain_links
from ces_experiments.applications.waits import Span, watched
from ces_experiments.applications.wires import added
from ces_experiments.common.conditions import settled, wait_for
from ces_experiments.common.console import told as told_of
from ces_experiments.common.emulated import emulated
from ces_experiments.common.report import Found
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
ENOUGH = 100
"""Undisturbed answers that are waited for, ``PATIENCE`` times the seconds at most."""
PATIENCE = 2
LOOK_S = 3.0
ON_THEIR_WAY = 2
"""Requests that are under way at most when nothing holds them up."""


@dataclass(frozen=True)
class Question:
    """``applications`` are drawn with ``seed``, their messages up to ``largest`` bytes; ``together`` at a time run for
    ``seconds``, alone and in each flood."""

    applications: int = 20
    seed: int = 1
    seconds: float = 20.0
    largest: int = LARGEST
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

    def reserved(self) -> bool:
        """Whether every link promises its flows what they were given."""
        return enforced(self._client.jobs.flows(self.id), reserve=True)

    @property
    def rate(self) -> float:
        return float(self.file["requests"][0]["rate"])

    def answers(self) -> list[Answer]:
        """All so far."""
        return answers(self._client.jobs.logs(self.id, "user-0"))

    def reckoned(self) -> dict[str, Any]:
        return reckoned(self._client.jobs.plan(self.id), self.file, topology())

    def cancel(self) -> None:
        self._client.jobs.cancel(self.id)


def flood_file(rate: int) -> dict[str, Any]:
    """A job without flows: a task on each host, and each sends to one of the other site."""
    hosts = [host for pair in zip(*SITES.values(), strict=True) for host in pair]
    program = (resources.files("ces_experiments.applications") / "flood.py").read_text()  # hosts need nothing of ours
    return {
        "name": "flood",
        "tasks": [
            {
                "name": f"f{host}",
                "command": ["python", "-u", "-c", program, str(rate)],
                "resources": {"cpu": "500m", "memory": "128Mi"},
                "constraints": {"labels": {"host": host}},
            }
            for host in hosts
        ],
    }


@contextmanager
def _flooded(client: Client) -> Iterator[None]:
    job = client.jobs.submit(JobFile.model_validate(flood_file(FLOOD))).id

    def floods() -> bool:
        view = client.jobs.get(job)
        if view.state in JOB_OVER:
            raise TestbedError(f"the flood is {view.state}: {view.reason}")
        return view.state == JobState.RUNNING and all(_sends(client, job, task.name) for task in view.placement)

    try:
        wait_for(floods, "the flood runs")
        time.sleep(SETTLE_S)
        yield
        wait_for(floods, "the flood lasted")  # agents that stood still tell of it a little later
    finally:
        if client.jobs.get(job).state not in JOB_OVER:
            client.jobs.cancel(job)


def _sends(client: Client, job: str, task: str) -> bool:
    return any('"sent"' in line for line in client.jobs.logs(job, task))


def _counts(running: Running) -> dict[str, Any]:
    found = running.counts()
    if found is None:
        raise TestbedError(f"{running.file['name']} tells nothing any more")
    return found


def _alone(batch: Sequence[Running], seconds: float) -> list[dict[str, Any]]:
    with _watched(batch) as spans:
        begun = time.monotonic()
        while (lasted := time.monotonic() - begun) < PATIENCE * seconds:
            time.sleep(LOOK_S)
            seen = zip(batch, spans, strict=True)
            if lasted >= seconds and all(len(undisturbed(each.answers(), told)) >= ENOUGH for each, told in seen):
                break
    return _times(batch, spans)


def _flood_both(
    cluster: Cluster, client: Client, batch: Sequence[Running], seconds: float
) -> dict[str, list[dict[str, Any]]]:
    """The same applications in the same places, first with what is reserved for them, then on plain links."""
    with _flooded(client):
        before = [_counts(each) for each in batch]
        with _watched(batch) as spans:
            time.sleep(seconds)
        reserved = _missed_since(before, batch)
        times = _times(batch, spans)
        before = [_counts(each) for each in batch]
        with plain_links(cluster):
            time.sleep(seconds)
    found = [one | two for one, two in zip(reserved, times, strict=True)]
    return {"reserved": found, "plain": _missed_since(before, batch)}


@contextmanager
def _watched(batch: Sequence[Running]) -> Iterator[list[list[Span]]]:
    with ExitStack() as stack:
        yield [stack.enter_context(watched(each.id)) for each in batch]


def _times(batch: Sequence[Running], spans: Sequence[Sequence[Span]]) -> list[dict[str, Any]]:
    time.sleep(SETTLE_S)  # until the last answers are told
    return [times(each.answers(), seen) for each, seen in zip(batch, spans, strict=True)]


def _missed_since(before: Sequence[Counts], batch: Sequence[Running]) -> list[dict[str, int]]:
    deadline = time.monotonic() + AFTER_S
    time.sleep(SETTLE_S)
    while any(waiting(_counts(each)) > ON_THEIR_WAY for each in batch) and time.monotonic() < deadline:
        time.sleep(SETTLE_S)
    return [missed(begun, _counts(each)) for begun, each in zip(before, batch, strict=True)]


@contextmanager
def _batch(client: Client, files: Sequence[dict[str, Any]]) -> Iterator[list[Running]]:
    batch: list[Running] = []
    try:
        batch += (Running(client, file) for file in files)
        for each in batch:
            wait_for(each.answered, f"requests of {each.file['name']} are answered")
            wait_for(each.reserved, f"what is reserved for {each.file['name']} is known")
        time.sleep(SETTLE_S)
        yield batch
    finally:
        for each in batch:
            each.cancel()
        wait_for(lambda: settled(client, 0), "the applications are gone")


def runs(question: Question) -> Generator[tuple[str, dict[str, Any]]]:
    """The name of each application with what was found of it, or why nothing was. Raises TestbedError."""
    files = applications(question.seed, question.applications, question.largest)
    with emulated("apps", topology()) as cluster, cluster.client() as client:
        for first in range(0, len(files), question.together):
            group = files[first : first + question.together]
            try:
                found = _found(cluster, client, group, question)
            except TestbedError as error:
                found = [{"failed": str(error)} for _ in group]
            yield from zip((file["name"] for file in group), found, strict=True)


def _found(
    cluster: Cluster, client: Client, files: Sequence[dict[str, Any]], question: Question
) -> list[dict[str, Any]]:
    with _batch(client, files) as batch:
        alone = _alone(batch, question.seconds)
        flooded = _flood_both(cluster, client, batch, question.seconds) if question.floods else {}
        return [
            {
                "kind": each.file["kind"],
                "tasks": len(each.file["tasks"]) - 1,
                "rate": each.rate,
                "reckoned": each.reckoned(),
                "alone": calm,
                "load": round(os.getloadavg()[0], 2),
            }
            | {way: each_of[place] for way, each_of in flooded.items()}
            for place, (each, calm) in enumerate(zip(batch, alone, strict=True))
        ]


def measure(question: Question, progress: Progress) -> Iterator[Found]:
    """What is known after each application. Raises TestbedError."""
    if (reason := why_no_tc()) is not None:
        raise TestbedError(f"ces bench applications shapes real links: {reason}")
    if (reason := why_no_taps()) is not None:
        raise TestbedError(f"ces bench applications needs wires with delays: {reason}")
    wires = added()
    step, started = told_of(progress, question.applications), time.monotonic()
    done: dict[str, Any] = {}
    failed: dict[str, str] = {}
    with closing(runs(question)) as measured:
        for name, found in measured:
            if "failed" in found:
                failed[name] = found["failed"]
            else:
                done[name] = found
            step(name)
            yield Found(
                {
                    "question": asdict(question),
                    "wires": wires,
                    "applications": done,
                    "failed": failed,
                    "took_s": round(time.monotonic() - started),
                }
            )

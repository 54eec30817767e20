"""``ces audit``: checks by the event log whether the cluster kept its rules. Exits with 1 if it did not."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.progress import Progress

from ces_client.audit import Books, Event, Inventory, JobRequest, Verdict
from ces_client.audit_inputs import (
    events_of_file,
    events_until_now,
    jobs_of_files,
    judge,
    judge_more,
    links_of,
    links_of_file,
    nodes_of,
    request_of,
)
from ces_client.cli import session
from ces_client.cli.output import Output, OutputOption, progress_bars, say, tell
from ces_client.cli.publication import again_and_again, pause_of, publish
from ces_client.client import Client
from ces_client.errors import bad_field
from ces_client.files import load_topology
from ces_client.view.audit import verdict_view
from ces_common.states import JOB_OVER

T = TypeVar("T")
FRESH_S = 86400.0  # for which books are kept: they grow, and findings outlive the events that show them


def audit(
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="events that `ces events -o json` wrote; no cluster")
    ] = None,
    topology: Annotated[
        Path | None, typer.Option("--topology", metavar="FILE", help="links and media, instead of the cluster's word")
    ] = None,
    job: Annotated[
        list[Path] | None,
        typer.Option("--job", metavar="FILE", help="what jobs asked for: a job file or a folder; may be given again"),
    ] = None,
    finished: Annotated[
        bool, typer.Option("--finished", help="the cluster is idle: whatever is still held is a finding")
    ] = False,
    publishing: Annotated[bool, typer.Option("--publish", help="show the outcome on the cluster's dashboard")] = False,
    every: Annotated[
        str | None, typer.Option("--every", metavar="TIME", help="publish one again and again, such as each 10m")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Replay the event log independently: how often was each promise checked, and where was it broken."""
    if log is not None and (log.is_dir() or not log.exists()):
        raise bad_field(f"{log} cannot be audited", "--log", "there is no such file", "give the path of a log")
    if publishing and log is not None:
        raise bad_field("A file's audit is not published", "--publish", "--log reads no cluster", "leave one out")
    if every is not None and (not publishing or finished):
        problem = "a cluster that goes on is not idle" if finished else "an audit that nobody sees need not be repeated"
        raise bad_field("Audits are not repeated like this", "--every", problem, "give it with --publish alone")
    known = {} if topology is None else links_of_file(load_topology(topology))
    auditor = _Auditor(known, jobs_of_files(job or []), finished)
    if every is not None:
        again_and_again(auditor.of_cluster, pause_of(every), output)
        return
    if log is not None:
        verdict = auditor.of_file(log)
    elif publishing:
        verdict, published = publish(auditor.of_cluster)
        say(f"published as audit {published.id}", stderr=True)
    else:
        with session.connect() as client:
            verdict = auditor.of_cluster(client)
    tell(verdict.to_dict(), verdict_view(verdict), output)
    if not verdict.clean:
        raise typer.Exit(1)


class _Auditor:
    """Goes on from its last audit of the cluster. ``known``: links and media, if given; ``asked``: what jobs asked for,
    by name, if given."""

    def __init__(self, known: dict[str, Any], asked: dict[str, JobRequest], finished: bool) -> None:
        self._known, self._asked, self._finished = known, asked, finished
        self._over: dict[str, JobRequest] = {}  # of jobs that were over at the last look: they ask for nothing else
        self._books: Books | None = None
        self._begun = 0.0

    def of_file(self, log: Path) -> Verdict:
        with progress_bars() as progress:
            inventory = Inventory(jobs=self._asked, **self._known)
            events = _counted(events_of_file(log), "events read", progress)
            return judge(events, inventory, finished=self._finished)

    def of_cluster(self, client: Client) -> Verdict:
        with progress_bars() as progress:
            events = self._events(client, progress)
            view = client.topology.get()
            known = self._known or links_of(view.links, view.media)
            jobs = self._asked or self._requests(client, progress)
            inventory = Inventory(jobs=jobs, nodes=nodes_of(view.nodes), **known)
            books, self._books = self._books or Books(inventory), None
            told = judge_more(books, _counted(events, "events judged", progress), inventory, finished=self._finished)
            self._books = books
            return told

    def _events(self, client: Client, progress: Progress) -> list[Event]:
        """Those that follow what is in the books; all, for new books, where these are old, or of another log than the
        cluster's now, such as a promoted standby's."""

        def later_than(number: int) -> list[Event]:
            return list(_counted(events_until_now(client, number), "events read", progress))

        last = None if self._books is None else self._books.last
        if last is not None and time.monotonic() - self._begun < FRESH_S:
            events = later_than(int(last["sequence"]) - 1)
            if events and events[0]["id"] == last["id"]:
                return events[1:]
        self._books, self._begun = None, time.monotonic()
        return later_than(0)

    def _requests(self, client: Client, progress: Progress) -> dict[str, JobRequest]:
        """By id. Each job's is read for itself, but for those that were over before."""
        jobs = list(_counted(client.jobs.list(), "jobs found", progress))
        found = {job.id: self._over[job.id] for job in jobs if job.id in self._over}
        for job in _counted([job for job in jobs if job.id not in found], "jobs read", progress):
            found[job.id] = request_of(client.jobs.get(job.id))
        self._over = {job.id: found[job.id] for job in jobs if job.state in JOB_OVER}
        return found


def _counted(items: Iterable[T], what: str, progress: Progress) -> Iterator[T]:
    bar = progress.add_task(what, total=len(items) if isinstance(items, list) else None)
    for item in items:
        yield item
        progress.advance(bar)

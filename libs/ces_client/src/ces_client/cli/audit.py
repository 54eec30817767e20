"""``ces audit``: checks by the event log whether the cluster kept its rules. Exits with 1 if it did not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from ces_client.audit import Inventory, JobRequest, Verdict
from ces_client.audit_inputs import (
    events_of_file,
    events_until_now,
    jobs_of_files,
    judge,
    links_of,
    links_of_file,
    nodes_of,
    request_of,
)
from ces_client.cli import session
from ces_client.cli.output import Output, OutputOption, console, tell
from ces_client.client import Client
from ces_client.errors import bad_field
from ces_client.files import load_topology
from ces_client.view.audit import verdict_view

T = TypeVar("T")


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
    output: OutputOption = Output.TABLE,
) -> None:
    """Replay the whole event log independently, and report every violation."""
    if log is not None and (log.is_dir() or not log.exists()):
        raise bad_field(f"{log} cannot be audited", "--log", "there is no such file", "give the path of a log")
    known = {} if topology is None else links_of_file(load_topology(topology))
    asked = jobs_of_files(job or [])
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        if log is not None:
            inventory = Inventory(jobs=asked, **known)
            verdict = judge(_counted(events_of_file(log), "events read", progress), inventory, finished=finished)
        else:
            verdict = _of_cluster(known, asked, finished, progress)
    tell(verdict.to_dict(), verdict_view(verdict), output)
    if not verdict.clean:
        raise typer.Exit(1)


def _of_cluster(known: dict[str, Any], asked: dict[str, JobRequest], finished: bool, progress: Progress) -> Verdict:
    with session.connect() as client:
        events = list(_counted(events_until_now(client), "events read", progress))
        view = client.topology.get()
        if not known:
            known = links_of(view.links, view.media)
        jobs = asked or _jobs(client, progress)
    inventory = Inventory(jobs=jobs, nodes=nodes_of(view.nodes), **known)
    return judge(_counted(events, "events judged", progress), inventory, finished=finished)


def _jobs(client: Client, progress: Progress) -> dict[str, JobRequest]:
    """By id."""
    ids = [job.id for job in _counted(client.jobs.list(), "jobs found", progress)]
    return {job: request_of(client.jobs.get(job)) for job in _counted(ids, "jobs read", progress)}


def _counted(items: Iterable[T], what: str, progress: Progress) -> Iterator[T]:
    bar = progress.add_task(what, total=len(items) if isinstance(items, list) else None)
    for item in items:
        yield item
        progress.advance(bar)

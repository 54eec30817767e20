"""The inputs of an audit: events from a cluster or a file, capacities, and what jobs asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ces_client.audit import Books, Event, Inventory, JobRequest, Verdict, verdict_of
from ces_client.client import Client
from ces_client.errors import BadInput, bad_field
from ces_client.files import load_job
from ces_common.jobfile import JobFile, Task
from ces_common.messages.api import JobView, LinkView, NodeView, TaskView, TopologyFile

JOB_FILES = (".yaml", ".yml", ".json")
REMEDY = "give what `ces events -o json` wrote, whole"


def judge(events: Iterable[Event], inventory: Inventory, *, finished: bool = False) -> Verdict:
    """The verdict on a log. ``finished``: the cluster is idle, so whatever is still held is a finding.

    Raises BadInput for events without the fields of their type.
    """
    return judge_more(Books(inventory), events, inventory, finished=finished)


def judge_more(books: Books, events: Iterable[Event], inventory: Inventory, *, finished: bool = False) -> Verdict:
    """The verdict on what the books hold and the events that follow. Raises BadInput; the books are of no use then."""
    books.go_on(inventory)
    for count, event in enumerate(events, start=1):
        try:
            books.read(event)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"it has no field {error}" if isinstance(error, KeyError) else str(error)
            raise bad_field("The log cannot be audited", f"event {count} of it", what, REMEDY) from error
    books.close(finished=finished)
    return verdict_of(books, inventory)


def events_until_now(client: Client, after: int = 0) -> Iterator[Event]:
    """A cluster's events, from the oldest that it keeps later than number ``after`` up to the last when this was
    asked."""
    return (event.data for event in client.events_so_far(after=after))


def events_of_file(path: Path) -> Iterator[Event]:
    """The events that ``ces events -o json`` wrote. Raises BadInput."""
    title = f"{path} cannot be audited"
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    told = json.loads(line)
                    if told["sequence"] is not None:  # without one it is progress, not an event
                        yield {**told["data"]}
                except (ValueError, KeyError, TypeError) as error:
                    what = f"it holds no event: {error or type(error).__name__}"
                    raise bad_field(title, f"line {number}", what, REMEDY) from error
    except OSError as error:
        raise bad_field(title, "--log", error.strerror or str(error), "check the path and its permissions") from error
    except UnicodeDecodeError as error:
        raise bad_field(title, "--log", "it is not text in UTF-8", REMEDY) from error


def links_of_file(topology: TopologyFile) -> dict[str, Any]:
    """The fields of an Inventory that a topology file gives."""
    links = [
        LinkView(src=src, dst=dst, bandwidth=link.bandwidth, reserved=0, kind=link.kind, medium=link.medium)
        for link in topology.links
        for src, dst in [(link.src, link.dst), (link.dst, link.src)][: 2 if link.both else 1]
    ]
    return links_of(links, {medium.name: medium.bandwidth for medium in topology.media})


def links_of(links: Iterable[LinkView], media: Mapping[str, int]) -> dict[str, Any]:
    """The fields of an Inventory about links and media."""
    links = list(links)
    return {
        "links": {(link.src, link.dst): link.bandwidth for link in links},
        "media": dict(media),
        "medium_of": {(link.src, link.dst): link.medium for link in links if link.medium is not None},
        "tunnelled": {link.medium for link in links if link.medium is not None and link.kind == "vxlan"},
        "encrypted": {link.medium for link in links if link.medium is not None and link.kind == "wireguard"},
    }


def nodes_of(nodes: Iterable[NodeView]) -> dict[str, tuple[int, int, int]]:
    """An Inventory's ``nodes``."""
    return {node.name: (node.cpu, node.memory, node.gpu) for node in nodes}


def request_of(job: JobView | JobFile) -> JobRequest:
    """What a job asked for."""
    if isinstance(job, JobView):
        listed: Sequence[TaskView | Task] = job.placement
        expected_s, elastic = job.expected_s, job.elastic
    else:
        listed = job.expand_tasks()
        expected_s, elastic = job.duration, job.elastic
    tasks = {task.name: (task.cpu, task.memory, task.gpu) for task in listed}
    suspendable = job.preemption == "suspend"
    if elastic is None:
        shares = {task.name: task.gpu_share for task in listed if task.gpu_share}
        return JobRequest(tasks, expected_s, suspendable, shares=shares)
    cpu = None if elastic.cpu is None else (elastic.cpu.min, elastic.cpu.max)
    return JobRequest(tasks, expected_s, suspendable, elastic.group, elastic.allowed, cpu)


def jobs_of_files(paths: Sequence[Path]) -> dict[str, JobRequest]:
    """Requests by job name, from job files and folders of them. Raises BadInput, also if two of
    one name ask for different things."""
    found: dict[str, JobRequest] = {}
    for path in paths:
        files = sorted(each for each in path.iterdir() if each.suffix in JOB_FILES) if path.is_dir() else [path]
        if not files:
            raise bad_field(f"{path} holds no job files", "--job", f"no {', '.join(JOB_FILES)} in it", "name another")
        for file in files:
            job = load_job(file)
            asked = request_of(job)
            if found.setdefault(job.name, asked) != asked:
                raise BadInput(
                    f"{file} contradicts another job file",
                    [{"field": "name", "problem": f"two jobs are called {job.name}", "remedy": "give one of them"}],
                )
    return found

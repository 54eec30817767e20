"""Commands about the cluster: lists, nodes, topology, events, probes of links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from pydantic import BaseModel, ValidationError
from rich.console import RenderableType
from rich.text import Text

from ces_client.cli import completion, session
from ces_client.cli.live_view import WatchOption, watch_changes
from ces_client.cli.output import Output, OutputOption, console, local_now, say, show, show_json, show_json_line, tell
from ces_client.client import Client
from ces_client.errors import ApiError, bad_field
from ces_client.files import load_topology
from ces_client.stream import StreamEvent
from ces_client.view.applicants import applicant_table
from ces_client.view.drain import drain_view
from ces_client.view.lists import (
    calendar_text,
    job_table,
    link_table,
    node_detail,
    node_table,
    probe_table,
    queue_table,
)
from ces_client.view.queue_status import waiting_text
from ces_common.messages.api import LinkProbeView, NodeView
from ces_common.messages.events import CloudEvent, JobWaiting
from ces_common.messages.membership import Applicant
from ces_common.messages.owner_calendar import EXAMPLE
from ces_common.roles import Role

M = TypeVar("M", bound=BaseModel)
CREDENTIAL = {
    "revoked": "its credential is refused from now on",
    "pending": "NATS could not be told yet to refuse its credential; the manager goes on trying",
    "kept": "its credential stays good, since the manager has no key to revoke it (CES_REVOCATION_KEY_FILE)",
}
NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="a node's name", autocompletion=completion.nodes)]


def get_jobs(watch: WatchOption = False, output: OutputOption = Output.TABLE) -> None:
    """List jobs."""
    _list(lambda client: client.jobs.list(), lambda jobs: job_table(jobs, local_now()), "no jobs", watch, output)


def get_nodes(watch: WatchOption = False, output: OutputOption = Output.TABLE) -> None:
    """List nodes with what they have and what of it is allocated. Tables of admins show devices that have applied."""

    def fetch(client: Client) -> Iterator[NodeView | Applicant]:
        yield from client.nodes.list()
        if output == Output.TABLE and client.whoami().role == Role.ADMIN:
            yield from client.applicants.list()

    _list(fetch, lambda nodes: node_table(nodes, local_now()), "no nodes", watch, output)


def get_applicants(watch: WatchOption = False, output: OutputOption = Output.TABLE) -> None:
    """List devices that have applied to be made nodes, with what they claim."""
    _list(
        lambda client: client.applicants.list(),
        lambda applicants: applicant_table(applicants, local_now()),
        "no device has applied",
        watch,
        output,
    )


def get_links(watch: WatchOption = False, output: OutputOption = Output.TABLE) -> None:
    """List links with capacity, what is reserved and what is used."""
    _list(lambda client: client.topology.links(), link_table, "no links", watch, output)


def get_queue(watch: WatchOption = False, output: OutputOption = Output.TABLE) -> None:
    """List waiting jobs, first in line first: what they wait for, and when they are expected to start."""
    told: set[str] = set()

    def remark(text: str) -> None:
        if text not in told:
            told.add(text)
            console(stderr=True).print(Text(text, style="yellow"), soft_wrap=True)

    _list(
        lambda client: client.queue(on_remark=remark),
        lambda entries: queue_table(entries, local_now()),
        "no job waits",
        watch,
        output,
    )


def _list(
    fetch: Callable[[Client], Iterable[M]],
    filled: Callable[[Sequence[M]], RenderableType],
    empty: str,
    watch: bool,
    output: Output,
) -> None:
    def table(items: Sequence[M]) -> RenderableType:
        return filled(items) if items else Text(empty)

    with session.connect() as client:
        items = list(fetch(client))
        if not watch:
            tell(items, table(items), output)
            return
        watch_changes(lambda: list(fetch(client)), items, table, output)


def describe_node(node: NodeArgument, output: OutputOption = Output.TABLE) -> None:
    """Show all about a node: capacity, tasks, links."""
    with session.connect() as client:
        known = _known(client, node)
        links = [link for link in client.topology.links() if node in (link.src, link.dst)]
    if output == Output.JSON:
        links_data = [link.model_dump(mode="json") for link in links]
        show_json(known.model_dump(mode="json") | {"links": links_data})
    else:
        show(node_detail(known, links, local_now()))


def _known(client: Client, node: str) -> NodeView:
    """Raises ApiError, which says which nodes there are."""
    nodes = {one.name: one for one in client.nodes.list()}
    if node not in nodes:
        remedy = f"nodes are {', '.join(sorted(nodes))}" if nodes else "no node has joined yet"
        raise bad_field(f"No node is named {node}", "node", "there is none of that name", remedy)
    return nodes[node]


def cordon(node: NodeArgument, output: OutputOption = Output.TABLE) -> None:
    """Let no new task go to a node."""
    _ask(node, "cordon", output)


def uncordon(node: NodeArgument, output: OutputOption = Output.TABLE) -> None:
    """Let tasks go to a node again."""
    _ask(node, "uncordon", output)


def drain(
    node: NodeArgument,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="change nothing, and tell what would be hit")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Cordon a node and move its jobs elsewhere."""
    if not dry_run:
        _ask(node, "drain", output)
        return
    with session.connect() as client:
        forecast = client.nodes.drain_forecast(node)
    tell(forecast, drain_view(forecast), output)


def rotate_key(node: NodeArgument, output: OutputOption = Output.TABLE) -> None:
    """Have a node replace the key by which its links are encrypted; connections stay."""
    with session.connect() as client:
        view = client.nodes.rotate_key(node)
    _tell(view, f"{node} tells its neighbours the next key, and goes over to it in some seconds", output)


def reclaim(node: NodeArgument, output: OutputOption = Output.TABLE) -> None:
    """Have a lent node given back to its owner; its jobs move elsewhere."""
    with session.connect() as client:
        view = client.nodes.reclaim(node)
    frozen = "its workers are frozen and end within ten seconds, and nothing starts there until it is lent again"
    _tell(view, f"{node} is given back: {frozen}", output)


def lend(node: NodeArgument, output: OutputOption = Output.TABLE) -> None:
    """Lend a node again that its owner reclaimed."""
    with session.connect() as client:
        view = client.nodes.lend(node)
    _tell(view, f"{node} is lent, until its owner needs it", output)


def measure(node: NodeArgument, output: OutputOption = Output.TABLE) -> None:
    """Have a node measure again how fast it is."""
    with session.connect() as client:
        view = client.nodes.measure(node)
    _tell(view, f"{node} measures, for 15 seconds at most; `ces describe node {node}` then shows its scores", output)


def calendar(
    node: NodeArgument,
    times: Annotated[str | None, typer.Argument(metavar="TIMES", help=f"each week, like {EXAMPLE!r}")] = None,
    zone: Annotated[str | None, typer.Option(help="whose clocks, like Europe/Berlin; UTC if left out")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="forget it")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say when a lent node's owner usually needs it, so that jobs go elsewhere in time; without TIMES, show it."""
    if clear and (times, zone) != (None, None):
        raise typer.BadParameter("forgets the calendar, and takes no times and no zone", param_hint="--clear")
    if zone is not None and times is None:
        raise typer.BadParameter("is that of the times: give both", param_hint="--zone")
    with session.connect() as client:
        if clear:
            view = client.nodes.clear_calendar(node)
        elif times is not None:
            view = client.nodes.set_calendar(node, times, zone=zone or "UTC")
        else:
            view = _known(client, node)
    _tell(view, view.remark or f"{node}: {calendar_text(view.calendar, local_now())}", output)


def _tell(view: BaseModel, text: str, output: Output) -> None:
    if output == Output.JSON:
        show_json(view)
    else:
        show(Text(text))


def _ask(node: str, what: str, output: Output) -> None:
    with session.connect() as client:
        before = next((each for each in client.nodes.list() if each.name == node), None)
        ask = {"cordon": client.nodes.cordon, "uncordon": client.nodes.uncordon, "drain": client.nodes.drain}[what]
        view = ask(node)
    if output == Output.JSON:
        show_json(view)
    elif before is not None and _is_already(what, before):
        state = "takes tasks" if what == "uncordon" else f"is {what}ed"
        show(Text(f"nothing to do: {node} {state} already"))
    else:
        show(Text(view.remark or f"{what} requested for {node}"))


def _is_already(what: str, node: NodeView) -> bool:
    if what == "drain" and node.allocations:
        return False
    return node.cordoned is (what != "uncordon")


def forget(node: NodeArgument, output: OutputOption = Output.TABLE) -> None:
    """Remove a node for good: one that is lost, or drained and empty."""
    with session.connect() as client:
        gone = client.nodes.forget(node)
    if output == Output.JSON:
        show_json(gone)
        return
    jobs = f"; jobs that lose their place: {', '.join(gone.jobs)}" if gone.jobs else ""
    show(Text(f"{node} is forgotten{jobs}"))
    show(Text(CREDENTIAL[gone.credential]))


def token(
    node: Annotated[str | None, typer.Option("--node", help="only the node of this name may use it")] = None,
    ttl: Annotated[int, typer.Option("--ttl", min=10, max=7 * 86400, help="seconds for which it is valid")] = 3600,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make a token with which one node may join, once."""
    with session.connect() as client:
        made = client.nodes.create_token(node, ttl_s=ttl)
    if output == Output.JSON:
        show_json(made)
    else:
        say(made.token)
        who = f"node {made.node}" if made.node else "one node"
        console(stderr=True).print(
            Text(f"lets {who} join, once, until {made.expires_at:%Y-%m-%d %H:%M:%S %Z}; it is not shown again")
        )


def topology_apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="links and media, YAML or JSON")],
    output: OutputOption = Output.TABLE,
) -> None:
    """Replace the cluster's links and media by those of a file."""
    topology = load_topology(file)
    with session.connect() as client:
        view = client.topology.put(topology)
    if output == Output.JSON:
        show_json(view)
    else:
        show(link_table(view.links))
        show(Text(f"{len(view.links)} links, {len(view.media)} media"))
    joined = {node.name for node in view.nodes}
    missing = sorted({end for link in view.links for end in (link.src, link.dst)} - joined)
    if missing:
        remark = f"not joined yet: {', '.join(missing)}; links to them count once they have"
        console(stderr=True).print(Text(remark), soft_wrap=True)


def events(
    job: Annotated[
        str | None,
        typer.Argument(metavar="[JOB]", help="only of this job (id or name)", autocompletion=completion.jobs),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="show new ones as they happen")] = False,
    actor: Annotated[str | None, typer.Option("--actor", help="only what the token of this name asked for")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what has happened; with -f, go on with what happens."""
    with session.connect() as client:
        try:
            for event in _events(client, session.job_id(client, job) if job else None, follow):
                if actor is not None and event.data.get("actor") != actor:
                    continue
                if output == Output.JSON:
                    show_json_line({"type": event.type, "sequence": event.sequence, "data": event.data})
                elif event.sequence is not None:
                    console().print(event_line(event), soft_wrap=True)
        except KeyboardInterrupt:
            return


def _events(client: Client, job: str | None, follow: bool) -> Iterable[StreamEvent]:
    if job is None:
        return client.events() if follow else client.events_so_far()
    return client.jobs.events(job) if follow else client.jobs.events_so_far(job)


def event_line(event: StreamEvent) -> Text:
    """``12 09:15:02 job.running 01J... state=running reason=...``"""
    body = event.data.get("data")
    facts = body if isinstance(body, dict) else {}
    subject = str(event.data.get("subject", ""))
    told = " ".join(
        f"{key}={value}"
        for key, value in facts.items()
        if isinstance(value, str | int | float) and value not in ("", subject)
    )
    if event.type == "ces.v1.job.waiting":
        told += f" {_what_for(event)}"
    if event.data.get("actor"):
        told += f" by {event.data['actor']}"
    moment = str(event.data.get("time", ""))[11:19]
    return Text.assemble(
        (f"{event.sequence:>6} ", "dim"),
        (f"{moment} ", "dim"),
        (event.type.removeprefix("ces.v1."), "bold"),
        f" {subject} ",
        (told, "dim"),
    )


def _what_for(event: StreamEvent) -> str:
    """What a job waits for, in the time zone of the event's own time."""
    try:
        waiting = CloudEvent[JobWaiting].model_validate(event.data)
    except ValidationError:  # of another version of the manager
        return ""
    return waiting_text(waiting.data.reason, waiting.data.queue_status, waiting.time).plain


def probe(
    src: Annotated[
        str | None, typer.Argument(metavar="[SRC", help="the node that sends", autocompletion=completion.nodes)
    ] = None,
    dst: Annotated[
        str | None,
        typer.Argument(metavar="DST]", help="its neighbour, which counts what comes", autocompletion=completion.nodes),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="every link that is up, one after the other")] = False,
    seconds: Annotated[float, typer.Option("--seconds", min=0.2, max=5, help="how long each link is filled")] = 1.0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure capacity and round-trip time of a link. What is idle of it is filled for a moment."""
    if every == (src is not None) or (src is None) != (dst is None):
        remedy = "name both, for example ces probe n1 n2, or give --all"
        raise bad_field("No link is named", "SRC DST", "a link has two ends", remedy)
    found: list[LinkProbeView] = []
    with session.connect() as client:
        if src is not None and dst is not None:
            found = [client.topology.probe(src, dst, seconds=seconds)]
        else:
            failed = _probe_all(client, seconds, found)
    tell(found, probe_table(found) if found else Text("no link was measured"), output)
    if every and failed:
        raise typer.Exit(1)


def _probe_all(client: Client, seconds: float, found: list[LinkProbeView]) -> int:
    """How many links that are up could not be measured; why goes to the error output."""
    failed = 0
    for link in client.topology.links():
        if link.state == "down":
            continue
        try:
            found.append(client.topology.probe(link.src, link.dst, seconds=seconds))
        except ApiError as error:
            failed += 1
            console(stderr=True).print(Text(f"{link.src} › {link.dst}: {error}"), soft_wrap=True)
    return failed

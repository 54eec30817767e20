"""``ces up``, ``ces down`` and ``ces testbed``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ces_client.cli.output import Output, OutputOption, console, show, show_json
from ces_client.context import context_path
from ces_client.errors import CesError, bad_field
from ces_client.view.plan import plain_table
from ces_common.messages.api import Problem
from ces_common.quantities import show_bandwidth, show_cpu, show_memory
from ces_testbed.addressing import check_cluster
from ces_testbed.choices import NetworkChoice, RuntimeChoice, checked_queue, choose, read_topology
from ces_testbed.cleanup import has_namespaces, leftovers, remove_cluster
from ces_testbed.errors import TestbedError
from ces_testbed.launch import Background, is_up
from ces_testbed.progress import News
from ces_testbed.showing import show_progress
from ces_testbed.spec import API_PORT, LOCALHOST, ClusterSpec, Files, default_root, free_port, port_is_free
from ces_testbed.topology import Topology

DEFAULT_CLUSTER = "local"
END_S = 60.0

NameOption = Annotated[str, typer.Option("--name", help="of the cluster: lower-case letters and digits")]
StateOption = Annotated[
    Path | None, typer.Option("--state", help="folder for its files; by default under ~/.local/state/ces")
]
TopologyOption = Annotated[
    Path | None, typer.Option("--topology", help="YAML file; by default six hosts around a switch")
]


class Failed(CesError):
    """A cluster that could not be started, or not be removed."""

    exit_code = 1

    def __init__(self, title: str, detail: str, logs: Path | None = None) -> None:
        errors = [{"field": "logs", "problem": str(logs)}] if logs is not None else []
        super().__init__(Problem(type="ces:cluster", title=title, status=500, detail=detail, errors=errors))


def up(
    runtime: Annotated[RuntimeChoice, typer.Option("--runtime", help="how workers run")] = RuntimeChoice.PROCESS,
    network: Annotated[
        NetworkChoice, typer.Option("--network", help="tc enforces bandwidth and needs root; auto takes it if it can")
    ] = NetworkChoice.AUTO,
    topology: TopologyOption = None,
    queue: Annotated[
        Path | None, typer.Option("--queue", help="file of the queue's parameters and tenants; left out, all defaults")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", min=1, max=65535, help="of the API; by default 8080")] = None,
    name: NameOption = DEFAULT_CLUSTER,
    state: StateOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Start a local cluster in the background."""
    cluster, files = _place(name, state)
    wanted, queue = read_topology(topology), checked_queue(queue)
    if files.root.is_dir() and files.read_spec() is None and set(files.root.iterdir()) - {files.logs}:
        raise bad_field("The folder cannot be used", "--state", f"{files.root} holds other things", "name another one")
    if is_up(files):
        raise bad_field(f"The cluster {cluster} is up already", "--name", "it runs", "`ces down` ends it")
    choice = choose(runtime, network)
    screen = console(stderr=output == Output.JSON)
    _remove(cluster, files, containers=choice.runtime == "docker")  # whatever an earlier one left
    spec = ClusterSpec(
        name=cluster,
        topology=wanted,
        runtime=choice.runtime,
        network=choice.network,
        api_port=_api_port(port),
        queue=queue,
    )
    screen.print(Text(choice.note, style="" if choice.unenforced is None else "yellow"))
    last = _start(Background(spec, files, tied=False), screen)
    if last.kind != "ready":
        raise Failed(f"The cluster {cluster} could not be started", last.text, files.logs)
    if output == Output.JSON:
        show_json({"name": cluster, "url": last.text, "state": str(files.root), "network": choice.network})
        return
    show(Text(f"\ncluster {cluster} is up at {last.text}; its files and logs: {files.root}"))
    show(Text(f"`ces` talks to it now ({context_path()}). Next:"))
    for command, what in (
        ("ces get nodes", "its nodes"),
        ("ces submit JOB.yaml --wait", "run a job, for example examples/jobs/digits-ring.yaml"),
        ("ces down", "end it; only its logs stay"),
    ):
        show(Text(f"  {command:<28}{what}"))


def down(name: NameOption = DEFAULT_CLUSTER, state: StateOption = None, output: OutputOption = Output.TABLE) -> None:
    """End a local cluster and take away all of it but its logs."""
    cluster, files = _place(name, state)
    spec = files.read_spec()
    known = spec is not None or is_up(files)
    containers = spec is None or spec.runtime == "docker"
    with console(stderr=True).status(f"ending cluster {cluster}"):
        _remove(cluster, files, containers=containers)
    left = leftovers(cluster, files, containers=containers)
    if left:
        raise Failed(f"Not all of the cluster {cluster} could be removed", ", ".join(left))
    if output == Output.JSON:
        show_json({"name": cluster, "was_up": known, "logs": str(files.logs)})
    elif known:
        show(Text(f"cluster {cluster} is down, nothing of it is left but its logs: {files.logs}"))
    else:
        show(Text(f"there is no cluster {cluster}; nothing to do"))


testbed = typer.Typer(help="Emulated edge hosts on this machine, without a cluster on them.", no_args_is_help=True)


@testbed.command("up")
def hosts_up(
    topology: TopologyOption = None, name: NameOption = "testbed", output: OutputOption = Output.TABLE
) -> None:
    """Make hosts, management network and wires of a topology; again to follow a changed file."""
    _need_root()
    from ces_testbed.hosts import Hosts

    wanted = read_topology(topology)
    hosts = Hosts(_name(name), wanted)
    try:
        hosts.up()
    except TestbedError as error:
        raise Failed("The testbed could not be made", str(error)) from error
    rows = [
        {
            "node": node.name,
            "address": hosts.address(node.name),
            "namespace": hosts.host_namespace(node.name),
            "data_plane": hosts.data_plane(node.name),
        }
        for node in wanted.nodes
    ]
    if output == Output.JSON:
        show_json({"name": name, "gateway": hosts.gateway, "hosts": rows, "wires": wanted.wires})
        return
    table = plain_table("NODE", "ADDRESS", "NAMESPACE", "DATA PLANE")
    for row in rows:
        table.add_row(*row.values())
    show(table)
    show(Text(f"{len(wanted.wires)} wires; this machine is {hosts.gateway}. `ces testbed down` takes it all away"))


@testbed.command("down")
def hosts_down(name: NameOption = "testbed", output: OutputOption = Output.TABLE) -> None:
    """Take away all hosts, devices and wires of a testbed, also those of a cluster that was killed."""
    _need_root()
    from ces_testbed.hosts import remove_hosts, traces

    try:
        found = traces(_name(name))
        remove_hosts(name)
        left = traces(name)
    except TestbedError as error:
        raise Failed("The testbed could not be removed", str(error)) from error
    if left:
        raise Failed("Not all of the testbed could be removed", ", ".join(left))
    if output == Output.JSON:
        show_json({"name": name, "removed": found})
    else:
        show(Text(f"{len(found)} namespaces and devices removed" if found else "nothing to remove"))


@testbed.command("show")
def hosts_show(topology: TopologyOption = None, output: OutputOption = Output.TABLE) -> None:
    """Show a topology file, and the testbeds on this machine."""
    wanted = read_topology(topology)
    present: list[str] = []
    if has_namespaces():
        from ces_testbed.hosts import clusters

        present = clusters()
    if output == Output.JSON:
        show_json({"topology": wanted.model_dump(mode="json"), "testbeds": present})
        return
    show_topology(wanted)
    show(Text(f"\ntestbeds on this machine: {', '.join(present) or 'none'}"))


def show_topology(topology: Topology) -> None:
    nodes = plain_table("NODE", "CPU", "MEMORY", "GPU", "LABELS")
    for node in topology.nodes:
        labels = ", ".join(f"{key}={value}" for key, value in sorted(node.labels.items()))
        what = ("switch", "", "") if node.is_switch else (show_cpu(node.cpu), show_memory(node.memory), str(node.gpu))
        nodes.add_row(node.name, *what, labels)
    links = plain_table("LINK", "CAPACITY", "KIND", "MEDIUM", right=("CAPACITY",))
    for link in topology.links:
        arrow = "⇄" if link.both else "→"
        links.add_row(f"{link.src} {arrow} {link.dst}", show_bandwidth(link.bandwidth), link.kind, link.medium or "–")
    show(nodes)
    show(Text())
    show(links)


def _place(name: str, state: Path | None) -> tuple[str, Files]:
    cluster = _name(name)
    return cluster, Files(state if state is not None else default_root(cluster))


def _name(name: str) -> str:
    try:
        return check_cluster(name)
    except ValueError as error:
        raise bad_field("The name cannot be used", "--name", str(error), "choose another one") from error


def _api_port(port: int | None) -> int:
    """The port asked for, else the usual one if it is free, else any."""
    if port is not None:
        return port
    return API_PORT if port_is_free("", API_PORT) else free_port(LOCALHOST, set())


def _need_root() -> None:
    from ces_testbed.capability import why_no_tc

    if (reason := why_no_tc()) is not None:
        raise bad_field("Emulated hosts cannot be made here", "user", reason, "run as root on Linux")


def _start(background: Background, screen: Console) -> News:
    background.start()
    try:
        last = show_progress(background.news(), screen)
    except KeyboardInterrupt:
        background.ask_to_end()
        screen.print("interrupted; taking everything away again")
        background.wait(END_S)
        raise typer.Exit(130) from None
    if last.kind != "ready":
        background.wait(END_S)
    return last


def _remove(cluster: str, files: Files, *, containers: bool) -> None:
    try:
        remove_cluster(cluster, files, containers=containers)
    except TestbedError as error:
        raise Failed(f"The cluster {cluster} could not be removed", str(error)) from error

"""``ces testbed``: emulated hosts without a cluster on them."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from ces_client.cli.output import Output, OutputOption, show, show_json
from ces_client.errors import bad_field
from ces_client.view.tables import plain_table
from ces_common.quantities import show_bandwidth, show_cpu, show_memory
from ces_testbed import owners
from ces_testbed.capability import why_no_tc
from ces_testbed.cleanup import has_namespaces
from ces_testbed.cli.errors import Failed
from ces_testbed.cli.options import NameOption, TopologyOption, checked_name, read_topology
from ces_testbed.errors import TestbedError
from ces_testbed.topology import Topology

ForceOption = Annotated[bool, typer.Option("--force", help="also where a running cluster has these hosts")]

testbed = typer.Typer(help="Emulated edge hosts on this machine, without a cluster on them.", no_args_is_help=True)


@testbed.command("up")
def hosts_up(
    topology: TopologyOption = None,
    name: NameOption = "testbed",
    force: ForceOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make hosts, management network and wires of a topology; again to follow a changed file."""
    need_root()
    refuse_owned(checked_name(name), force=force)
    from ces_testbed.hosts import Hosts

    shape = read_topology(topology)
    hosts = Hosts(name, shape)
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
        for node in shape.nodes
    ]
    if output == Output.JSON:
        told = {"name": name, "gateway": hosts.gateway, "hosts": rows, "wires": shape.wires, "delays": hosts.delays}
        show_json(told)
        return
    table = plain_table("NODE", "ADDRESS", "NAMESPACE", "DATA PLANE")
    for row in rows:
        table.add_row(*row.values())
    show(table)
    if hosts.delays:
        show(Text(hosts.delays))
    show(Text(f"{len(shape.wires)} wires; this machine is {hosts.gateway}. `ces testbed down` takes it all away"))


@testbed.command("down")
def hosts_down(name: NameOption = "testbed", force: ForceOption = False, output: OutputOption = Output.TABLE) -> None:
    """Take away all hosts, devices and wires of a testbed, also those of a cluster that was killed."""
    need_root()
    refuse_owned(checked_name(name), force=force)
    from ces_testbed.hosts import remove_hosts, traces

    try:
        found = traces(name)
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
    shape = read_topology(topology)
    present: list[str] = []
    if has_namespaces():
        from ces_testbed.hosts import clusters

        present = clusters()
    if output == Output.JSON:
        show_json({"topology": shape.model_dump(mode="json"), "testbeds": present})
        return
    show_topology(shape)
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


def refuse_owned(name: str, *, force: bool) -> None:
    """Raises BadInput where the hosts belong to a cluster that runs."""
    owner = owners.owner_of(name)
    if owner is not None and not force:
        remedy = f"`ces down --name {name} --state {owner.state}` ends it; --force takes its hosts all the same"
        raise bad_field("These hosts belong to a running cluster", "--name", f"{name} is that of {owner}", remedy)


def need_root() -> None:
    if (reason := why_no_tc()) is not None:
        raise bad_field("Emulated hosts cannot be made here", "user", reason, "run as root on Linux")

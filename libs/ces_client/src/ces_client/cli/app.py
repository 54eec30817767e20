"""The ``ces`` command: which commands there are."""

from __future__ import annotations

import stamina.instrumentation
import typer

from ces_client.cli import audit, cluster, flows, jobs, machine, probing
from ces_client.cli.patience import Patience
from ces_client.cli.plugins import BenchGroup, CesGroup

app = typer.Typer(
    cls=CesGroup,
    help="Collaborative Edge Scheduler: place distributed training on edge nodes, bandwidth included.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # they would show tokens
)
get = typer.Typer(help="List jobs, nodes, links or the queue.", no_args_is_help=True)
describe = typer.Typer(help="Show all about a job or a node.", no_args_is_help=True)
node = typer.Typer(help="Manage nodes.", no_args_is_help=True)
topology = typer.Typer(help="Manage links and media.", no_args_is_help=True)
bench = typer.Typer(cls=BenchGroup, help="Measure, with tables, results.json and plots.", no_args_is_help=True)

app.command()(jobs.submit)
app.command()(jobs.wait)
app.command()(jobs.plan)
app.add_typer(get, name="get")
app.add_typer(describe, name="describe")
app.command("flows")(flows.flows)
app.command()(jobs.logs)
app.command()(cluster.events)
app.command()(audit.audit)
app.command()(jobs.cancel)
app.command()(jobs.pause)
app.command()(jobs.resume)
app.command()(probing.probe)
app.add_typer(node, name="node")
app.add_typer(topology, name="topology")
app.add_typer(bench, name="bench")
app.command()(machine.login)
app.command()(machine.doctor)

get.command("jobs")(cluster.get_jobs)
get.command("nodes")(cluster.get_nodes)
get.command("links")(cluster.get_links)
get.command("queue")(cluster.get_queue)
describe.command("job")(jobs.describe_job)
describe.command("node")(cluster.describe_node)
node.command()(cluster.cordon)
node.command()(cluster.uncordon)
node.command()(cluster.drain)
node.command()(cluster.forget)
node.command()(cluster.token)
topology.command("apply")(cluster.topology_apply)


def main() -> None:
    stamina.instrumentation.set_on_retry_hooks([Patience()])
    app()

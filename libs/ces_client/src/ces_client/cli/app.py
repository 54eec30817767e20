"""The ``ces`` command: which commands there are."""

from __future__ import annotations

from typing import Annotated

import stamina.instrumentation
import typer

from ces_client import __version__
from ces_client.cli import (
    audit,
    cluster,
    contexts,
    dashboard,
    energy,
    installation,
    jobs,
    machine,
    profile,
    regions,
    secrets,
    session,
    sessions,
    tokens,
    users,
)
from ces_client.cli.bench import BenchGroup
from ces_client.cli.output import say
from ces_client.cli.plugins import CesGroup
from ces_client.cli.retry_notice import RetryNotice


def show_version(wanted: bool) -> None:
    """``ces 0.1.0``, and nothing else happens."""
    if wanted:
        say(f"ces {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=CesGroup,
    help="Collaborative Edge Scheduler: place distributed training on edge nodes, bandwidth included.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # they would show tokens
)
get = typer.Typer(help="List jobs, nodes, applicants, links, the queue or regions.", no_args_is_help=True)
describe = typer.Typer(help="Show all about a job or a node.", no_args_is_help=True)
node = typer.Typer(help="Manage nodes.", no_args_is_help=True)
topology = typer.Typer(help="Manage links and media.", no_args_is_help=True)
token = typer.Typer(help="Manage access tokens.", no_args_is_help=True)
user = typer.Typer(help="Manage the users of applications.", no_args_is_help=True)
dashboard_session = typer.Typer(help="Manage sessions of the dashboard.", no_args_is_help=True)
secret = typer.Typer(help="Manage secrets of jobs.", no_args_is_help=True)
bench = typer.Typer(cls=BenchGroup, help="Measure, with tables, results.json and plots.", no_args_is_help=True)

app.command()(jobs.submit)
app.command()(dashboard.dashboard)
app.command()(jobs.wait)
app.command()(jobs.plan)
app.add_typer(get, name="get")
app.add_typer(describe, name="describe")
app.command()(jobs.flows)
app.command()(jobs.logs)
app.command()(cluster.events)
app.command()(audit.audit)
app.command()(energy.energy)
app.command()(profile.profile)
app.command()(jobs.cancel)
app.command()(jobs.pause)
app.command()(jobs.resume)
app.command()(jobs.move)
app.command()(cluster.probe)
app.add_typer(node, name="node")
app.add_typer(topology, name="topology")
app.add_typer(token, name="token")
app.add_typer(dashboard_session, name="session")
app.add_typer(secret, name="secret")
app.add_typer(user, name="user")
app.add_typer(bench, name="bench")
app.command()(machine.login)
app.command()(tokens.whoami)
app.command()(contexts.clusters)
app.command()(contexts.use)
app.command("env")(contexts.env)
app.command()(machine.doctor)

get.command("jobs")(cluster.get_jobs)
get.command("nodes")(cluster.get_nodes)
get.command("applicants")(cluster.get_applicants)
get.command("links")(cluster.get_links)
get.command("queue")(cluster.get_queue)
get.command("regions")(regions.get_regions)
describe.command("job")(jobs.describe_job)
describe.command("node")(cluster.describe_node)
node.command()(installation.install)
node.command()(installation.accept)
node.command()(installation.refuse)
node.command()(cluster.cordon)
node.command()(cluster.uncordon)
node.command()(cluster.drain)
node.command()(cluster.reclaim)
node.command()(cluster.lend)
node.command()(cluster.calendar)
node.command()(cluster.measure)
node.command("rotate-key")(cluster.rotate_key)
node.command()(cluster.forget)
node.command()(cluster.token)
token.command()(tokens.create)
token.command("list")(tokens.list_tokens)
token.command()(tokens.revoke)
user.command("move")(users.move)
dashboard_session.command("list")(sessions.list_sessions)
dashboard_session.command()(sessions.end)
secret.command()(secrets.create)
secret.command("list")(secrets.list_secrets)
secret.command()(secrets.remove)
topology.command("apply")(cluster.topology_apply)


@app.callback()
def options(
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="NAME", help="one that `ces clusters` lists, for this command")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=show_version, help="show the version and exit")
    ] = False,
) -> None:
    """Options of every command."""
    session.name_cluster(cluster)


def main() -> None:
    stamina.instrumentation.set_on_retry_hooks([RetryNotice()])
    app()

"""``ces energy``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from ces_client.cli import session
from ces_client.cli.output import Output, OutputOption, tell
from ces_client.errors import bad_field
from ces_client.view.energy import job_parts, node_parts, nodes_parts

JOB, NODE = "job/", "node/"


def energy(
    name: Annotated[
        str | None, typer.Argument(metavar="[JOB|NODE]", help="a job (id or name) or a node; all nodes if left out")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what nodes and jobs have used, measured or modelled."""
    with session.connect() as client:
        if name is None:
            nodes = list(client.energy.nodes())
            tell(nodes, nodes_parts(nodes) if nodes else Text("no nodes"), output)
            return
        is_node = name.startswith(NODE) or (
            not name.startswith(JOB) and name in {each.node for each in client.energy.nodes()}
        )
        if is_node and not name.startswith(NODE) and any(True for _ in client.jobs.list(name=name)):
            problem, remedy = "there are a job and a node of that name", f"write {JOB}{name} or {NODE}{name}"
            raise bad_field(f"What {name} is cannot be told", "name", problem, remedy)
        if is_node:
            of_node = client.energy.node(name.removeprefix(NODE))
            tell(of_node, node_parts(of_node), output)
            return
        of_job = client.energy.job(session.job_id(client, name.removeprefix(JOB)))
    tell(of_job, job_parts(of_job), output)

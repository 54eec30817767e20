"""``ces flows``: what a job's flows carry."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import RenderableType

from ces_client.cli import session
from ces_client.cli.jobs import JobArgument
from ces_client.cli.output import Output, OutputOption, show, show_json
from ces_client.cli.watching import WatchOption, watch_changes
from ces_client.view import job_flows
from ces_common.messages.api import JobFlowsView
from ces_common.states import JOB_OVER


def flows(
    job: JobArgument,
    hops: Annotated[bool, typer.Option("--hops", help="a line for each link of a flow's path")] = False,
    watch: WatchOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what a job's flows asked for, were given and carry, now and over the last minute."""

    def picture(view: JobFlowsView) -> RenderableType:
        return job_flows(view, hops=hops)

    with session.connect() as client:
        found = session.job_id(client, job)
        view = client.jobs.flows(found)
        if watch:
            watch_changes(lambda: client.jobs.flows(found), view, picture, output, lambda view: view.state in JOB_OVER)
        elif output == Output.JSON:
            show_json(view)
        else:
            show(picture(view))

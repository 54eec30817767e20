"""``ces profile``."""

from __future__ import annotations

from typing import Annotated

import typer

from ces_client.cli import session
from ces_client.cli.output import Output, OutputOption, tell
from ces_client.view.profile import profile_parts


def profile(
    job: Annotated[str, typer.Argument(help="a job: its id or name")],
    node: Annotated[list[str] | None, typer.Option(help="what a step takes there is predicted; several times")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what a step of a job's tasks takes, and what it would take on other nodes."""
    with session.connect() as client:
        found = client.profiles.job(session.job_id(client, job), node or [])
    tell(found, profile_parts(found), output)

"""``ces user``: where the users of applications are."""

from __future__ import annotations

import math
from typing import Annotated

import typer
from rich.text import Text

from ces_client.cli import completion, session
from ces_client.cli.output import Output, OutputOption, tell
from ces_client.view.moves import place_text


def move(
    user: Annotated[str, typer.Argument(metavar="JOB/USER", help="the job, by name or id, and the user in its file")],
    at: Annotated[str | None, typer.Option("--at", metavar="LAT,LON", help="its position, in degrees")] = None,
    node: Annotated[
        str | None, typer.Option("--node", metavar="NODE", help="the node it is at", autocompletion=completion.nodes)
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say where a user of an application is now; CES changes the application for that if its file says `adjust`."""
    job, slash, name = user.partition("/")
    if not (job and slash and name):
        raise typer.BadParameter(f"{user!r} is no job and user: write them as inspection/cam", param_hint="JOB/USER")
    if (at is None) == (node is None):
        raise typer.BadParameter("give one of --at and --node", param_hint="--at")
    lat, lon = (None, None) if at is None else position(at)
    with session.connect() as client:
        view = client.jobs.place_user(session.job_id(client, job), name, node=node, lat=lat, lon=lon)
    place = next((place_text(each.at) for each in view.users if each.name == name), "")
    said = f"user {name} of job {view.name} is {place} now; `ces describe job {view.id}` shows what follows from it"
    tell(view, Text(view.remark or said), output)


def position(text: str) -> tuple[float, float]:
    """Raises typer.BadParameter."""
    try:
        lat, lon = (float(part) for part in text.split(","))
    except ValueError:
        lat = lon = math.nan
    if not (abs(lat) <= 90 and abs(lon) <= 180):
        raise typer.BadParameter(f"{text!r} is no position: write degrees as 51.0504,13.7373", param_hint="--at")
    return lat, lon

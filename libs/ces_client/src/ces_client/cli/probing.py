"""``ces probe``: measure what links carry."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from ces_client.cli import session
from ces_client.cli.output import Output, OutputOption, console, show, show_json
from ces_client.client import Client
from ces_client.errors import ApiError, bad_field
from ces_client.view import probe_table
from ces_common.messages.api import LinkProbeView


def probe(
    src: Annotated[str | None, typer.Argument(metavar="[SRC", help="the node that sends")] = None,
    dst: Annotated[str | None, typer.Argument(metavar="DST]", help="its neighbour, which counts what comes")] = None,
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
            failed = _all(client, seconds, found)
    if output == Output.JSON:
        show_json(found)
    else:
        show(probe_table(found) if found else Text("no link was measured"))
    if every and failed:
        raise typer.Exit(1)


def _all(client: Client, seconds: float, found: list[LinkProbeView]) -> int:
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

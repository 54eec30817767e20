"""Commands about this machine: what it can do, and which manager it talks to."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ces_client.cli.output import Output, OutputOption, show, show_json
from ces_client.client import Client
from ces_client.context import Context, save_context
from ces_client.doctor import examine
from ces_client.view.tables import plain_table

LOGIN_S = 3.0  # a URL that is typed wrong answers never


def login(
    url: Annotated[str, typer.Argument(metavar="URL", help="of the manager, such as http://edge-master:8080")],
    token: Annotated[
        str, typer.Option("--token", envvar="CES_TOKEN", prompt=True, hide_input=True, help="asked for if left out")
    ],
    ca: Annotated[Path | None, typer.Option("--ca", help="certificate authority of an https URL (PEM)")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Check URL and token, and keep them for later commands."""
    context = Context(url.rstrip("/"), token, str(ca.resolve()) if ca else None)
    with Client.from_context(context, patience_s=LOGIN_S) as client:
        who = client.whoami()
        nodes = len(list(client.nodes.list()))
    path = save_context(context)
    if output == Output.JSON:
        show_json({"url": context.url, "context": str(path), "nodes": nodes, "name": who.name, "role": who.role})
    else:
        show(Text(f"logged in to {context.url} as {who.name}, {who.role} ({nodes} nodes); kept in {path}"))


def doctor(output: OutputOption = Output.TABLE) -> None:
    """Tell what this machine can do for CES: runtimes, networks, GPU."""
    findings = examine()
    if output == Output.JSON:
        show_json({"findings": [asdict(finding) for finding in findings]})
        return
    table = plain_table("", "WHAT", "FOUND")
    for finding in findings:
        mark = Text("✓", style="green") if finding.good else Text("–", style="yellow")
        table.add_row(mark, finding.what, finding.found)
    show(table)
    for finding in findings:
        if finding.remedy:
            show(Text.assemble((f"{finding.what}: ", "bold"), finding.remedy))

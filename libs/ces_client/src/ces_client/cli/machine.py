"""Commands about this machine: what it can do, and which manager it talks to."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer
from rich.text import Text

from ces_client.certificates import examine_certificates
from ces_client.cli import session
from ces_client.cli.output import Output, OutputOption, show, show_json
from ces_client.client import Client
from ces_client.context import Context, context_path, save_context
from ces_client.doctor import Finding, examine
from ces_client.errors import BadInput
from ces_client.http import host_of
from ces_client.trust import check_encrypted, find_authority, keep_authority
from ces_client.view.tables import plain_table

LOGIN_S = 3.0  # a URL that is typed wrong answers never


def login(
    url: Annotated[str, typer.Argument(metavar="URL", help="of the manager, such as https://edge-master:8080")],
    token: Annotated[
        str, typer.Option("--token", envvar="CES_TOKEN", prompt=True, hide_input=True, help="asked for if left out")
    ],
    ca: Annotated[Path | None, typer.Option("--ca", help="certificate authority of an https URL (PEM)")] = None,
    fingerprint: Annotated[
        str | None, typer.Option("--fingerprint", help="SHA-256 of that authority, for a token that does not name it")
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="allow plain http to another machine")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Check URL and token, and keep them for later commands, with the authority that certifies the manager."""
    host_of(url)
    check_encrypted(url, insecure, "use https://, or add --insecure inside a VPN")
    if ca is None and urlsplit(url).scheme == "https":
        found = find_authority(url, token, fingerprint, _confirm)
        ca = keep_authority(context_path().parent / "authorities", found) if found is not None else None
    context = Context(url.rstrip("/"), token, str(ca.resolve()) if ca else None)
    with Client.from_context(context, patience_s=LOGIN_S) as client:
        who = client.whoami()
        nodes = len(list(client.nodes.list()))
    path = save_context(context)
    if output == Output.JSON:
        show_json({"url": context.url, "context": str(path), "nodes": nodes, "name": who.name, "role": who.role})
    else:
        show(Text(f"logged in to {context.url} as {who.name}, {who.role} ({nodes} nodes); kept in {path}"))


def _confirm(fingerprint: str) -> bool:
    if not sys.stdin.isatty():
        return False
    show(Text(f"This machine does not know the manager's authority, whose fingerprint is\n  sha256:{fingerprint}"))
    return typer.confirm("Does whoever runs it say the same?")


def _certificates() -> list[Finding]:
    """Nothing where no cluster is known."""
    try:
        found = examine_certificates(session.context())
    except BadInput:
        return []
    return [found] if found is not None else []


def doctor(output: OutputOption = Output.TABLE) -> None:
    """Tell what this machine can do for CES: runtimes, networks, GPU; and whether a certificate of its cluster ends."""
    findings = [*examine(), *_certificates()]
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

"""``ces node install``."""

from __future__ import annotations

import re
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ces_client.cli import session
from ces_client.cli.output import Output, OutputOption, console, show, show_json
from ces_client.errors import bad_field
from ces_client.installing import settings
from ces_client.installing.host_keys import read_fingerprint
from ces_client.installing.ssh import Ssh
from ces_client.installing.steps import Installer, Outcome, Wanted
from ces_client.installing.wheels import wheels_folder
from ces_common.fields import NODE_NAME


def install(
    target: Annotated[str, typer.Argument(metavar="USER@HOST", help="the device, as ssh knows it")],
    name: Annotated[str, typer.Option("--name", help="of the node that it becomes")],
    jump: Annotated[str | None, typer.Option("--jump", help="go there through this machine, as with ssh -J")] = None,
    host_key: Annotated[
        str | None, typer.Option("--host-key", help="fingerprint that the device must have, SHA256:...; for scripts")
    ] = None,
    manager: Annotated[str | None, typer.Option("--manager", help="URL at which devices reach the manager")] = None,
    nats: Annotated[
        str | None, typer.Option("--nats", help="HOST:PORT of NATS, if not port 4222 of the manager's host")
    ] = None,
    given: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="a setting of the agent; may be repeated")
    ] = None,
    wheels: Annotated[Path | None, typer.Option("--wheels", help="folder in which the agent's wheels are kept")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="change nothing, and tell what would be done")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="take the agent away, and forget the node")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Put an agent on a device by ssh, and wait until it is a ready node. A second run changes nothing."""
    if not re.fullmatch(NODE_NAME, name):
        raise bad_field(f"{name!r} is no name", "--name", "a node's name has other characters", f"match {NODE_NAME}")
    url = settings.manager_url(manager, session.context().url)
    wanted = Wanted(
        node=name,
        manager=url,
        nats=settings.nats_endpoint(nats, url),
        given=settings.read_assignments(given or ()),
        wheels=wheels or wheels_folder(),
        host_key=read_fingerprint(host_key) if host_key is not None else None,
        dry_run=dry_run,
    )

    def say(step: str) -> None:
        if output == Output.TABLE:
            console(stderr=True).print(Text(f"{name}: {step}", style="dim"), soft_wrap=True)

    with closing(Ssh(target, jump)) as ssh, session.connect() as client:
        installer = Installer(client, ssh, say, _confirm)
        outcome = installer.undo(wanted) if undo else installer.install(wanted)
    if output == Output.JSON:
        show_json(asdict(outcome))
    else:
        show(Text(_told(outcome, target, dry_run=dry_run, undo=undo)))


def _told(outcome: Outcome, target: str, *, dry_run: bool, undo: bool) -> str:
    if dry_run:
        return "\n".join(f"would {step}" for step in outcome.steps) or "nothing to do"
    if not outcome.changed:
        what = "has no agent, and the manager no such node" if undo else f"is node {outcome.node} already, and ready"
        return f"nothing to do: {target} {what}"
    what = "is gone" if undo else "is ready"
    return f"{outcome.node} {what}, after {outcome.seconds:.0f} s"


def _confirm(key: str) -> bool:
    if not sys.stdin.isatty():
        return False
    console(stderr=True).print(Text(f"ssh does not know this device. It shows the key\n  {key}"), soft_wrap=True)
    return typer.confirm("Does the device itself say the same?", err=True)

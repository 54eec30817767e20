"""``ces node install``, and ``accept`` and ``refuse`` for devices that have applied."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ces_client.cli import session
from ces_client.cli.output import Output, OutputOption, console, local_now, show, show_json, tell
from ces_client.client import Client
from ces_client.errors import ApiError, bad_field
from ces_client.installation import settings
from ces_client.installation.applicant_choice import chosen, destination
from ces_client.installation.host_keys import read_fingerprint
from ces_client.installation.ssh import Ssh, checked_destination
from ces_client.installation.steps import Installer, Outcome, Wanted
from ces_client.installation.wheels import wheels_folder
from ces_client.view.applicants import applicant_table
from ces_common.fields import NODE_NAME

Jump = Annotated[str | None, typer.Option("--jump", help="go there through this machine, as with ssh -J")]
HostKey = Annotated[
    str | None, typer.Option("--host-key", help="fingerprint that the device must have, SHA256:...; for scripts")
]
Manager = Annotated[str | None, typer.Option("--manager", help="URL at which devices reach the manager")]
Nats = Annotated[str | None, typer.Option("--nats", help="HOST:PORT of NATS, if not port 4222 of the manager's host")]
Given = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="a setting of the agent; may be repeated")
]
Wheels = Annotated[Path | None, typer.Option("--wheels", help="folder in which the agent's wheels are kept")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="change nothing, and tell what would be done")]
ApplicantName = Annotated[str, typer.Argument(metavar="NAME", help="under which the device has applied")]


def install(
    target: Annotated[str, typer.Argument(metavar="USER@HOST", help="the device, as ssh knows it")],
    name: Annotated[str, typer.Option("--name", help="of the node that it becomes")],
    jump: Jump = None,
    host_key: HostKey = None,
    manager: Manager = None,
    nats: Nats = None,
    given: Given = None,
    wheels: Wheels = None,
    dry_run: DryRun = False,
    undo: Annotated[bool, typer.Option("--undo", help="take the agent away, and forget the node")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Put an agent on a device by ssh, and wait until it is a ready node. A second run changes nothing."""
    if not re.fullmatch(NODE_NAME, name):
        raise bad_field(f"{name!r} is no name", "--name", "a node's name has other characters", f"match {NODE_NAME}")
    wanted = _wanted(name, host_key, manager, nats, given, wheels, dry_run=dry_run)
    with closing(Ssh(target, jump)) as ssh, session.connect() as client:
        outcome = _go(client, ssh, wanted, output, undo=undo)
    _tell(outcome, target, output, dry_run=dry_run, undo=undo)


def accept(
    name: ApplicantName,
    target: Annotated[
        str | None, typer.Argument(metavar="[USER@HOST]", help="the device, if ssh reaches it by another way")
    ] = None,
    address: Annotated[str | None, typer.Option("--from", help="from which it applied, if several did")] = None,
    jump: Jump = None,
    host_key: HostKey = None,
    manager: Manager = None,
    nats: Nats = None,
    given: Given = None,
    wheels: Wheels = None,
    dry_run: DryRun = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make a device that has applied a node, by ssh as `ces node install` does. Its host key must be as it claimed."""
    wanted = _wanted(name, host_key, manager, nats, given, wheels, dry_run=dry_run)
    if target is not None:
        checked_destination(target, "USER@HOST")
    with session.connect() as client:
        applicant = chosen(list(client.applicants.list()), name, address)
        if output == Output.TABLE:
            console(stderr=True).print(applicant_table([applicant], local_now()))
        wanted = replace(wanted, claimed=tuple(applicant.host_keys))
        with closing(Ssh(target or destination(applicant), jump)) as ssh:
            outcome = _go(client, ssh, wanted, output, undo=False)
            target = ssh.target
        if not dry_run and not outcome.changed:  # one that joins is off the list by that
            _take_off(client, name)
    _tell(outcome, target, output, dry_run=dry_run, undo=False)


def refuse(name: ApplicantName, output: OutputOption = Output.TABLE) -> None:
    """Take a name off the list of devices that have applied. The device may apply again."""
    with session.connect() as client:
        gone = client.applicants.refuse(name)
    tell(gone, Text(f"{name} is refused; it had applied from {', '.join(gone.addresses)}"), output)


def _take_off(client: Client, name: str) -> None:
    try:
        client.applicants.refuse(name)
    except ApiError as error:
        if error.status != 404:
            raise


def _wanted(
    name: str,
    host_key: str | None,
    manager: str | None,
    nats: str | None,
    given: Sequence[str] | None,
    wheels: Path | None,
    *,
    dry_run: bool,
) -> Wanted:
    """Raises BadInput."""
    url = settings.manager_url(manager, session.context().url)
    return Wanted(
        node=name,
        manager=url,
        nats=settings.nats_endpoint(nats, url),
        given=settings.read_assignments(given or ()),
        wheels=wheels or wheels_folder(),
        host_key=read_fingerprint(host_key) if host_key is not None else None,
        dry_run=dry_run,
    )


def _go(client: Client, ssh: Ssh, wanted: Wanted, output: Output, *, undo: bool) -> Outcome:
    def say(step: str) -> None:
        if output == Output.TABLE:
            console(stderr=True).print(Text(f"{wanted.node}: {step}", style="dim"), soft_wrap=True)

    installer = Installer(client, ssh, say, _confirm)
    return installer.undo(wanted) if undo else installer.install(wanted)


def _tell(outcome: Outcome, target: str, output: Output, *, dry_run: bool, undo: bool) -> None:
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
    console(stderr=True).print(Text(f"The device shows the key\n  {key}"), soft_wrap=True)
    return typer.confirm("Does the device itself say the same?", err=True)

"""Commands about who may do what: access tokens, and whose the present one is."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from ces_client.cli import session
from ces_client.cli.output import Output, OutputOption, console, local_now, say, show, show_json, tell
from ces_client.errors import bad_field
from ces_client.view.tokens import identity_facts, token_table
from ces_common.messages.identities import LONGEST_S, MAX_PRIORITY, SHORTEST_S
from ces_common.quantities import parse_duration
from ces_common.roles import Role

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="of the token; events name it")]


def create(
    name: NameArgument,
    role: Annotated[Role, typer.Option("--role", help="what it may do")],
    tenant: Annotated[
        list[str] | None, typer.Option("--tenant", help="whose jobs a viewer or submitter sees; may be repeated")
    ] = None,
    max_priority: Annotated[
        int, typer.Option("--max-priority", min=0, max=MAX_PRIORITY, help="no job that it submits is more urgent")
    ] = MAX_PRIORITY,
    lasts: Annotated[str, typer.Option("--lasts", help="for how long it is good, such as 12h or 90d")] = "90d",
    output: OutputOption = Output.TABLE,
) -> None:
    """Make an access token for somebody. It is shown once."""
    seconds = _seconds(lasts)
    with session.connect() as client:
        made = client.tokens.create(name, role, tenants=tenant or [], max_priority=max_priority, lasts_s=seconds)
    if output == Output.JSON:
        show_json(made)
    else:
        say(made.token)
        until = f"{made.access.expires_at:%Y-%m-%d %H:%M %Z}"
        console(stderr=True).print(Text(f"{name}, {role}, good until {until}; it is not shown again"))


def list_tokens(output: OutputOption = Output.TABLE) -> None:
    """List access tokens, also those that are good no more."""
    with session.connect() as client:
        tokens = list(client.tokens.list())
    tell(tokens, token_table(tokens, local_now()) if tokens else Text("no tokens but the first one"), output)


def revoke(name: NameArgument, output: OutputOption = Output.TABLE) -> None:
    """Refuse an access token from now on."""
    with session.connect() as client:
        view = client.tokens.revoke(name)
    if output == Output.JSON:
        show_json(view)
    else:
        say(f"token {name} is refused from now on, by every manager within five seconds")


def whoami(output: OutputOption = Output.TABLE) -> None:
    """Tell whose token is in use, and what it allows."""
    with session.connect() as client:
        identity = client.whoami()
    if output == Output.JSON:
        show_json(identity)
    else:
        show(identity_facts(identity))


def _seconds(lasts: str) -> int:
    try:
        seconds = parse_duration(lasts)
    except ValueError as error:
        raise bad_field(
            "The token cannot be made", "--lasts", str(error), "give a duration such as 12h or 90d"
        ) from error
    if not SHORTEST_S <= seconds <= LONGEST_S:
        remedy = "give at least a minute, and at most ten years"
        raise bad_field("The token cannot be made", "--lasts", f"{lasts} is out of bounds", remedy)
    return seconds

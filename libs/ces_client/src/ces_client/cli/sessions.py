"""Commands about sessions of the dashboard, for operators."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from ces_client.cli import session
from ces_client.cli.output import Output, OutputOption, local_now, say, tell
from ces_client.view.tokens import session_table


def list_sessions(output: OutputOption = Output.TABLE) -> None:
    """List everybody's sessions of the dashboard, and codes that may begin one."""
    with session.connect() as client:
        sessions = list(client.sessions.list())
    tell(sessions, session_table(sessions, local_now()) if sessions else Text("nobody has a session"), output)


def end(name: Annotated[str, typer.Argument(metavar="ID", help="as `ces session list` tells it")]) -> None:
    """Have a session refused from now on."""
    with session.connect() as client:
        client.sessions.end(name)
    say(f"session {name} is refused from now on, by every manager within five seconds")

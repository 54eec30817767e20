"""Commands about secrets of jobs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ces_client.cli import session
from ces_client.cli.output import Output, OutputOption, local_now, say, show_json, tell
from ces_client.errors import bad_field
from ces_client.view.secrets import secret_table
from ces_common.messages.secrets import MAX_VALUE

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="by which job files name it")]
TenantOption = Annotated[
    str | None, typer.Option("--tenant", help="whose it is; left out, that of the token, or default")
]


def create(
    name: NameArgument,
    from_file: Annotated[
        Path | None, typer.Option("--from-file", metavar="FILE", help="what is in it; left out, standard input is read")
    ] = None,
    tenant: TenantOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Store a secret for jobs, in place of another of its name. It is kept byte for byte and never shown."""
    value = _value(from_file)
    with session.connect() as client:
        view = client.secrets.put(name, value, tenant=tenant)
    if output == Output.JSON:
        show_json(view)
    else:
        say(f"secret {view.name} of tenant {view.tenant} is stored")


def list_secrets(output: OutputOption = Output.TABLE) -> None:
    """List secrets by name; nobody is shown what is in them."""
    with session.connect() as client:
        secrets = list(client.secrets.list())
    tell(secrets, secret_table(secrets, local_now()) if secrets else Text("no secrets"), output)


def remove(name: NameArgument, tenant: TenantOption = None, output: OutputOption = Output.TABLE) -> None:
    """Remove a secret: workers that need it and start later fail."""
    with session.connect() as client:
        view = client.secrets.remove(name, tenant=tenant)
    if output == Output.JSON:
        show_json(view)
    else:
        say(f"secret {view.name} of tenant {view.tenant} is removed")


def _value(path: Path | None) -> bytes:
    if path is None:
        if sys.stdin.isatty():
            text: str = typer.prompt("Value", hide_input=True, err=True)
            return text.encode()
        return _bounded(sys.stdin.buffer.read(MAX_VALUE + 1), "standard input")
    try:
        with path.open("rb") as file:
            return _bounded(file.read(MAX_VALUE + 1), str(path))
    except OSError as error:
        raise bad_field(
            "The secret cannot be stored", "--from-file", f"{path}: {error.strerror}", "name a file that can be read"
        ) from error


def _bounded(value: bytes, where: str) -> bytes:
    if not value:
        raise bad_field("The secret cannot be stored", "VALUE", f"{where} is empty", "give at least one byte")
    if len(value) > MAX_VALUE:
        raise bad_field(
            "The secret cannot be stored",
            "VALUE",
            f"{where} has more than {MAX_VALUE} bytes",
            "keep the key in it, and what it opens elsewhere",
        )
    return value

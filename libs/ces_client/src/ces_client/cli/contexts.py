"""Commands about the clusters that this user's commands may talk to."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer
from rich.text import Text

from ces_client.cli import session
from ces_client.cli.output import Output, OutputOption, say, show, show_json
from ces_client.client import Client
from ces_client.context import Context, context_path, read_contexts, use_context
from ces_client.errors import CesError, Unreachable
from ces_client.view.tables import plain_table

PATIENCE_S = 0.1  # a list should not wait for what is down


def clusters(output: OutputOption = Output.TABLE) -> None:
    """List the clusters that `ces up` and `ces login` made known; * marks the current one."""
    contexts = read_contexts()
    found = [(name, each, _answer(each)) for name, each in sorted(contexts.known.items())]
    if output == Output.JSON:
        rows = [
            {"name": name, "current": name == contexts.current, "url": each.url, "answers": answer, "state": each.state}
            for name, each, answer in found
        ]
        show_json({"clusters": rows})
        return
    if not found:
        show(Text("no cluster is known: `ces up` starts one, `ces login URL` adds one"))
        return
    table = plain_table("", "NAME", "URL", "ANSWERS", "STATE FOLDER")
    for name, each, answer in found:
        table.add_row("*" if name == contexts.current else "", name, each.url, answer, each.state or "–")
    show(table)


def use(
    name: Annotated[str, typer.Argument(metavar="NAME", help="a cluster that `ces clusters` lists")],
    output: OutputOption = Output.TABLE,
) -> None:
    """Make a cluster the one that commands talk to."""
    context = use_context(name)
    if output == Output.JSON:
        show_json({"name": name, "url": context.url})
    else:
        show(Text(f"`ces` talks to {name} now ({context.url}, kept in {context_path()})"))


def env(output: OutputOption = Output.TABLE) -> None:
    """Print the shell line that sets CES_URL and CES_TOKEN, and CES_AUTHORITY to the file of the cluster's authority
    where it has one: eval "$(ces env)"."""
    context = session.context()
    known = {"CES_URL": context.url.rstrip("/"), "CES_TOKEN": context.token, "CES_AUTHORITY": context.ca}
    variables = {name: value for name, value in known.items() if value}
    if output == Output.JSON:
        show_json(variables)
        return
    say("export " + " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items()))


def _answer(context: Context) -> str:
    """``yes``, or why commands would get nothing from it."""
    try:
        with Client.from_context(context, patience_s=PATIENCE_S) as client:
            next(iter(client.nodes.list()), None)
    except Unreachable:
        return "no"
    except CesError as error:
        return error.problem.title
    return "yes"

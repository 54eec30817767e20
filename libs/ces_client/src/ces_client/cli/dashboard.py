"""``ces dashboard``: the manager's page in a browser, signed in."""

from __future__ import annotations

import asyncio
import os
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Annotated

import typer

from ces_client.bridge import HERE, bridge, trust_of
from ces_client.cli import session
from ces_client.cli.output import say
from ces_client.context import Context

PORT = 8643  # always the same where it is free: browsers keep a page's settings by its address


def dashboard(
    port: Annotated[int, typer.Option(min=0, max=65535, help="of this machine; 0: any that is free")] = PORT,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="open it in a browser")] = True,
) -> None:
    """Open the cluster's dashboard in a browser, signed in with the token of this command, until you press Ctrl-C."""
    context = session.context()
    with session.connect() as client:
        code = client.dashboard_code().code
    try:
        asyncio.run(_show(context, code, port, browser))
    except KeyboardInterrupt:
        say("the dashboard is closed")


async def _show(context: Context, code: str, port: int, browser: bool) -> None:
    trust = await asyncio.to_thread(trust_of, context)
    async with bridge(context, trust, port) as bound:
        page = f"http://{HERE}:{bound}/ui/"
        with _signing_in(f"{page}#code={code}") as file:
            if browser and await asyncio.to_thread(webbrowser.open, file.as_uri()):
                say(f"the dashboard of {context.url} is open at {page}; Ctrl-C closes it")
            else:
                say(f"open this within a minute, once: {page}#code={code}")
                say("Ctrl-C closes it")
            await _until_closed()


async def _until_closed() -> None:
    await asyncio.Event().wait()


@contextmanager
def _signing_in(url: str) -> Iterator[Path]:
    """A file that leads to the page, for its owner alone: others on this machine see what a browser is
    started with."""
    with tempfile.TemporaryDirectory(prefix="ces-dashboard-") as folder:
        file = Path(folder) / "open.html"
        leads = f'<meta charset="utf-8"><meta http-equiv="refresh" content="0; url={escape(url)}"><title>CES</title>'
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
            written.write(leads)
        yield file

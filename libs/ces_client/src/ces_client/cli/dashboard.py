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
from ces_client.errors import CesError
from ces_common.messages.identities import SessionCode

CODE_LASTS_S = 60
GONE = 404  # whoever has signed out on the page
PATIENCE_S = 2.0  # with a manager that is gone by the end


def dashboard(
    port: Annotated[int, typer.Option(min=0, max=65535, help="of this machine; 0: any that is free")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="open it in a browser")] = True,
) -> None:
    """Open the cluster's dashboard in a browser, signed in with the token of this command, until you press Ctrl-C,
    which ends the session as well."""
    context = session.context()
    with session.connect() as client:
        code = client.dashboard_code()
    try:
        asyncio.run(_show(context, code.code, port, browser))
    except KeyboardInterrupt:
        pass
    finally:  # or whoever gets the port next would hear of the page, which goes on asking there
        _end(code)


def _end(code: SessionCode) -> None:
    try:
        with session.connect(patience_s=PATIENCE_S) as client:
            client.end_session(code)
    except CesError as error:
        if error.problem.status != GONE:
            say(f"the dashboard is closed; its session may last for up to twelve hours: {error}", stderr=True)
            return
    say("the dashboard is closed, and the session has ended")


async def _show(context: Context, code: str, port: int, browser: bool) -> None:
    trust = await asyncio.to_thread(trust_of, context)
    async with bridge(context, trust, port) as bound:
        page = f"http://{HERE}:{bound}/ui/"
        with _signing_in(f"{page}#code={code}") as file:
            if browser and await asyncio.to_thread(webbrowser.open, file.as_uri()):
                asyncio.get_running_loop().call_later(CODE_LASTS_S, lambda: file.unlink(missing_ok=True))
                say(f"the dashboard of {context.url} is open at {page}; Ctrl-C closes it")
                say("no page? a browser that may not read files here needs the address: --no-browser")
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

"""``--watch``: a view that is shown again whenever it changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, TypeVar

import typer
from pydantic import BaseModel
from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from ces_client.cli.output import Output, console, show_json_line

WATCH_S = 2.0
WatchOption = Annotated[bool, typer.Option("--watch", "-w", help="show it again whenever it changes; Ctrl-C ends")]
T = TypeVar("T", bound=BaseModel | Sequence[BaseModel])


def watch_changes(
    fetch: Callable[[], T],
    value: T,
    picture: Callable[[T], RenderableType],
    output: Output,
    over: Callable[[T], bool] = lambda _: False,
) -> None:
    """Show ``value`` and what ``fetch`` answers later, until it is ``over`` or Ctrl-C ends it."""
    screen = console()
    with suppress(KeyboardInterrupt):
        if output == Output.TABLE and screen.is_terminal:
            with Live(picture(value), console=screen, auto_refresh=False) as live:
                while not over(value):
                    time.sleep(WATCH_S)
                    value = fetch()
                    live.update(picture(value), refresh=True)
            return
        while True:
            if output == Output.JSON:
                show_json_line(value)
            else:
                screen.print(picture(value), Text(), soft_wrap=True)
            if over(value):
                return
            before = value
            while value == before:
                time.sleep(WATCH_S)
                value = fetch()

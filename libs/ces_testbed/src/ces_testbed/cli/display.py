"""Progress of a cluster's start and end on a terminal, or as plain lines where there is none."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from ces_testbed.progress import UNDER_WAY, News

WORDS = {
    "hosts": "emulated hosts",
    "services": "services (NATS, manager, scheduler, controllers)",
    "agents": "edge agents",
    "stopping": "stopping and cleaning up",
}


def show_progress(news: Iterable[News], console: Console) -> News:
    """Show steps and remarks as they come; returns the last news, which is neither."""
    return _bars(news, console) if console.is_terminal else _lines(news, console)


def _bars(news: Iterable[News], console: Console) -> News:
    columns = (
        SpinnerColumn(finished_text="[green]✓[/]"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console) as progress:
        for item in news:
            if item.kind not in UNDER_WAY:
                return item
            if item.kind == "remark":
                progress.console.print(_remark(item), soft_wrap=True)
                continue
            if item.step not in tasks:
                tasks[item.step] = progress.add_task(WORDS.get(item.step, item.step), total=item.total)
            progress.update(tasks[item.step], completed=item.done)
    raise AssertionError("news end with something that is no step")


def _lines(news: Iterable[News], console: Console) -> News:
    for item in news:
        if item.kind not in UNDER_WAY:
            return item
        if item.kind == "remark":
            console.print(_remark(item), soft_wrap=True)
        elif item.done == item.total:
            console.print(f"{WORDS.get(item.step, item.step)}: {item.done} of {item.total}")
    raise AssertionError("news end with something that is no step")


def _remark(news: News) -> Text:
    return Text(f"  {news.text}", style="dim")

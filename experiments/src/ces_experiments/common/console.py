"""What every ``ces bench`` command does around its measurement: progress, and errors that are named."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ces_sim.decision import BadDecisionError
from ces_testbed.errors import TestbedError

LINE_EVERY_S = 10.0


class ContradictionError(RuntimeError):
    """Two answers exclude each other: one of two solvers, or the checker, is wrong."""


class PlainProgress(Progress):
    """Bars on a terminal; elsewhere a line on standard error now and then: a piped measurement is not silent."""

    _last_line_s = -math.inf

    def update(self, task_id: TaskID, **changes: Any) -> None:
        super().update(task_id, **changes)
        self._say(task_id)

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        super().advance(task_id, advance)
        self._say(task_id)

    def _say(self, task_id: TaskID) -> None:
        now = time.monotonic()
        if self.console.is_terminal or now - self._last_line_s < LINE_EVERY_S:
            return
        self._last_line_s = now
        task = self.tasks[self.task_ids.index(task_id)]
        total = "" if task.total is None else f" of {task.total:g}"
        typer.echo(f"{task.description}: {task.completed:g}{total}", err=True)


def counted(progress: Progress, what: str, total: int) -> Callable[[], None]:
    """A bar; to be called at each step."""
    bar = progress.add_task(what, total=total)
    return lambda: progress.advance(bar)


def told(progress: Progress, total: int) -> Callable[[str], None]:
    """A bar; to be called at each step with what it is."""
    bar = progress.add_task("starting", total=total)
    return lambda what: progress.update(bar, advance=1, description=what)


@contextmanager
def measuring(out: Path, plots: bool) -> Iterator[Progress]:
    """Progress bars for a measurement whose results go to ``out``; what goes wrong ends it, named."""
    if plots and find_spec("matplotlib") is None:  # before hours of measuring, not after
        remedy = "install it (pip install matplotlib), or draw none: --no-plots"
        raise typer.BadParameter(f"plots need matplotlib; {remedy}", param_hint="--plots")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"cannot be written: {error}", param_hint="--out") from error
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with PlainProgress(*columns, console=Console(stderr=True), transient=True) as progress:
        try:
            yield progress
        except BadDecisionError as error:
            file = out / "broken.json"
            file.write_text(json.dumps({"instance": error.instance, "answer": error.answer}, indent=1) + "\n")
            fail(f"{error}; instance and answer are in {file}")
        except (ContradictionError, TestbedError) as error:
            fail(str(error))


def fail(message: str) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(1)

"""A trace in place of chance: whether it can be read, and what is made of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

from ces_core.model.errors import ProblemError
from ces_sim.arrivals import unread_columns

AS_TIMED: tuple[None] = (None,)
"""The only load where jobs come when the trace says."""


def looked_at(trace: Path | None, jobs: Callable[[], object]) -> None:
    """Tells on standard error which columns are ignored. ``jobs`` reads the trace. Raises typer.BadParameter where that
    cannot be done."""
    try:
        jobs()
    except ProblemError as error:
        raise typer.BadParameter(str(error), param_hint="--trace") from error
    if trace is not None and (unread := unread_columns(trace)):
        typer.echo(f"{trace.name}: ignored columns: {', '.join(unread)}; demands and flows are drawn", err=True)


def loads(offered: tuple[float, ...], trace: Path | None, as_timed: bool) -> tuple[float | None, ...]:
    """The loads that are offered, or the one of a trace that keeps its times. Raises typer.BadParameter."""
    if as_timed and trace is None:
        raise typer.BadParameter("only a trace has times of its own: name one with --trace", param_hint="--as-timed")
    return AS_TIMED if as_timed else offered

"""``ces bench dashboard``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

import shutil
from importlib.util import find_spec

import typer

from ces_experiments.common import options
from ces_experiments.common.command import PLOTS, Option, command


def _browser() -> None:
    """Ends the command, with the remedy, where there is no browser."""
    there = {"playwright": find_spec("playwright"), "chromium": shutil.which("chromium")}
    if missing := [name for name, found in there.items() if not found]:
        remedy = "pip install 'ces-experiments[browser]', and the system's chromium"
        typer.echo(f"error: not installed: {', '.join(missing)} ({remedy})", err=True)
        raise typer.Exit(2)


dashboard = command(
    "dashboard",
    "dashboard.report:DASHBOARD",
    [
        Option("nodes", int, 1000, "simulated agents", more=options.between(10, 5000)),
        Option("wires", int, 2500, "between them, each two links", more=options.between(10, 25_000)),
        Option("interval_s", float, 10.0, "between a node's heartbeats, seconds", more=options.at_least(0.1)),
        Option("visits", int, 9, "first visits, and pictures of the map of each kind", more=options.between(1, 100)),
        Option("minutes", float, 15.0, "for which the heap of an open page is watched", more=options.at_least(0.1)),
        Option("viewers", int, 10, "who follow at once", more=options.between(1, 100)),
        Option("rounds", int, 5, "with viewers, and as many without, in turn", more=options.between(1, 100)),
        Option("round_s", float, 30.0, "how long each is, seconds", more=options.at_least(1)),
        options.SEED(1, "same seed, same cluster"),
        PLOTS,
    ],
    needs=_browser,
    help="What the dashboard costs: bytes and seconds of a first visit, the map of a large cluster, memory, viewers.",
)

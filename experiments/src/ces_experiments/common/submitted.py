"""An experiment as a malleable job of a cluster, and its files back from there."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from ces_client.cli.session import connect
from ces_experiments.common.console import fail
from ces_rl.submission import Workers, fetch, follow, job_of

DATA = "CES_DATA_DIR"


def submit(name: str, given: Mapping[str, Any], written: Mapping[str, Any]) -> None:
    """Have the cluster measure, and follow it until the files are in the folder. ``given``: the experiment's own
    options; ``written``: with those of the cluster and the folder."""
    out: Path = written["out"]
    try:
        workers = Workers.of(written["workers"], written["cpu"], written["memory"], written["image"])
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    for option, value in given.items():
        if isinstance(value, Path):
            flag = f"--{option.replace('_', '-')}"
            raise typer.BadParameter(f"{value} is here, and not on the nodes", param_hint=flag)
    command = ["python", "-m", "ces_experiments.rank", name, json.dumps(given)]
    job = job_of(f"bench-{name}", command, workers, {"unit": "cells"})
    if DATA in os.environ:
        job["tasks"][0]["env"][DATA] = os.environ[DATA]
    with connect() as client:
        view = client.jobs.submit(job)
        typer.echo(f"{view.name} submitted: {view.id}", err=True)
        state = follow(client, view.id, typer.echo)
        if state != "succeeded":
            fail(f"the job has {state}: ces describe job {view.id}")
        try:
            files = fetch(client, view.id, out, "results.json")
        except ValueError as error:
            fail(str(error))
    typer.echo(f"written to {out}: {', '.join(sorted(files))}", err=True)

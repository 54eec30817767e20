"""An experiment as a malleable job of a cluster, and its files back from there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from ces_client.cli.output import say
from ces_client.cli.session import connect
from ces_experiments.common.console import fail


def submit(name: str, given: Mapping[str, Any], written: Mapping[str, Any]) -> None:
    """Run the experiment as a job of the cluster, and follow it until its files are in ``written["out"]``. ``given``:
    the experiment's own options; ``written``: all of the command's. Raises typer.BadParameter; exits if it fails."""
    if find_spec("ces_rl") is None:
        fail("--submit needs ces-rl: make install")
    from ces_rl.submission import Workers, fetch, follow, job_of, refuse_files

    out: Path = written["out"]
    try:
        refuse_files(given)
        workers = Workers.of(written["workers"], written["cpu"], written["memory"], written["image"])
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    command = ["python", "-m", "ces_experiments.rank", name, json.dumps(given)]
    tell = partial(say, stderr=True)
    with connect() as client:
        view = client.jobs.submit(job_of(f"bench-{name}", command, workers, {"unit": "cells"}))
        tell(f"{view.name} submitted: {view.id}")
        tell(f"Ctrl-C leaves it running; later: ces train fetch {view.id} --out {out}")
        state = follow(client, view.id, say)
        if state != "succeeded":
            fail(f"the job has {state}: ces describe job {view.id}")
        try:
            files = fetch(client, view.id, out, "results.json")
        except ValueError as error:
            fail(str(error))
    tell(f"written to {out}: {', '.join(sorted(files))}")

"""Names that the shell completes. They come from the cluster, at once or not at all: a shell cannot show errors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import typer

from ces_client.cli import session
from ces_client.client import Client

ANSWER_S = 1.0
MOST = 200  # jobs that are looked at, the latest first


def jobs(incomplete: str) -> list[str]:
    """Names of jobs, or ids where one is begun."""

    def fetch(client: Client) -> list[str]:
        found = list(islice(client.jobs.list(), MOST))
        return [job.id for job in found] if incomplete[:1].isdigit() else [job.name for job in found]

    return _asked(fetch, incomplete)


def tasks(ctx: typer.Context, incomplete: str) -> list[str]:
    """Tasks of the job that the command line names."""
    job = str(ctx.params.get("job") or "")

    def fetch(client: Client) -> list[str]:
        return [task.name for task in client.jobs.get(session.job_id(client, job)).placement]

    return _asked(fetch, incomplete)


def nodes(incomplete: str) -> list[str]:
    """Names of nodes."""
    return _asked(lambda client: [node.name for node in client.nodes.list()], incomplete)


def _asked(fetch: Callable[[Client], list[str]], incomplete: str) -> list[str]:
    try:
        with session.connect(patience_s=ANSWER_S, answer_s=ANSWER_S) as client:
            return sorted({name for name in fetch(client) if name.startswith(incomplete)})
    except Exception:  # no cluster, no right to ask, whatever it is
        return []

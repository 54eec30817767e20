"""The connection of a command, and jobs by id or name."""

from __future__ import annotations

import re

from rich.text import Text

from ces_client.cli.output import console
from ces_client.client import Client
from ces_client.context import Context, load_context
from ces_client.errors import bad_field
from ces_client.http import ANSWER_S, PATIENCE_S
from ces_common.states import JOB_OVER

JOB_ID = re.compile(r"^[0-9A-HJKMNP-TV-Z]{26}$")  # a ULID
NAMED = 3  # ids in a note; the others are counted


_named: str | None = None


def name_cluster(name: str | None) -> None:
    """What ``--cluster`` says, for the rest of this command."""
    global _named
    _named = name


def named_cluster() -> str | None:
    """The cluster that ``--cluster`` names; None without the option."""
    return _named


def context() -> Context:
    """The manager that ``--cluster``, the environment or the context file names. Raises BadInput."""
    return load_context(cluster=_named)


def connect(*, patience_s: float = PATIENCE_S, answer_s: float = ANSWER_S) -> Client:
    """A client of the manager that is meant; close it. Raises BadInput."""
    return Client.from_context(context(), patience_s=patience_s, answer_s=answer_s)


def job_id(client: Client, job: str) -> str:
    """``job`` itself if it is an id, else the id of the job of that name that was submitted last. Where an earlier one
    of the name is not over either, a note on standard error names them."""
    if JOB_ID.match(job):
        return job
    found = sorted(client.jobs.list(name=job), key=lambda each: each.submitted_at)
    if not found:
        raise bad_field(f"No job is named {job}", "job", "there is none of that name", "`ces get jobs` lists them")
    *earlier, latest = found
    others = [each.id for each in earlier if each.state not in JOB_OVER]
    if others:
        more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
        which = "It is over; not over" if latest.state in JOB_OVER else "Not over either"
        note = f"{len(found)} jobs are named {job}; this is the latest, {latest.id}. {which}, and to be named "
        note += f"by their ids: {', '.join(others[-NAMED:])}{more}"
        console(stderr=True).print(Text(note, style="yellow"), soft_wrap=True)
    return latest.id

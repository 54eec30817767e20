"""The connection of a command, and jobs by id or name."""

from __future__ import annotations

import re

from ces_client.client import Client
from ces_client.errors import bad_field

JOB_ID = re.compile(r"^[0-9A-HJKMNP-TV-Z]{26}$")  # a ULID


def connect() -> Client:
    """The manager of the environment or the context file."""
    return Client.from_environment()


def job_id(client: Client, job: str) -> str:
    """``job`` itself if it is an id, else the id of the job of that name that was submitted last."""
    if JOB_ID.match(job):
        return job
    found = client.jobs.latest(job)
    if found is None:
        raise bad_field(f"No job is named {job}", "job", "there is none of that name", "`ces get jobs` lists them")
    return found.id

"""Parameters of routes, with their bounds."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from ces_common.messages.bounds import MAX_ID

LONGEST_NUMBER = 18  # digits of an event's; what the database can compare with
PathName = Annotated[str, Path(max_length=MAX_ID)]
"""A name or an id in an address."""
QueryName = Annotated[str | None, Query(max_length=MAX_ID)]
Cursor = Annotated[str | None, Query(max_length=MAX_ID)]
Limit = Annotated[int, Query(ge=1, le=500)]
Attempt = Annotated[int | None, Query(ge=1, le=2**31 - 1)]
Lines = Annotated[int | None, Query(ge=0, le=2**31 - 1)]
EventNumber = Annotated[int | None, Query(ge=0, lt=10**LONGEST_NUMBER)]

"""Cursors of lists: what is none of ours is refused, since any text would compare with something."""

from __future__ import annotations

import re

from ces_manager.errors import Invalid

_JOB = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")  # a ULID
_NODE = re.compile(r"[A-Za-z0-9_-]{1,63}")
_SECRET = re.compile(r"[a-z0-9-]{1,63}/[A-Za-z0-9._-]{1,63}")
_EVENT = re.compile(r"[1-9][0-9]{0,17}")
_NUMBER = re.compile(r"[0-9]{1,9}")


def job_cursor(cursor: str | None) -> str | None:
    """The id of the last job seen. Raises Invalid."""
    return _checked(cursor, _JOB)


def node_cursor(cursor: str | None) -> str | None:
    """The name of the last node seen. Raises Invalid."""
    return _checked(cursor, _NODE)


def secret_cursor(cursor: str | None) -> tuple[str, str] | None:
    """Tenant and name of the last secret seen. Raises Invalid."""
    checked = _checked(cursor, _SECRET)
    if checked is None:
        return None
    tenant, _, name = checked.partition("/")
    return tenant, name


def cursor_number(cursor: str | None) -> int:
    """How many entries were seen. Raises Invalid."""
    return int(_checked(cursor, _NUMBER) or 0)


def event_cursor(cursor: str | None) -> int | None:
    """The number of the last event seen. Raises Invalid."""
    checked = _checked(cursor, _EVENT)
    return None if checked is None else int(checked)


def _checked(cursor: str | None, pattern: re.Pattern[str]) -> str | None:
    if cursor is not None and not pattern.fullmatch(cursor):
        raise Invalid("cursor", "is no cursor of this list; give the next of the page before, or leave it out")
    return cursor

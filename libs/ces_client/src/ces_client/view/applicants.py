"""Devices that have applied to be made nodes, for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.table import Table

from ces_client.view.formats import DASH, since, span
from ces_client.view.tables import plain_table
from ces_common.messages.membership import Applicant


def applicant_table(applicants: Sequence[Applicant], now: datetime) -> Table:
    columns = ("NAME", "FROM", "USER", "PORT", "ARCH", "HOST KEYS", "APPLIED", "LEFT")
    table = plain_table(*columns, right=("PORT",), wrapped=("HOST KEYS",), optional=("LEFT", "ARCH", "PORT", "USER"))
    for each in applicants:
        keys = ", ".join(each.host_keys)
        left = span((each.ends_at - now).total_seconds())
        applied = f"{since(each.applied_at, now)} ago"
        table.add_row(each.name, each.address, each.user, str(each.port), each.arch or DASH, keys, applied, left)
    return table

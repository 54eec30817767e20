"""Secrets of jobs, for people: all but what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.table import Table

from ces_client.view.formats import since
from ces_client.view.tables import plain_table
from ces_common.messages.secrets import SecretView


def secret_table(secrets: Sequence[SecretView], now: datetime) -> Table:
    table = plain_table("NAME", "TENANT", "STORED", "BY", optional=("BY", "STORED"))
    for secret in secrets:
        table.add_row(secret.name, secret.tenant, f"{since(secret.updated_at, now)} ago", secret.updated_by)
    return table

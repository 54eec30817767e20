"""Access tokens and identities, for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ces_client.view.formats import DASH, since, span
from ces_client.view.tables import fact_list, plain_table
from ces_common.messages.identities import AccessTokenView, Identity


def token_table(tokens: Sequence[AccessTokenView], now: datetime) -> Table:
    columns = ("NAME", "ROLE", "TENANTS", "MAX PRIO", "MADE BY", "LAST USED", "STATE")
    optional = ("MADE BY", "MAX PRIO", "LAST USED")
    table = plain_table(*columns, right=("MAX PRIO",), wrapped=("TENANTS",), optional=optional)
    for token in tokens:
        used = DASH if token.last_used_at is None else f"{since(token.last_used_at, now)} ago"
        table.add_row(
            token.name, token.role, _tenants(token), str(token.max_priority), token.created_by, used, _state(token, now)
        )
    return table


def identity_facts(identity: Identity) -> RenderableType:
    facts = [
        ("name", identity.name),
        ("role", str(identity.role)),
        ("tenants", _tenants(identity)),
        ("max priority", str(identity.max_priority)),
    ]
    if identity.expires_at is not None:
        facts.append(("good until", f"{identity.expires_at:%Y-%m-%d %H:%M %Z}"))
    return fact_list(facts)


def _tenants(identity: Identity) -> str:
    return "all" if identity.tenants is None else ", ".join(identity.tenants)


def _state(token: AccessTokenView, now: datetime) -> Text:
    if token.revoked_at is not None:
        return Text("revoked", style="dim")
    if token.expires_at is not None and token.expires_at <= now:
        return Text("expired", style="dim")
    left = f", {span((token.expires_at - now).total_seconds())} left" if token.expires_at is not None else ""
    return Text.assemble(("good", "green"), left)

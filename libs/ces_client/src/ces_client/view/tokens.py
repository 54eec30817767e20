"""Access tokens and identities, for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ces_client.view.formats import DASH, since, span
from ces_client.view.tables import fact_list, plain_table
from ces_common.messages.identities import AccessTokenView, Identity, SessionView


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


def session_table(sessions: Sequence[SessionView], now: datetime) -> Table:
    table = plain_table("ID", "HOLDER", "ROLE", "TENANTS", "BEGUN", "LEFT", wrapped=("TENANTS",))
    for each in sessions:
        begun = "not yet" if each.opened_at is None else f"{since(each.opened_at, now)} ago"
        left = span((each.expires_at - now).total_seconds())
        table.add_row(each.id, each.holder, each.role, _tenants(each), begun, left)
    return table


def _tenants(identity: Identity | SessionView) -> str:
    return "all" if identity.tenants is None else ", ".join(identity.tenants)


def _state(token: AccessTokenView, now: datetime) -> Text:
    if token.revoked_at is not None:
        return Text("revoked", style="dim")
    if token.expires_at is not None and token.expires_at <= now:
        return Text("expired", style="dim")
    left = f", {span((token.expires_at - now).total_seconds())} left" if token.expires_at is not None else ""
    return Text.assemble(("good", "green"), left)

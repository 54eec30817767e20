"""What people whom an OpenID provider knows may do here, by the groups that it says they are in. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import Field

from ces_common.fields import Document
from ces_common.messages.identities import Allowance, Identity
from ces_common.queuefile import QueueFile
from ces_common.service import BadSetup
from ces_manager.errors import Forbidden, NoRole

MAX_GRANTS: Final = 1024
LONGEST_NAME: Final = 120  # characters
OF_PROVIDER: Final = "oidc:"  # before a person's name, so that none is an access token's
Text = Annotated[str, Field(min_length=1, max_length=256)]


class Grant(Allowance):
    """Whoever is in ``group`` has this role."""

    group: Text


class GrantsFile(Document):
    """``CES_OIDC_GRANTS``. ``name_claim``: the claim that names people in events and logs, one that they cannot choose
    themselves. ``groups_claim``: the one that lists their groups. The first grant of any of these counts."""

    name_claim: Text = "sub"
    groups_claim: Text = "groups"
    grants: Annotated[list[Grant], Field(min_length=1, max_length=MAX_GRANTS)]


def check_tenants(file: GrantsFile, queue: QueueFile) -> None:
    """Raises BadSetup for a tenant that the queue's file does not name."""
    for i, grant in enumerate(file.grants):
        for tenant in grant.tenants:
            if not queue.admits(tenant):
                known = ", ".join(queue.names)
                raise BadSetup(
                    f"CES_OIDC_GRANTS: grants[{i}].tenants: no tenant is called {tenant!r}: name one of {known}"
                )


def identity_of(claims: Mapping[str, Any], file: GrantsFile) -> Identity:
    """Whom a checked token is about. Raises Forbidden, NoRole."""
    name = claims.get(file.name_claim)
    if not (isinstance(name, str) and name.isprintable() and 0 < len(name) <= LONGEST_NAME):
        raise Forbidden(f"this token does not say who you are: it needs the claim {file.name_claim!r}, a short text")
    said = claims.get(file.groups_claim)
    groups = {each for each in (said if isinstance(said, list) else [said]) if isinstance(each, str)}
    grant = next((each for each in file.grants if each.group in groups), None)
    if grant is None:
        raise NoRole(f"{name} is in no group that has a role here, by the token's claim {file.groups_claim!r}")
    return Identity(
        name=OF_PROVIDER + name,
        role=grant.role,
        tenants=grant.tenants if grant.role.has_tenants else None,
        max_priority=grant.max_priority,
        expires_at=_time(claims["exp"]),
    )


def _time(seconds: Any) -> datetime:
    """Raises Forbidden."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError) as error:
        raise Forbidden("this token ends at no time that there is") from error

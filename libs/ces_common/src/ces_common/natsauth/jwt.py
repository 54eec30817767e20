"""NATS JWTs, version 2: the few claims that CES needs, encoded and signed. There is no kept-up Python library."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from ces_common.natsauth.keys import public_key, sign
from ces_common.natsauth.permissions import Permissions

VERSION: Final = 2
UNLIMITED: Final = -1
REPLY_WITHIN_S: Final = 120
# Users are refused whose credential was issued before this: the year 2100. A key is never admitted again, so no date of
# its next credential matters, nor whether somebody's clock was wrong.
FOR_GOOD: Final = 4102444800

_TRAFFIC: Final = {"subs": UNLIMITED, "data": UNLIMITED, "payload": UNLIMITED}
_ACCOUNT: Final = {"imports": UNLIMITED, "exports": UNLIMITED, "wildcards": True, "conn": UNLIMITED, "leaf": UNLIMITED}
_JETSTREAM: Final = {"mem_storage": UNLIMITED, "disk_storage": UNLIMITED, "streams": UNLIMITED, "consumer": UNLIMITED}


def operator(seed: str, name: str, *, system_account: str, signing_keys: Sequence[str]) -> str:
    """The operator, signed by itself. ``signing_keys``: public keys that may sign accounts in its name."""
    claims = {"type": "operator", "system_account": system_account, "signing_keys": list(signing_keys)}
    return _encode(seed, public_key(seed), name, claims)


def system_account(operator_seed: str, account: str) -> str:
    return _encode(operator_seed, account, "SYS", {"type": "account", "limits": _TRAFFIC | _ACCOUNT})


def account(signing_seed: str, account_: str, name: str, scopes: Mapping[str, tuple[str, Permissions]]) -> str:
    """An account with JetStream, signed by a signing key of the operator. ``scopes``: for each role its public signing
    key and what its users may do."""
    claims = {"type": "account", "limits": _TRAFFIC | _ACCOUNT | _JETSTREAM, "signing_keys": _scopes(scopes)}
    return _encode(signing_seed, account_, name, claims)


def plain_account(signing_seed: str, account_: str, name: str, scopes: Mapping[str, tuple[str, Permissions]]) -> str:
    """As ``account``, without JetStream: whatever its users or a leaf node ask of the JetStream API, nobody answers."""
    claims = {"type": "account", "limits": _TRAFFIC | _ACCOUNT, "signing_keys": _scopes(scopes)}
    return _encode(signing_seed, account_, name, claims)


def user(signing_seed: str, public: str, name: str, *, account: str, life_s: float | None) -> str:
    """A user of a scoped signing key: it must carry no permissions or limits of its own. ``life_s``: None for one that
    never ends."""
    return _encode(signing_seed, public, name, {"type": "user", "issuer_account": account}, life_s=life_s)


def system_user(account_seed: str, public: str, name: str, permissions: Permissions) -> str:
    """A user of the system account, signed by the account itself."""
    return _encode(account_seed, public, name, {"type": "user", **_template(permissions)})


def claims_of(token: str) -> dict[str, Any]:
    """What a JWT says, unchecked. Raises ValueError if it is none."""
    try:
        _, body, _ = token.split(".")
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except ValueError as error:  # of the three, all that is raised
        raise ValueError("not a JWT") from error
    if not isinstance(claims, dict):
        raise ValueError("not a JWT")
    return claims


def revoking(account_token: str, signing_seed: str, users: Collection[str]) -> str | None:
    """The account's JWT, changed to refuse these users (public keys) for good; None where it refuses them already. The
    new one is dated later than the given one, whatever this machine's clock says, since servers keep the latest.

    Raises ValueError where another key signed the one given: servers store what they do not trust, and then let nobody
    in."""
    claims = claims_of(account_token)
    if claims["iss"] != public_key(signing_seed):
        raise ValueError("another key signed it; write the broker's configuration again and restart it")
    nats = claims["nats"]
    revoked = dict(nats.get("revocations", {}))
    if all(revoked.get(user) == FOR_GOOD for user in users):
        return None
    revoked |= dict.fromkeys(users, FOR_GOOD)
    issued = max(int(time.time()), claims["iat"] + 1)
    return _encode(signing_seed, claims["sub"], claims["name"], {**nats, "revocations": revoked}, issued)


def _scopes(scopes: Mapping[str, tuple[str, Permissions]]) -> list[dict[str, object]]:
    return [
        {"kind": "user_scope", "key": key, "role": role, "template": _template(permissions)}
        for role, (key, permissions) in scopes.items()
    ]


def _template(permissions: Permissions) -> dict[str, object]:
    template: dict[str, object] = {
        **_TRAFFIC,
        "pub": {"allow": list(permissions.publish)},
        "sub": {"allow": list(permissions.subscribe)},
    }
    if permissions.answers:
        template["resp"] = {"max": 1, "ttl": REPLY_WITHIN_S * 1_000_000_000}
    return template


def _encode(
    seed: str,
    subject: str,
    name: str,
    claims: Mapping[str, Any],
    issued: int | None = None,
    life_s: float | None = None,
) -> str:
    issued = int(time.time()) if issued is None else issued
    body = {
        "iat": issued,
        **({} if life_s is None else {"exp": issued + math.ceil(life_s)}),
        "iss": public_key(seed),
        "name": name,
        "sub": subject,
        "nats": {**claims, "version": VERSION},
    }
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).digest()
    body["jti"] = base64.b32encode(digest).decode().rstrip("=")
    signed = f"{_part({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{_part(body)}"
    return f"{signed}.{_base64(sign(seed, signed.encode()))}"


def _part(value: Mapping[str, Any]) -> str:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")

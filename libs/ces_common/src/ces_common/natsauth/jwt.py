"""NATS JWTs, version 2: the few claims that CES needs, encoded and signed. There is no kept-up Python library."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any, Final

from ces_common.natsauth.keys import public_key, sign
from ces_common.natsauth.permissions import Permissions

VERSION: Final = 2
UNLIMITED: Final = -1
REPLY_WITHIN_S: Final = 120

_TRAFFIC: Final = {"subs": UNLIMITED, "data": UNLIMITED, "payload": UNLIMITED}
_ACCOUNT: Final = {"imports": UNLIMITED, "exports": UNLIMITED, "wildcards": True, "conn": UNLIMITED, "leaf": UNLIMITED}
_JETSTREAM: Final = {"mem_storage": UNLIMITED, "disk_storage": UNLIMITED, "streams": UNLIMITED, "consumer": UNLIMITED}


def operator(seed: str, name: str, *, system_account: str) -> str:
    """The operator, signed by itself."""
    return _encode(seed, public_key(seed), name, {"type": "operator", "system_account": system_account})


def system_account(operator_seed: str, account: str) -> str:
    return _encode(operator_seed, account, "SYS", {"type": "account", "limits": _TRAFFIC | _ACCOUNT})


def account(operator_seed: str, account_: str, name: str, scopes: Mapping[str, tuple[str, Permissions]]) -> str:
    """An account with JetStream. ``scopes``: for each role its public signing key and what its users may do."""
    signing_keys = [
        {"kind": "user_scope", "key": key, "role": role, "template": _template(permissions)}
        for role, (key, permissions) in scopes.items()
    ]
    claims = {"type": "account", "limits": _TRAFFIC | _ACCOUNT | _JETSTREAM, "signing_keys": signing_keys}
    return _encode(operator_seed, account_, name, claims)


def user(signing_seed: str, public: str, name: str, *, account: str) -> str:
    """A user of a scoped signing key: it must carry no permissions or limits of its own."""
    return _encode(signing_seed, public, name, {"type": "user", "issuer_account": account})


def _template(permissions: Permissions) -> dict[str, object]:
    template: dict[str, object] = {
        **_TRAFFIC,
        "pub": {"allow": list(permissions.publish)},
        "sub": {"allow": list(permissions.subscribe)},
    }
    if permissions.answers:
        template["resp"] = {"max": 1, "ttl": REPLY_WITHIN_S * 1_000_000_000}
    return template


def _encode(seed: str, subject: str, name: str, claims: Mapping[str, Any]) -> str:
    body = {
        "iat": int(time.time()),
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

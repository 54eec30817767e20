"""The wire between regions: a hub that regions' servers reach as leaf nodes, each chain of trust by itself.

The hub has an operator of its own and one account, without JetStream. Every region gets one user of that account, with
which its server, not a client, connects. What this user may say and hear is all that can cross: messages to any region
that say they are from this one, and messages to this one. So a region speaks as itself alone, whatever its own server
lets through, and neither a JetStream API nor a subject of its clusters is among what crosses.

At the region's end the leaf connection belongs to an account beside CES's own, signed by the region's own operator. No
subject of CES's account is in it, and only the service ``federation`` has a user there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ces_common import subjects
from ces_common.natsauth import jwt
from ces_common.natsauth.credentials import Credentials, new_user_key
from ces_common.natsauth.keys import Kind, public_key
from ces_common.natsauth.patience import BEGIN_S, PING_EVERY_S, UNANSWERED_PINGS
from ces_common.natsauth.permissions import Permissions
from ces_common.natsauth.trust import Trust, kept_jwt, kept_seed, load_revocation_key

HUB: Final = "HUB"
REGIONS: Final = "REGIONS"
MAX_PAYLOAD: Final = 3 * 1024 * 1024  # bytes


def permissions_of(region: str) -> Permissions:
    """What a region may say and hear on the wire: answers go to subjects of the same form, so it may not answer
    elsewhere."""
    return Permissions(
        publish=(subjects.of_region(subjects.ANY, region),),
        subscribe=(subjects.of_region(region, subjects.ANY),),
        answers=False,
    )


@dataclass(frozen=True, slots=True)
class Hub:
    """What the hub's server must know: nothing secret. The seeds lie in ``directory``."""

    directory: Path
    operator_jwt: str
    system_account: str
    system_account_jwt: str
    account: str
    account_jwt: str

    def admit(self, region: str) -> Credentials:
        """Fresh credentials for the leaf connection of a region. Raises BadName."""
        key = new_user_key()
        seed = (self.directory / "account.seed").read_text().strip()
        name = subjects.region_name(region)
        return Credentials(jwt=jwt.system_user(seed, key.public, name, permissions_of(name)), seed=key.seed)


def init_hub(directory: Path) -> Hub:
    """Make the hub's keys that ``directory`` lacks."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    operator = kept_seed(directory / "operator.seed", Kind.OPERATOR)
    system = public_key(kept_seed(directory / "system-account.seed", Kind.ACCOUNT))
    account = public_key(kept_seed(directory / "account.seed", Kind.ACCOUNT))
    return Hub(
        directory=directory,
        operator_jwt=jwt.operator(operator, HUB, system_account=system, signing_keys=[]),
        system_account=system,
        system_account_jwt=jwt.system_account(operator, system),
        account=account,
        account_jwt=jwt.plain_account(operator, account, REGIONS, {}),
    )


def hub_config(hub: Hub, *, host: str, port: int, leaf_port: int, certificate: Path | None = None) -> str:
    """A configuration file's text; it holds no secret. ``port``: for clients, of whom there are none; ``leaf_port``:
    where regions' servers connect. ``certificate``: the hub's own file; without one, it is all in the clear."""
    tls = [] if certificate is None else [f"  {_tls(certificate)}"]
    lines = [
        "server_name: hub",
        f"host: {json.dumps(host)}",
        f"port: {port}",
        f"max_payload: {MAX_PAYLOAD}",
        f'ping_interval: "{PING_EVERY_S}s"',
        f"ping_max: {UNANSWERED_PINGS}",
        *([] if certificate is None else [_tls(certificate)]),
        f"leafnodes {{\n  host: {json.dumps(host)}\n  port: {leaf_port}",
        *tls,
        "}",
        f"operator: {hub.operator_jwt}",
        f"system_account: {hub.system_account}",
        "resolver: MEMORY",
        "resolver_preload: {",
        f"  {hub.system_account}: {hub.system_account_jwt}",
        f"  {hub.account}: {hub.account_jwt}",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _tls(certificate: Path) -> str:
    file = json.dumps(str(certificate))
    return f"tls {{ cert_file: {file}, key_file: {file}, handshake_first: true, timeout: {BEGIN_S} }}"


@dataclass(frozen=True, slots=True)
class Leaf:
    """How a region's server takes part. ``hubs``: URLs, ``tls://`` or ``nats-leaf://``, tried in turn. ``credentials``:
    the file of what the hub admitted it with. ``authority``: of the hubs' certificates. ``account``: the region's own,
    with its JWT."""

    region: str
    hubs: tuple[str, ...]
    credentials: Path
    account: str
    account_jwt: str
    authority: Path | None = None

    def config(self) -> list[str]:
        """Lines for the region's server, beside the JetStream domain and the account's JWT."""
        ca = [] if self.authority is None else [f"      {_ca(self.authority)}"]
        return [
            "leafnodes {",
            '  reconnect: "1s"',
            "  remotes: [",
            "    {",
            f"      urls: {json.dumps(list(self.hubs))}",
            f"      credentials: {json.dumps(str(self.credentials))}",
            f"      account: {self.account}",
            *ca,
            "    }",
            "  ]",
            "}",
        ]


def _ca(authority: Path) -> str:
    return f"tls {{ ca_file: {json.dumps(str(authority))}, handshake_first: true, timeout: {BEGIN_S} }}"


def init_region(trust: Trust, region: str) -> tuple[str, str]:
    """The region's account for the wire, and its JWT, signed as CES's own account is. Raises BadName."""
    operator = load_revocation_key(trust.revocation_key_file).signing_seed
    account = public_key(kept_seed(trust.directory / "regions-account.seed", Kind.ACCOUNT))
    signing = public_key(_signing_seed(trust))
    scopes = {REGIONS: (signing, permissions_of(subjects.region_name(region)))}
    token = jwt.plain_account(operator, account, REGIONS, scopes)
    return account, kept_jwt(trust.directory / "regions-account.jwt", token)


def wire_credentials(trust: Trust, account: str, region: str) -> Credentials:
    """Fresh credentials with which the service ``federation`` of a region connects to the wire."""
    key = new_user_key()
    return Credentials(
        jwt=jwt.user(_signing_seed(trust), key.public, subjects.region_name(region), account=account, life_s=None),
        seed=key.seed,
    )


def _signing_seed(trust: Trust) -> str:
    return kept_seed(trust.directory / "signing-regions.seed", Kind.ACCOUNT)

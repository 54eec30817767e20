"""The chain of trust on disk: operator, accounts, one scoped signing key per role, and the key that revokes.

Whoever holds a role's signing key can make users of that role and of no other. So the manager, which admits nodes,
gets the agents' signing key. To have a forgotten node refused it must replace the account's claims, which takes a
signing key of the operator and a user of the system account: the revocation key. That is as much power over the broker
as there is, so it is a file of its own, which an operator may withhold. The operator's and the accounts' own seeds stay
in the directory where they were made and no running service needs them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ces_common import subjects
from ces_common.natsauth import jwt
from ces_common.natsauth.credentials import Credentials, new_user_key
from ces_common.natsauth.keys import BadKey, Kind, check_user_key, new_seed, public_key
from ces_common.natsauth.permissions import AGENT, PERMISSIONS, REVOKER, SERVICES
from ces_common.natsauth.permissions import revoker as revoker_permissions
from ces_common.natsauth.secret_files import write_secret

ACCOUNT_NAME: Final = "CES"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """What it takes to make users of one role."""

    role: str
    account: str
    seed: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class RevocationKey:
    """What it takes to have users of the account refused: a signing key of the operator, and a user of the system
    account that may replace the account's claims."""

    account: str
    signing_seed: str = field(repr=False)
    credentials: Credentials


@dataclass(frozen=True, slots=True)
class Trust:
    """What a server must know (JWTs and public keys: nothing secret), and where the signing keys lie."""

    directory: Path
    operator_jwt: str
    system_account: str
    system_account_jwt: str
    account: str
    account_jwt: str

    def signing_key_file(self, role: str) -> Path:
        if role not in PERMISSIONS:
            raise ValueError(f"no role {role!r}; there are {', '.join(PERMISSIONS)}")
        return self.directory / f"signing-{role}.json"

    @property
    def revocation_key_file(self) -> Path:
        return self.directory / "revocation.json"

    def signing_key(self, role: str) -> SigningKey:
        return load_signing_key(self.signing_key_file(role))

    def new_credentials(self, role: str, name: str) -> Credentials:
        """A fresh user of ``role``: for the central services, whose machine is this one."""
        key = new_user_key()
        return Credentials(jwt=issue_user(self.signing_key(role), name, key.public), seed=key.seed)


def init_trust(directory: Path) -> Trust:
    """Make the keys that ``directory`` lacks, and write the JWTs again from the present permissions.

    Running it again after an upgrade changes what users may do, and none of the credentials they hold.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    operator = kept_seed(directory / "operator.seed", Kind.OPERATOR)
    system_seed = kept_seed(directory / "system-account.seed", Kind.ACCOUNT)
    system = public_key(system_seed)
    account = public_key(kept_seed(directory / "account.seed", Kind.ACCOUNT))
    revoker = _revocation_key(directory / "revocation.json", account, system_seed)
    scopes = {}
    for role, permissions in PERMISSIONS.items():
        file = directory / f"signing-{role}.json"
        if not file.exists():
            content = {"role": role, "account": account, "seed": new_seed(Kind.ACCOUNT)}
            write_secret(file, json.dumps(content, indent=2) + "\n")
        scopes[role] = (public_key(load_signing_key(file).seed), permissions)
    return Trust(
        directory=directory,
        operator_jwt=jwt.operator(
            operator, ACCOUNT_NAME, system_account=system, signing_keys=[public_key(revoker.signing_seed)]
        ),
        system_account=system,
        system_account_jwt=jwt.system_account(operator, system),
        account=account,
        account_jwt=kept_jwt(
            directory / "account.jwt", jwt.account(revoker.signing_seed, account, ACCOUNT_NAME, scopes)
        ),
    )


def load_signing_key(path: Path) -> SigningKey:
    """Raises OSError, and ValueError if the file is no signing key."""
    try:
        content = json.loads(path.read_text())
        key = SigningKey(role=content["role"], account=content["account"], seed=content["seed"])
        public_key(key.seed)
    except (json.JSONDecodeError, KeyError, TypeError, BadKey) as error:
        raise ValueError(f"{path} is no signing key") from error
    return key


def load_revocation_key(path: Path) -> RevocationKey:
    """Raises OSError, and ValueError if the file is no revocation key."""
    try:
        content = json.loads(path.read_text())
        key = RevocationKey(
            account=content["account"],
            signing_seed=content["signing_seed"],
            credentials=Credentials(jwt=content["user_jwt"], seed=content["user_seed"]),
        )
        public_key(key.signing_seed)
    except (json.JSONDecodeError, KeyError, TypeError, BadKey) as error:
        raise ValueError(f"{path} is no revocation key") from error
    return key


def issue_user(signing_key: SigningKey, name: str, public: str, life_s: float | None = None) -> str:
    """The JWT that makes the holder of ``public`` the user ``name``, with what the key's role may do, for ``life_s``
    seconds; for ever when left out.

    Raises BadName or BadKey: both come from a node that wants to join, and the name becomes part of subjects. It may
    be no service's, whose answers the node would hear.
    """
    checked = subjects.node_name(name) if signing_key.role == AGENT else subjects.token(name)
    if signing_key.role == AGENT and name in (*SERVICES, REVOKER):
        raise subjects.BadName(f"{name!r} is the name of a service: call the node otherwise")
    return jwt.user(signing_key.seed, check_user_key(public), checked, account=signing_key.account, life_s=life_s)


def _revocation_key(path: Path, account: str, system_seed: str) -> RevocationKey:
    """Made once; what its user may do is written again where the present permissions are others."""
    held = load_revocation_key(path) if path.exists() else None
    user_seed = new_user_key().seed if held is None else held.credentials.seed
    fresh = jwt.system_user(system_seed, public_key(user_seed), REVOKER, revoker_permissions(account))
    if held is None or not _says_the_same(held.credentials.jwt, fresh):
        content = {
            "account": account,
            "signing_seed": new_seed(Kind.OPERATOR) if held is None else held.signing_seed,
            "user_jwt": fresh,
            "user_seed": user_seed,
        }
        write_secret(path, json.dumps(content, indent=2) + "\n")
    return load_revocation_key(path)


def kept_jwt(path: Path, fresh: str) -> str:
    """The JWT that the file holds if it says the same: servers keep the newest of an account's JWTs, and theirs may
    list revocations, which a newer one without them would undo until the manager finds out."""
    if path.exists():
        held = path.read_text().strip()
        if _says_the_same(held, fresh):
            return held
    write_secret(path, fresh + "\n")
    return fresh


def _says_the_same(one: str, other: str) -> bool:
    """Whether two JWTs differ in nothing but when they were made."""
    said, desired = ({**jwt.claims_of(token), "iat": 0, "jti": ""} for token in (one, other))
    return said == desired


def kept_seed(path: Path, kind: Kind) -> str:
    """The seed in the file, made if there is none."""
    if not path.exists():
        write_secret(path, new_seed(kind) + "\n")
    return path.read_text().strip()

"""Who may say and hear what on NATS: operator-mode JWTs with a scoped signing key per role."""

from ces_common.natsauth.config import server_config
from ces_common.natsauth.credentials import (
    Credentials,
    UserKey,
    credentials_file,
    new_user_key,
    read_credentials,
    save_credentials,
)
from ces_common.natsauth.jwt import revoking
from ces_common.natsauth.permissions import AGENT, REVOKER, SERVICES
from ces_common.natsauth.signed_requests import SIGNATURE, is_signed, signature_of
from ces_common.natsauth.trust import (
    RevocationKey,
    SigningKey,
    Trust,
    init_trust,
    issue_user,
    load_revocation_key,
    load_signing_key,
)

__all__ = [
    "AGENT",
    "REVOKER",
    "SERVICES",
    "SIGNATURE",
    "Credentials",
    "RevocationKey",
    "SigningKey",
    "Trust",
    "UserKey",
    "credentials_file",
    "init_trust",
    "is_signed",
    "issue_user",
    "load_revocation_key",
    "load_signing_key",
    "new_user_key",
    "read_credentials",
    "revoking",
    "save_credentials",
    "server_config",
    "signature_of",
]

"""What a client shows to the server: a JWT that says who it is, and the seed that proves it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from ces_common.natsauth.keys import Kind, new_seed, public_key
from ces_common.natsauth.secret_files import write_secret

_BLOCK = re.compile(r"-{3,}BEGIN ([A-Z ]+)-{3,}\s*(\S+)\s*-{3,}END \1-{3,}")


@dataclass(frozen=True, slots=True)
class UserKey:
    """A user's key. The seed stays where it was made; only ``public`` travels."""

    seed: str = field(repr=False)
    public: str


@dataclass(frozen=True, slots=True)
class Credentials:
    jwt: str = field(repr=False)
    seed: str = field(repr=False)


def new_user_key() -> UserKey:
    seed = new_seed(Kind.USER)
    return UserKey(seed=seed, public=public_key(seed))


def credentials_file(jwt: str, seed: str) -> str:
    """The text of a ``.creds`` file, as every NATS tool reads it."""
    return (
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )


def save_credentials(path: Path, credentials: Credentials) -> None:
    """Write a ``.creds`` file that only its owner may read."""
    write_secret(path, credentials_file(credentials.jwt, credentials.seed))


def read_credentials(path: Path) -> Credentials:
    """Read a ``.creds`` file. Raises OSError, and ValueError if it is none."""
    blocks = dict(_BLOCK.findall(path.read_text()))
    try:
        return Credentials(jwt=blocks["NATS USER JWT"], seed=blocks["USER NKEY SEED"])
    except KeyError as error:
        raise ValueError(f"{path} holds no {error.args[0]}") from error

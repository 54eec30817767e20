"""Make what a cluster needs before its first start: trust, credentials, tokens, the NATS configuration.

Runs as root before anything else, at every start; what is there is kept. Every service gets a folder of its own in
/secrets, which it alone can read: the services' images run as different users.
"""

import json
import os
import secrets
from pathlib import Path

from ces_common.natsauth import AGENT, SERVICES, init_trust, save_credentials, server_config
from ces_common.natsauth.secret_files import write_secret

SECRETS = Path("/secrets")
NATS = Path("/nats")
# As in the images' Dockerfiles; nats is started with its number in docker-compose.yml.
USERS = {"manager": 10011, "scheduler": 10012, "compute-ctl": 10013, "network-ctl": 10014, "nats": 10015, "postgres": 0}


def folder(path: Path, owner: int) -> Path:
    path.mkdir(exist_ok=True, mode=0o700)
    os.chown(path, owner, owner)
    return path


def keep(path: Path, text: str) -> str:
    """What the file holds; ``text`` if it is new."""
    if not path.exists():
        write_secret(path, text)
    return path.read_text()


def give(path: Path, owner: int) -> None:
    """To its service, whole: half a job of this program's is done again at the next start."""
    for file in path.iterdir():
        os.chown(file, owner, owner)


def main() -> None:
    SECRETS.chmod(0o711)
    trust = init_trust(SECRETS / "trust")
    password = keep(folder(SECRETS / "postgres", USERS["postgres"]) / "password", secrets.token_urlsafe(32))
    for service in SERVICES:
        own = folder(SECRETS / service, USERS[service])
        if not (own / "nats.creds").exists():
            save_credentials(own / "nats.creds", trust.new_credentials(service, service))
        if service == "manager":
            token = keep(own / "admin.token", secrets.token_urlsafe(32) + "\n").strip()
            context = {"url": "http://127.0.0.1:8080", "token": token}  # for `ces` in the manager's own container
            keep(own / "context.json", json.dumps(context))
            keep(own / "agent-signing-key.json", trust.signing_key_file(AGENT).read_text())
            keep(own / "revocation-key.json", trust.revocation_key_file.read_text())
            keep(own / "pgpass", f"*:*:*:*:{password}\n")
        give(own, USERS[service])
    folder(NATS, USERS["nats"])
    folder(NATS / "store", USERS["nats"])
    config = server_config(trust, store_dir=NATS / "store", host="0.0.0.0")  # noqa: S104  its own container's
    write_secret(NATS / "nats-server.conf", config + "http: 127.0.0.1:8222\n")
    give(NATS, USERS["nats"])
    print("secrets and configuration are in place")


if __name__ == "__main__":
    main()

"""Make what a cluster needs before its first start: trust, credentials, tokens, the NATS configuration.

Runs as root before anything else, at every start; what is there is kept. /services/<service> is a volume that this
service alone mounts, as /secrets/<service>. The trust stays in /secrets, which no service mounts.
"""

import json
import os
import secrets
import shutil
from pathlib import Path

from ces_common.natsauth import AGENT, SERVICES, init_trust, save_credentials, server_config
from ces_common.natsauth.secret_files import new_key, write_secret

SECRETS = Path("/secrets")
OWN = Path("/services")
NATS = Path("/nats")
# As in the images' Dockerfiles; nats is started with its number in docker-compose.yml.
USERS = {
    "manager": 10011,
    "migrate": 10011,
    "scheduler": 10012,
    "compute-ctl": 10013,
    "network-ctl": 10014,
    "nats": 10015,
    "postgres": 0,
    "bootstrap": 0,
}


def folder(path: Path, owner: int) -> Path:
    path.mkdir(exist_ok=True, mode=0o700)
    path.chmod(0o700)
    os.chown(path, owner, owner)
    return path


def own_folder(service: str) -> Path:
    """The service's volume, with what a stack of before, which had one volume for all, made for it."""
    own = folder(OWN / service, USERS[service])
    former = SECRETS / service
    if former.is_dir():
        for file in former.iterdir():
            keep(own / file.name, file.read_text())
        shutil.rmtree(former)
    return own


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
    SECRETS.chmod(0o700)
    trust = init_trust(SECRETS / "trust")
    own = {service: own_folder(service) for service in USERS if service != "nats"}
    for service in SERVICES:
        if not (own[service] / "nats.creds").exists():
            save_credentials(own[service] / "nats.creds", trust.new_credentials(service, service))
    password = keep(own["postgres"] / "password", secrets.token_urlsafe(32))
    token = keep(own["manager"] / "admin.token", secrets.token_urlsafe(32) + "\n").strip()
    context = {"url": "http://127.0.0.1:8080", "token": token}  # for `ces` in the manager's own container
    write_secret(own["manager"] / "context.json", json.dumps(context))
    write_secret(own["bootstrap"] / "admin.token", token)
    keep(own["manager"] / "agent-signing-key.json", trust.signing_key_file(AGENT).read_text())
    keep(own["manager"] / "revocation-key.json", trust.revocation_key_file.read_text())
    keep(own["manager"] / "secrets.key", new_key())
    for service in ("manager", "migrate"):
        keep(own[service] / "pgpass", f"*:*:*:*:{password}\n")
    for service, path in own.items():
        give(path, USERS[service])
    folder(NATS, USERS["nats"])
    folder(NATS / "store", USERS["nats"])
    config = server_config(trust, store_dir=NATS / "store", host="0.0.0.0")  # noqa: S104  its own container's
    write_secret(NATS / "nats-server.conf", config + "http: 127.0.0.1:8222\n")
    give(NATS, USERS["nats"])
    print("secrets and configuration are in place")


if __name__ == "__main__":
    main()

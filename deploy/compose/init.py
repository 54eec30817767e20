"""Make what a cluster needs before its first start: trust, credentials, certificates, tokens, the NATS configuration.

Runs as root before anything else, at every start; what is there is kept. /services/<service> is a volume that this
service alone mounts, as /secrets/<service>. The trust stays in /secrets, which no service mounts.

With CES_REGION the cluster is a region of that name: /region holds what the hub gave to it (hub.py), CES_HUB_URL says
where its server finds the hub (tls://HOST:7422), and there is one service more, the federation.
"""

import json
import os
import re
import secrets
import shutil
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ces_common.natsauth import AGENT, SERVICES, init_trust, save_credentials, server_config
from ces_common.natsauth.jwt import claims_of
from ces_common.natsauth.regions import Leaf, init_region, wire_credentials
from ces_common.natsauth.secret_files import new_key, write_secret
from ces_common.natsauth.trust import Trust
from ces_common.tls.certificates import Authority, init_authority, renew
from ces_common.tls.pins import pinned, secret_of

SECRETS = Path("/secrets")
OWN = Path("/services")
AGENTS = Path("/agents")  # each agent's own state folder
NATS = Path("/nats")
REGION = Path("/region")
TLS = Path("/tls")  # the authority, and the API's certificate; the manager's alone
METRICS = Path("/metrics")  # what Prometheus needs to ask everybody, and nothing else
PROMETHEUS = 65534  # its image's user
NATS_TLS = Path("/nats-tls")  # written by the manager, read by NATS
FIRST = timedelta(days=1)  # what NATS starts with; the manager makes a lasting one
# As in the images' Dockerfiles; nats is started with its number in docker-compose.yml.
USERS = {
    "manager": 10011,
    "migrate": 10011,
    "scheduler": 10012,
    "compute-ctl": 10013,
    "network-ctl": 10014,
    "federation": 10016,
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


def certify(own: dict[str, Path]) -> Authority:
    """The authority, what NATS starts with, and for every service what to check NATS by."""
    folder(TLS, USERS["manager"])
    authority = init_authority(TLS)
    give(TLS, USERS["manager"])
    os.chown(NATS_TLS, USERS["manager"], USERS["nats"])
    NATS_TLS.chmod(0o2750)  # what the manager writes there is NATS's group's
    if not NATS_TLS.stat().st_mode & stat.S_ISGID:  # dropped in silence, and NATS could read no renewed certificate
        raise SystemExit("init needs the capability FSETID: the group of NATS's certificate cannot be kept")
    served = NATS_TLS / "nats.pem"
    renew(served, authority, ["nats"], FIRST, datetime.now(UTC), mode=0o640)
    if served.exists():  # not where the authority's key is kept elsewhere, and nobody has brought it along yet
        os.chown(served, USERS["manager"], USERS["nats"])
    for service in own.keys() & set(SERVICES):
        write_secret(own[service] / "authority.pem", authority.pem)
    return authority


def metrics_tokens(own: dict[str, Path], authority: Authority) -> None:
    """A token for the manager, one for the other services, which answer in the clear, and one for each agent: whoever
    has a device learns to read no other's metrics."""
    folder(METRICS, PROMETHEUS)
    for service in own.keys() & set(SERVICES):
        shared = METRICS / f"{'manager' if service == 'manager' else 'services'}.token"
        write_secret(own[service] / "metrics.token", keep(shared, secrets.token_urlsafe(32)))
    for agent in sorted(AGENTS.iterdir()):
        write_secret(agent / "metrics.token", keep(METRICS / f"{agent.name}.token", secrets.token_urlsafe(32)))
    write_secret(METRICS / "authority.pem", authority.pem)
    give(METRICS, PROMETHEUS)


def meaning(config: str) -> str:
    """What a configuration of NATS says, but for the moments at which its JWTs were made. A NATS that runs reads no
    certificate again while its file names another operator's JWT, so one that says the same stays."""

    def claims(found: re.Match[str]) -> str:
        return json.dumps({key: value for key, value in claims_of(found[0]).items() if key not in ("iat", "jti")})

    return re.sub(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+", claims, config)


def join_hub(own: dict[str, Path], trust: Trust, region: str, hub: str) -> Leaf:
    """Give the federation its credentials for the wire, and say how the region's server takes part."""
    account, token = init_region(trust, region)
    if not (own["federation"] / "wire.creds").exists():
        save_credentials(own["federation"] / "wire.creds", wire_credentials(trust, account, region))
    write_secret(own["federation"] / "regions.json", (REGION / "regions.json").read_text())
    for name in ("hub.creds", "hub.pem"):
        write_secret(NATS / name, (REGION / name).read_text())
    return Leaf(region, (hub,), NATS / "hub.creds", account, token, NATS / "hub.pem")


def main() -> None:
    SECRETS.chmod(0o700)
    trust, region = init_trust(SECRETS / "trust"), os.environ.get("CES_REGION")
    absent = {"nats"} if region else {"nats", "federation"}
    own = {service: own_folder(service) for service in USERS if service not in absent}
    for service in own.keys() & set(SERVICES):
        if not (own[service] / "nats.creds").exists():
            save_credentials(own[service] / "nats.creds", trust.new_credentials(service, service))
    authority = certify(own)
    password = keep(own["postgres"] / "password", secrets.token_urlsafe(32))
    secret = secret_of(keep(own["manager"] / "admin.token", secrets.token_urlsafe(32)).strip())
    token = pinned(secret, authority.fingerprint)
    write_secret(own["manager"] / "admin.token", token + "\n")
    # For `ces` in the manager's own container.
    context = {"url": "https://127.0.0.1:8080", "token": token, "ca": "/secrets/manager/authority.pem"}
    write_secret(own["manager"] / "context.json", json.dumps(context))
    write_secret(own["bootstrap"] / "admin.token", token)
    keep(own["manager"] / "agent-signing-key.json", trust.signing_key_file(AGENT).read_text())
    write_secret(own["manager"] / "revocation-key.json", trust.revocation_key_file.read_text())
    keep(own["manager"] / "secrets.key", new_key())
    for service in ("manager", "migrate"):
        keep(own[service] / "pgpass", f"*:*:*:*:{password}\n")
    metrics_tokens(own, authority)
    folder(NATS, USERS["nats"])
    folder(NATS / "store", USERS["nats"])
    leaf = join_hub(own, trust, region, os.environ["CES_HUB_URL"]) if region else None
    for service, path in own.items():
        give(path, USERS[service])
    listening = "0.0.0.0"  # noqa: S104  its own container's
    served = NATS_TLS / "nats.pem"
    config = server_config(trust, store_dir=NATS / "store", host=listening, certificate=served, leaf=leaf)
    config += "http: 127.0.0.1:8222\n"
    file = NATS / "nats-server.conf"
    if not file.exists() or meaning(file.read_text()) != meaning(config):
        write_secret(file, config)
    give(NATS, USERS["nats"])
    print("secrets and configuration are in place")


if __name__ == "__main__":
    main()

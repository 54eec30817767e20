"""Bring nodes and links into a new cluster: a one-time token for every node that has not joined, the topology; and let
the auditor in.

Runs at every start, before the agents; a cluster that has its nodes and links stays as it is. /agents/<node> is that
agent's own state folder, so that each sees its own token only; /auditor holds the auditor's, where there is one.
"""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ces_client import ApiError, Client, Context
from ces_client.files import load_topology
from ces_common.messages.identities import Identity
from ces_common.natsauth.secret_files import write_secret
from ces_common.roles import Role

AGENTS = Path("/agents")
AUDITOR = Path("/auditor/context.json")
TOKEN = Path("/secrets/bootstrap/admin.token")
AUDITOR_USER = 10016  # as in docker-compose.yml
LASTS = timedelta(days=730)


def admit_agents(client: Client) -> None:
    known = {node.name for node in client.nodes.list()}
    for folder in sorted(AGENTS.iterdir()):
        credentials = folder / "nats.creds"
        if folder.name in known and credentials.exists():
            continue
        credentials.unlink(missing_ok=True)  # of a cluster that is gone
        write_secret(folder / "join-token", client.nodes.create_token(folder.name).token)
        print(f"{folder.name} may join")


def admit_auditor(client: Client) -> None:
    """An access token of its own, which another one replaces when half of its time is over, or where it is of a former
    version, which gave it an operator's role."""
    now, former = datetime.now(UTC), auditor_now(client.url)
    ends = None if former is None or former.role is not Role.AUDITOR else former.expires_at
    if ends is not None and ends - now > LASTS / 2:
        return
    name = f"auditor-{now:%Y%m%d-%H%M%S}"
    made = client.tokens.create(name, Role.AUDITOR, lasts_s=int(LASTS.total_seconds()))
    write_secret(AUDITOR, json.dumps({"url": client.url, "token": made.token}))
    os.chown(AUDITOR, AUDITOR_USER, AUDITOR_USER)
    if former is not None:
        client.tokens.revoke(former.name)
    print(f"{name} may audit")


def auditor_now(url: str) -> Identity | None:
    """Whose token the auditor has, if it is good."""
    if not AUDITOR.exists():
        return None
    try:
        with Client.from_context(Context(url, json.loads(AUDITOR.read_text())["token"])) as client:
            return client.whoami()
    except ApiError:  # of a cluster that is gone
        return None


def main() -> None:
    with Client.from_context(Context(os.environ["CES_URL"], TOKEN.read_text().strip())) as client:
        if AUDITOR.parent.is_dir():
            admit_auditor(client)
        admit_agents(client)
        wires = os.environ.get("CES_TOPOLOGY")  # a single node has none
        if wires and not client.topology.get().links:
            topology = load_topology(Path(wires))
            print(f"{len(client.topology.put(topology).links)} links")


if __name__ == "__main__":
    main()

"""Bring nodes and links into a new cluster: a one-time token for every node that has not joined, the topology.

Runs at every start, before the agents; a cluster that has its nodes and links stays as it is. /agents/<node> is that
agent's own state folder, so that each sees its own token only.
"""

import os
from pathlib import Path

from ces_client import Client, Context
from ces_client.files import load_topology
from ces_common.natsauth.secret_files import write_secret

AGENTS = Path("/agents")
TOKEN = Path("/secrets/bootstrap/admin.token")


def main() -> None:
    with Client.from_context(Context(os.environ["CES_URL"], TOKEN.read_text().strip())) as client:
        known = {node.name for node in client.nodes.list()}
        for folder in sorted(AGENTS.iterdir()):
            credentials = folder / "nats.creds"
            if folder.name in known and credentials.exists():
                continue
            credentials.unlink(missing_ok=True)  # of a cluster that is gone
            write_secret(folder / "join-token", client.nodes.create_token(folder.name).token)
            print(f"{folder.name} may join")
        if not client.topology.get().links:
            topology = load_topology(Path(os.environ["CES_TOPOLOGY"]))
            print(f"{len(client.topology.put(topology).links)} links")


if __name__ == "__main__":
    main()

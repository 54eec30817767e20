"""Where the tasks of a pipeline find each other."""

from __future__ import annotations

from pathlib import Path

from ces_workloads.peers import Peer
from ces_workloads.pipeline.connections import address_of


def test_a_peer_is_where_its_name_leads_and_else_where_it_was(tmp_path: Path) -> None:
    peer, hosts = Peer(rank=1, task="relay-0", address="10.77.1.2", port=29500, node="n1"), tmp_path / "hosts"
    assert address_of(peer, hosts) == "10.77.1.2"
    hosts.write_text("127.0.0.1\tlocalhost\n10.77.3.2\trelay-00\n10.77.2.2\trelay-0\n")
    assert address_of(peer, hosts) == "10.77.2.2"

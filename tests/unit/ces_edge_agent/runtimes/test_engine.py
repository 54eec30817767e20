"""What an agent works out of the engine: its own container, where folders are, names."""

from __future__ import annotations

from pathlib import Path

from ces_edge_agent.runtimes.engine import Engine, own_container, source_of

CONTAINER = "0123456789abcdef" * 4
INSIDE = f"""\
2077 1993 0:415 / / ro,relatime master:1 - overlay overlay rw,lowerdir=/x
2090 2077 8:1 /var/lib/docker/volumes/p_n1/_data /var/lib/ces-agent rw,relatime master:1 - ext4 /dev/sda1 rw
2091 2077 8:1 /var/lib/docker/containers/{CONTAINER}/resolv.conf /etc/resolv.conf rw,relatime - ext4 /dev/sda1 rw
2092 2077 8:1 /var/lib/docker/containers/{CONTAINER}/hostname /etc/hostname rw,relatime - ext4 /dev/sda1 rw
"""
OUTSIDE = f"""\
25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
412 25 0:53 / /var/lib/docker/containers/{CONTAINER}/mounts/shm rw,nosuid shared:9 - tmpfs shm rw
"""


def test_an_agent_in_a_container_knows_which_it_is() -> None:
    assert own_container(INSIDE) == CONTAINER
    assert own_container(OUTSIDE) is None


def test_where_the_engine_finds_what_an_agent_in_a_container_mounts() -> None:
    mounts = [
        {"Source": "/var/lib/docker/volumes/p_n1/_data", "Destination": "/var/lib/ces-agent"},
        {"Source": "/srv/leases", "Destination": "/var/lib/ces-agent/lease"},
        {"Source": "", "Destination": "/tmp"},
    ]
    assert source_of(Path("/var/lib/ces-agent/logs"), mounts) == "/var/lib/docker/volumes/p_n1/_data/logs"
    assert source_of(Path("/var/lib/ces-agent/lease"), mounts) == "/srv/leases"
    assert source_of(Path("/var/lib/ces-agents/lease"), mounts) is None
    assert source_of(Path("/tmp/state"), mounts) is None


def test_names_tell_clusters_and_nodes_apart() -> None:
    assert Engine(None, "a", "b").name("x.0") == "ces.a.b.x.0"
    assert Engine(None, "a", "b").labels == {"ces.cluster": "a", "ces.node": "b"}

"""Sandboxes of the process runtime, without namespaces."""

from __future__ import annotations

from pathlib import Path

from ces_common.messages.desired import Endpoint
from ces_edge_agent.runtimes.sandboxes import Sandboxes


def endpoint(**hosts: str) -> Endpoint:
    return Endpoint(allocation="a1", job="j.1", address="10.9.0.2", hostname="t0", hosts=hosts)


def test_a_sandbox_brings_its_hosts_file_up_to_date_in_place(tmp_path: Path) -> None:
    sandboxes = Sandboxes(tmp_path, "n0", isolate=False)
    assert sandboxes.ensure(endpoint(t0="10.9.0.2")) is None
    inode = sandboxes.hosts("a1").stat().st_ino
    sandboxes.ensure(endpoint(t0="10.9.0.2", t1="10.9.1.2"))
    assert "t1" in sandboxes.hosts("a1").read_text()
    assert sandboxes.hosts("a1").stat().st_ino == inode  # running workers have it mounted
    assert Sandboxes(tmp_path, "n0", isolate=False).all() == {"a1": None}

"""``ces node install`` on a bare Debian with systemd and sshd: until it is a ready node, and until nothing is left."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import bare_host
import pytest
from ces_command import ces
from doc_pages import ROOT
from fault_cluster import running, star

from ces_client.cli import session
from ces_testbed.spec import LOCALHOST

pytestmark = [pytest.mark.needs("engine", "ssh"), pytest.mark.timeout(1200)]
READY_S = 120.0
UNIT = ROOT / "deploy/systemd/ces-agent.service"
PLACES = "/opt/ces /etc/ces /var/lib/ces-agent /etc/systemd/system/ces-agent.service"


class CommandLines:
    """All that any program on this machine was called with while it watches, as its owner sees it."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.seen.add(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
                except OSError:
                    continue

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


def names(files: str) -> set[str]:
    return {line.split()[0] for line in files.splitlines()}


def test_from_a_bare_host_to_a_node_and_back(tmp_path, monkeypatch):
    tokens: list[str] = []
    with (
        running("install", tmp_path / "cluster", star(1), network="none") as world,
        bare_host.running("node", tmp_path, monkeypatch) as host,
    ):
        layout = world.cluster.layout
        monkeypatch.setenv("CES_URL", world.cluster.url)
        monkeypatch.setenv("CES_TOKEN", world.cluster.files.token.read_text().strip())
        monkeypatch.setenv("CES_CONTEXT", str(tmp_path / "context.json"))

        def connect(**_):
            client = world.cluster.client()
            make = client.nodes.create_token

            def create_token(*given, **more):
                made = make(*given, **more)
                tokens.append(made.token)
                return made

            client.nodes.create_token = create_token
            return client

        monkeypatch.setattr(session, "connect", connect)
        words = ["node", "install", host.target, "--name", "roof1", "--manager", world.cluster.url]
        words += [
            "--nats",
            f"{LOCALHOST}:{layout.ports.nats}",
            "--set",
            "network=none",
            "--wheels",
            tmp_path / "wheels",
        ]

        def install(*more, code=0):
            return ces(*words, *more, "-o", "json", code=code)

        def fault(*more):
            return json.loads(install(*more, code=1).stdout)["error"]

        bare = host.files()
        install("--dry-run", "--host-key", host.fingerprint())  # wheels are fetched; from then on no index is needed
        assert host.files() == bare
        assert "host-key-unknown" in fault()["detail"]

        with CommandLines() as lines:
            began = time.monotonic()
            done = json.loads(install("--host-key", host.fingerprint()).stdout)
            took = time.monotonic() - began
        assert done["changed"]
        assert took < READY_S
        assert world.client.nodes.get("roof1").state == "ready"
        (token,) = tokens
        secret = token.partition(".")[0]
        assert not [line for line in lines.seen if secret in line]
        assert any("ces_edge_agent" in line for line in lines.seen)  # so it has looked at the right programs
        assert secret not in host.sh("journalctl --no-pager")
        assert host.sh(f"grep -rlF '{secret}' /etc /opt /var /root /tmp 2>/dev/null || true") == ""
        assert host.sh("cat /etc/systemd/system/ces-agent.service") == UNIT.read_text()

        placed, agent = host.files(), host.sh("systemctl show -P MainPID ces-agent")
        assert not json.loads(install().stdout)["changed"]
        assert host.files() == placed
        assert host.sh("systemctl show -P MainPID ces-agent") == agent
        assert len(tokens) == 1

        nobody = f"{LOCALHOST}:1"
        told = fault("--nats", nobody, "--manager", f"https://{nobody}", "--name", "roof2")
        assert told["detail"] == "another-node, manager, nats"
        assert fault("--set", "nonsense=1")["detail"] == "settings"
        assert host.sh("systemctl is-active ces-agent") == "active\n"  # the one of before
        host.sh("mv /root/.ssh /root/.ssh-away")
        assert fault()["detail"] == "login"
        host.sh("mv /root/.ssh-away /root/.ssh && systemctl stop ssh")
        assert fault()["detail"] == "refused"
        host.sh("systemctl start ssh")
        host.new_host_key()
        assert fault("--host-key", host.fingerprint())["detail"] == "host-key-changed"
        host.known_hosts.unlink()

        assert json.loads(install("--undo", "--host-key", host.fingerprint()).stdout)["changed"]
        assert host.sh(f"ls -d {PLACES} 2>/dev/null || true") == ""
        assert "roof1" not in {node.name for node in world.client.nodes.list()}
        assert "ces_edge_agent" not in host.sh("cat /proc/[0-9]*/cmdline")
        assert names(host.files()) == names(bare)

"""A bare Debian with systemd and sshd becomes a ready node, named by an operator or applying by itself, until nothing
is left."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bare_host
import pytest
from bare_host import BareHost
from ces_command import ces
from doc_pages import ROOT, blocks
from fault_cluster import FaultCluster, running, star

from ces_client.cli import session
from ces_testbed.spec import LOCALHOST

pytestmark = [pytest.mark.needs("engine", "ssh"), pytest.mark.timeout(600)]
READY_S = 120.0
UNIT = ROOT / "deploy/systemd/ces-agent.service"
PAGE = ROOT / "docs/node-install.md"
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


@dataclass
class Site:
    """A cluster, a device beside it, and the options that lead from the one to the other."""

    world: FaultCluster
    host: BareHost
    options: list[Any]

    def install(self, *more, code=0):
        return ces(
            "node", "install", self.host.target, "--name", "roof1", *self.options, *more, "-o", "json", code=code
        )

    def fault(self, *more) -> str:
        return json.loads(self.install(*more, code=1).stdout)["error"]["detail"]

    def state(self) -> str:
        return self.world.client.nodes.get("roof1").state


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("install")
    with (
        pytest.MonkeyPatch.context() as patch,
        running("install", folder / "cluster", star(1), network="none", settings={"CES_MAX_APPLICANTS": "4"}) as world,
        bare_host.running("node", folder, patch) as host,
    ):
        url = world.cluster.url
        patch.setenv("CES_URL", url)
        patch.setenv("CES_TOKEN", world.cluster.files.token.read_text().strip())
        patch.setenv("CES_CONTEXT", str(folder / "context.json"))
        nats = f"{LOCALHOST}:{world.cluster.layout.ports.nats}"
        options = ["--manager", url, "--nats", nats, "--set", "network=none", "--wheels", folder / "wheels"]
        yield Site(world, host, options)


def names(files: str) -> set[str]:
    return {line.split()[0] for line in files.splitlines()}


def test_from_a_bare_host_to_a_node_and_back(site, monkeypatch):
    host, install, fault, tokens = site.host, site.install, site.fault, list[str]()

    def connect(**_):
        client = site.world.cluster.client()
        make = client.nodes.create_token

        def create_token(*given, **more):
            made = make(*given, **more)
            tokens.append(made.token)
            return made

        client.nodes.create_token = create_token
        return client

    monkeypatch.setattr(session, "connect", connect)
    bare = host.files()
    install("--dry-run", "--host-key", host.fingerprint())  # wheels are fetched; from then on no index is needed
    assert host.files() == bare
    assert "host-key-unknown" in fault()

    with CommandLines() as lines:
        began = time.monotonic()
        ran = install("--host-key", host.fingerprint())
        took = time.monotonic() - began
    assert json.loads(ran.stdout)["changed"]
    assert took < READY_S
    assert site.state() == "ready"
    (token,) = tokens
    secret = token.partition(".")[0]
    assert not [line for line in lines.seen if secret in line]
    assert any("ces_edge_agent" in line for line in lines.seen)  # so it has looked at the right programs
    assert secret not in ran.output
    assert secret not in host.sh("journalctl --no-pager")
    logs = [path.read_text(errors="replace") for path in site.world.cluster.files.logs.iterdir()]
    assert logs
    assert not [log for log in logs if secret in log]
    assert host.sh(f"grep -rlF '{secret}' /etc /opt /var /root /tmp 2>/dev/null || true") == ""
    assert host.sh("cat /etc/systemd/system/ces-agent.service") == UNIT.read_text()

    placed, agent = host.files(), host.sh("systemctl show -P MainPID ces-agent")
    assert not json.loads(install().stdout)["changed"]
    assert host.files() == placed
    assert host.sh("systemctl show -P MainPID ces-agent") == agent
    assert len(tokens) == 1

    nobody = f"{LOCALHOST}:1"
    told = fault("--nats", nobody, "--manager", f"https://{nobody}", "--name", "roof2")
    assert told == "another-node, manager, nats"
    host.sh("mv /root/.ssh /root/.ssh-away")
    assert fault() == "login"
    host.sh("mv /root/.ssh-away /root/.ssh && systemctl stop ssh")
    assert fault() == "refused"
    host.sh("systemctl start ssh")
    host.new_host_key()
    assert fault("--host-key", host.fingerprint()) == "host-key-changed"
    host.known_hosts.unlink()

    assert json.loads(install("--undo", "--host-key", host.fingerprint()).stdout)["changed"]
    assert host.sh(f"ls -d {PLACES} 2>/dev/null || true") == ""
    assert "roof1" not in {node.name for node in site.world.client.nodes.list()}
    assert "ces_edge_agent" not in host.sh("cat /proc/[0-9]*/cmdline")
    assert names(host.files()) == names(bare)


def test_a_device_applies_and_is_accepted(site):
    """By the line that the page gives for it, but for where the manager and sshd are."""
    host, client = site.host, site.world.client
    (line,) = [line for text in blocks(PAGE, "sh") for line in text.splitlines() if line.startswith("curl ")]
    line = line.replace(r"{\"name\"", rf"{{\"port\": {host.port}, \"name\"")
    told = json.loads(host.sh(f"CES_URL={site.world.cluster.url}\n{line}"))
    assert (told["state"], told["address"], told["host_keys"]) == ("applied", LOCALHOST, [host.fingerprint()])
    row = next(row for row in ces("get", "nodes").stdout.splitlines() if row.startswith("roof1"))
    assert row.split()[1] == "applied"
    accept = ["node", "accept", "roof1", *site.options, "-o", "json"]
    key = host.sh("cat /etc/ssh/ssh_host_ed25519_key.pub").split()
    host.known_hosts.write_text(f"[{LOCALHOST}]:{host.port} {key[0]} {key[1]}\n")
    told = json.loads(ces(*accept, code=1).stdout)["error"]
    assert told["detail"] == "host-key-unconfirmed"
    assert f"your known hosts have as [{LOCALHOST}]:{host.port}" in told["errors"][0]["problem"]
    host.known_hosts.unlink()
    assert "host-key-unknown" in json.loads(ces(*accept, code=1).stdout)["error"]["detail"]
    done = json.loads(ces(*accept, "--host-key", host.fingerprint()).stdout)
    assert done["changed"]
    assert site.state() == "ready"
    assert list(client.applicants.list()) == []
    assert not json.loads(site.install().stdout)["changed"]  # it is as if it had been installed

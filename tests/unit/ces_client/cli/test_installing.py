"""``ces node install`` as it is called."""

from __future__ import annotations

import json

import pytest
from ces_command import ces
from fake_device import KEY, UNKNOWN, put_on_path

from ces_client.installing import steps
from ces_common.messages.identities import Identity
from ces_common.roles import Role

WORDS = ("node", "install", "root@roof", "--name", "roof1")


@pytest.fixture(autouse=True)
def device(connected, samples, tmp_path, monkeypatch):
    monkeypatch.setenv("CES_URL", "https://manager:8080")
    monkeypatch.setenv("CES_TOKEN", "secret")
    monkeypatch.setattr(steps, "agent_files", lambda *_: [])
    connected.on("GET", "whoami", Identity(name="ops", role=Role.OPERATOR, tenants=[]))
    connected.on("GET", "nodes", [])
    return put_on_path(tmp_path / "ssh", monkeypatch)


def test_what_would_be_done():
    lines = ces(*WORDS, "--dry-run").stdout.splitlines()
    assert lines[0] == "would build /opt/ces/venv from wheels"
    told = json.loads(ces(*WORDS, "--dry-run", "-o", "json").stdout)
    assert (told["node"], told["changed"], len(told["steps"])) == ("roof1", False, 5)


def test_nothing_to_undo():
    assert "nothing to do" in ces(*WORDS, "--undo").stdout


def test_a_fault_names_step_remedy_and_ends_with_one(device):
    device.befall(facts={"systemd": False})
    said = ces(*WORDS, code=1).stderr
    assert "root@roof stays as it is" in said
    assert "preflight (systemd): systemd does not run there" in said
    assert "remedy: the agent is a unit" in said
    error = json.loads(ces(*WORDS, "-o", "json", code=1).stdout)["error"]
    assert error["type"] == "ces:node-install"
    assert error["errors"][0]["field"] == "preflight (systemd)"


def test_without_a_terminal_nobody_is_asked(device):
    device.befall(host_says=UNKNOWN)
    said = ces(*WORDS, code=1).stderr
    assert "host-key-unknown" in said
    assert not (device.folder / "known_hosts").exists()
    assert KEY.split()[2] not in said


@pytest.mark.parametrize(
    ("more", "field"),
    [
        (("--host-key", "x"), "--host-key"),
        (("--set", "join_token=x"), "--set"),
        (("--manager", "manager"), "--manager"),
        (("--nats", ":"), "--nats"),
        (("--jump", "-oProxyCommand=id"), "--jump"),
        (("--name", "roof 1"), "--name"),
    ],
)
def test_wrong_input_names_its_option(device, more, field):
    assert field in ces(*WORDS, *more, code=2).stderr
    assert device.calls() == []


def test_a_local_clusters_address_is_no_devices(monkeypatch):
    monkeypatch.setenv("CES_URL", "https://127.0.0.1:8080")
    assert "no device reaches it there" in ces(*WORDS, code=2).stderr

"""``ces node install`` as it is called."""

from __future__ import annotations

import json

import httpx
import pytest
from ces_command import ces
from fake_device import CHANGED, FINGERPRINT, KEY, UNKNOWN, put_on_path, sent_files

from ces_client.installation import steps
from ces_client.installation.faults import REMEDIES
from ces_common.messages.identities import Identity
from ces_common.messages.membership import JoinToken, RefusedApplicants
from ces_common.roles import Role

WORDS = ("node", "install", "root@roof", "--name", "roof1")


@pytest.fixture(autouse=True)
def device(connected, samples, tmp_path, monkeypatch):
    monkeypatch.setenv("CES_URL", "https://manager:8080")
    monkeypatch.setenv("CES_TOKEN", "secret")
    monkeypatch.setattr(steps, "agent_files", lambda *_: [])
    connected.on("GET", "whoami", Identity(name="ops", role=Role.OPERATOR, tenants=[]))
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


FAULTS = {
    "unreachable": {"host_says": "ssh: connect to host roof port 22: Connection timed out\n"},
    "host-key-changed": {"host_says": CHANGED},
    "login": {"says": [255, "root@roof: Permission denied (publickey).\n"]},
    "root": {"says": [1, "sudo: a password is required\n"]},
    "no-python": {"says": [1, "ces: no python3\n"]},
    "python": {"facts": {"python": [3, 9, 2]}},
    "architecture": {"facts": {"machine": "armv7l", "bits": 32}},
    "systemd": {"facts": {"systemd": False}},
    "disk": {"facts": {"free": {"/opt": 1 << 20, "/var/lib": 1 << 40, "/etc": 1 << 40}}},
    "clock": {"facts": {"clock": 0.0}},
    "manager": {"facts": {"unreached": {"manager": "manager:8080: timed out"}}},
    "nats": {"facts": {"unreached": {"nats": "manager:4222: Connection refused"}}},
    "kernel": {"facts": {"modules": {"sch_htb": "modprobe: not found"}}},
    "join": {"refused": True, "journal": ["this join token has expired"]},
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_on_the_console_with_what_to_do(device, connected, samples, tmp_path, monkeypatch, name):
    monkeypatch.setattr(steps, "agent_files", lambda *_: sent_files(tmp_path))
    token = JoinToken(token="ces-join-secret", node="roof1", expires_at=samples.submitted)
    connected.on("POST", "nodes/tokens", token, status=201)
    device.befall(**FAULTS[name])
    said = ces(*WORDS, code=1).stderr
    assert f"({name}): " in said
    assert f"remedy: {REMEDIES[name].partition('{')[0].partition(';')[0][:30]}" in said
    assert token.token not in said
    assert ("this join token has expired" in said) is (name == "join")
    assert bool(connected.sent("POST", "nodes/tokens")) is (name == "join"), "no token is made for what cannot be"


def test_a_device_that_has_applied_is_accepted(device, connected, samples):
    connected.on("GET", "applicants", [samples.applicant("roof1", host_keys=[FINGERPRINT]), samples.applicant("n2")])
    assert "host-key-unconfirmed" in ces("node", "accept", "roof1", code=1).stderr
    done = ces("node", "accept", "roof1", "--host-key", FINGERPRINT, "--dry-run")
    assert FINGERPRINT in done.stderr
    assert "n2" not in done.stderr
    assert done.stdout.startswith("would build /opt/ces/venv")
    (target,) = {call[call.index("--") + 1] for call in device.calls() if "--" in call}
    assert target == "ssh://root@192.0.2.11:22"
    assert connected.sent("DELETE", "applicants/roof1") == []
    device.befall(host_says=UNKNOWN)
    assert "host-key-unknown" in ces("node", "accept", "roof1", code=1).stderr
    assert ces("node", "accept", "roof1", "--host-key", FINGERPRINT, "--dry-run").stdout
    assert "it was 192.0.2.11" in ces("node", "accept", "roof1", "pi@roof", "--from", "192.0.2.66", code=2).stderr
    ces("node", "accept", "roof1", "pi@roof", "--host-key", FINGERPRINT, "--dry-run")
    assert device.calls()[-1][device.calls()[-1].index("--") + 1] == "pi@roof"


def test_an_applicant_whose_key_is_another_is_not_gone_to(device, connected, samples):
    connected.on("GET", "applicants", [samples.applicant("roof1")])
    said = ces("node", "accept", "roof1", code=1).stderr
    assert "host key (host-key-claimed)" in said
    assert "ces node refuse roof1" in said
    assert {call[-1] for call in device.calls()} == {"true"}, "nothing but its key was looked at"


def test_an_applicant_that_is_a_node_already_is_off_the_list(device, connected, samples, tmp_path, monkeypatch):
    monkeypatch.setattr(steps, "agent_files", lambda *_: sent_files(tmp_path))
    connected.on("GET", "applicants", [samples.applicant("roof1", host_keys=[FINGERPRINT])])
    token = JoinToken(token="ces-join-secret", node="roof1", expires_at=samples.submitted)
    connected.on("POST", "nodes/tokens", token, status=201)
    connected.on("DELETE", "applicants/roof1", RefusedApplicants(name="roof1", addresses=["192.0.2.11"]))
    connected.on("GET", "nodes/roof1", lambda _: node(device, samples))
    accept = ("node", "accept", "roof1", "--host-key", FINGERPRINT)
    assert ces(*accept).stdout.startswith("roof1 is ready")
    assert connected.sent("DELETE", "applicants/roof1") == [], "the manager does so where it joins"
    assert "nothing to do" in ces(*accept).stdout
    assert len(connected.sent("DELETE", "applicants/roof1")) == 1
    connected.on("DELETE", "applicants/roof1", samples.problem(404, "Not found"))
    assert "nothing to do" in ces(*accept).stdout


def node(device, samples):
    if not (device.folder / "token").exists():
        return samples.problem(404, "Not found")
    return httpx.Response(200, json=samples.node("roof1").model_dump(mode="json"))


def test_an_applicant_is_refused(connected, samples):
    connected.on("DELETE", "applicants/roof1", RefusedApplicants(name="roof1", addresses=["192.0.2.11"]))
    assert ces("node", "refuse", "roof1").stdout == "roof1 is refused; it had applied from 192.0.2.11\n"
    assert json.loads(ces("node", "refuse", "roof1", "-o", "json").stdout)["addresses"] == ["192.0.2.11"]
    connected.on("DELETE", "applicants/roof1", samples.problem(404, "Not found", "no device has applied as roof1"))
    assert "no device has applied as roof1" in ces("node", "refuse", "roof1", code=2).stderr


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

"""Installations from the first step to the last, over an ``ssh`` that goes to a folder; and what may go wrong."""

from __future__ import annotations

import itertools
import json

import pytest
from fake_device import CHANGED, FINGERPRINT, KEY, UNKNOWN, sent_files
from operator_side import SECRET, Here

from ces_client.errors import ApiError, BadInput
from ces_client.installation import steps
from ces_client.installation.faults import InstallFailed
from ces_client.installation.ssh import Ssh
from ces_client.installation.wheels import NoWheels
from ces_common.messages.identities import Identity
from ces_common.roles import Role


@pytest.fixture
def here(client, manager, samples, device, tmp_path, monkeypatch) -> Here:
    monkeypatch.setattr(steps, "agent_files", lambda *_: sent_files(tmp_path))
    monkeypatch.setattr(steps, "READY_S", 0.2)
    return Here(client, manager, samples, device)


def test_only_the_one_node_is_asked_about(here):
    assert here.install().changed
    assert here.manager.sent("GET", "nodes/roof1")
    assert here.manager.sent("GET", "nodes") == []


def test_a_manager_that_does_not_say_whether_it_knows_the_node(here, samples):
    here.manager.on("GET", "nodes/roof1", samples.problem(503, "Busy"))
    with pytest.raises(ApiError):
        here.install()
    assert here.device.files() == {}


def test_an_installation(here):
    outcome = here.install(given={"CES_NETWORK": "none"})
    assert outcome.changed
    files = here.device.files()
    assert {"etc/ces/agent.env", "etc/ces/installed.json", "etc/systemd/system/ces-agent.service"} < set(files)
    assert 'CES_HOST_ADDRESS="192.0.2.11"' in files["etc/ces/agent.env"][0]
    assert json.loads(files["etc/ces/installed.json"][0])["complete"]
    steps_said = [said for said in here.said if " " not in said]
    assert steps_said == [
        "preflight",
        "wheels",
        "files",
        "environment",
        "settings",
        "unit",
        "token",
        "start",
        "join",
        "ready",
    ]
    assert not list(here.device.root.glob("opt/ces/.installing-*"))


def test_the_token_comes_last_and_is_in_no_argument_file_or_log(here):
    here.install()
    assert (here.device.folder / "token").read_text().strip() == SECRET
    calls = here.device.calls()
    assert any("-J" not in call for call in calls)
    assert SECRET not in json.dumps(calls)
    assert not any(SECRET in content for content, _ in here.device.files().values())
    assert SECRET not in " ".join(here.said)
    order = [" ".join(call) for call in calls]
    settings = next(at for at, call in enumerate(order) if "--settings" in call)
    start = next(at for at, call in enumerate(order) if "systemctl restart" in call)
    assert settings < start
    assert here.manager.sent("POST", "nodes/tokens")[0].content == b'{"node":"roof1","ttl_s":600}'


def test_a_second_run_changes_nothing(here):
    here.install()
    before = here.device.files()
    calls = len(here.device.calls())
    outcome = here.install()
    assert (outcome.changed, outcome.steps) == (False, [])
    assert here.device.files() == before
    assert len(here.manager.sent("POST", "nodes/tokens")) == 1
    changing = ("restart", "enable", "pip", "venv", "daemon-reload")
    assert not [call for call in here.device.calls()[calls:] if call[0] == "device" and call[2] in changing]


def test_other_settings_are_told_at_another_joining(here):
    here.install()
    outcome = here.install(given={"CES_NODE_LABELS": "site=roof"})
    assert outcome.changed
    assert len(here.manager.sent("POST", "nodes/tokens")) == 2
    assert 'CES_NODE_LABELS="site=roof"' in here.device.files()["etc/ces/agent.env"][0]
    assert len(list(here.device.root.glob("opt/ces/venv-*"))) == 1


def test_a_dry_run_changes_nothing(here):
    here.device.befall(host_says=UNKNOWN)
    outcome = here.install(dry_run=True, host_key=FINGERPRINT)
    assert len(outcome.steps) == 5
    assert here.device.files() == {}
    assert here.manager.sent("POST", "nodes/tokens") == []
    assert not (here.device.folder / "known_hosts").exists()


def test_undoing_leaves_nothing(here):
    here.install()
    here.manager.on("POST", "nodes/roof1/cordon", here.samples.node("roof1"))
    gone = {"node": "roof1", "jobs": [], "credential": "revoked"}
    here.manager.on("POST", "nodes/roof1/forget", gone)
    assert here.installer.undo(here.wanted()).changed
    assert here.device.files() == {}
    assert not (here.device.root / "opt/ces").exists()
    assert not (here.device.root / "etc/ces").exists()
    assert len(here.manager.sent("POST", "nodes/roof1/forget")) == 1
    (here.device.folder / "token").unlink()  # the manager knows it no more
    assert not here.installer.undo(here.wanted()).changed


def test_a_node_with_work_is_not_undone(here):
    here.install()
    here.nodes(here.samples.node("roof1").model_copy(update={"allocations": ["job/w-0"]}))
    here.manager.on("POST", "nodes/roof1/cordon", here.samples.node("roof1"))
    before = here.device.files()
    with pytest.raises(InstallFailed, match="busy"):
        here.installer.undo(here.wanted())
    assert here.device.files() == before


def test_an_unknown_host_key_is_shown_and_asked_about(here):
    here.device.befall(host_says=UNKNOWN)
    failed = here.fails("host-key-unknown")
    assert FINGERPRINT in failed.faults[0].said
    assert here.asked == [f"{FINGERPRINT} (ssh-ed25519), which your known hosts do not have"]
    here.answer = True
    assert here.install().changed
    assert (here.device.folder / "known_hosts").read_text() == KEY + "\n"
    pinned = [call for call in here.device.calls() if call[0] == "-T" and call[-1] != "true"]
    assert all("StrictHostKeyChecking=yes" in call for call in pinned)


def test_a_script_gives_the_fingerprint(here):
    here.device.befall(host_says=UNKNOWN)
    assert here.install(host_key=FINGERPRINT).changed
    assert here.asked == []


def test_another_key_than_the_given_one_is_refused(here):
    other = "SHA256:" + "A" * 43
    here.fails("host-key-other", host_key=other)
    here.device.befall(host_says=UNKNOWN)
    here.fails("host-key-other", host_key=other)


def test_a_device_that_has_applied_must_show_the_key_that_it_claimed(here):
    other = "SHA256:" + "A" * 43
    failed = here.fails("host-key-claimed", claimed=(other,))
    assert other in failed.faults[0].said
    assert FINGERPRINT in failed.faults[0].said
    here.device.befall(host_says=UNKNOWN)
    here.answer = True
    here.fails("host-key-claimed", claimed=(other,))
    assert here.asked == []
    assert here.manager.sent("POST", "nodes/tokens") == []


def test_what_a_device_claims_does_not_make_its_key_known(here):
    """Whoever applies from an address can show that address's key."""
    here.device.befall(host_says=UNKNOWN)
    here.fails("host-key-unknown", claimed=(FINGERPRINT,))
    assert here.asked == [f"{FINGERPRINT} (ssh-ed25519), which your known hosts do not have"]
    here.answer = True
    assert here.install(claimed=("SHA256:" + "A" * 43, FINGERPRINT)).changed


def test_who_has_applied_is_confirmed_even_where_ssh_knows_the_key(here):
    """A stranger behind the same address may claim the key of a host that the user knows."""
    hashed = f"|1|c2FsdA==|aGFzaA== {KEY.split(' ', 1)[1]}"
    (here.device.folder / "known_hosts").write_text(f"database,192.0.2.11 {KEY.split(' ', 1)[1]}\n{hashed}\nx y\n")
    known = "which your known hosts have as database, 192.0.2.11, a name that is hashed there"
    failed = here.fails("host-key-unconfirmed", claimed=(FINGERPRINT,))
    assert known in failed.faults[0].said
    assert here.asked == [f"{FINGERPRINT} (ssh-ed25519), {known}"]
    assert {call[-1] for call in here.device.calls() if "-G" not in call} == {"true"}, "nobody was logged in"
    before = (here.device.folder / "known_hosts").read_text()
    assert here.install(claimed=(FINGERPRINT,), host_key=FINGERPRINT, dry_run=True).steps
    here.answer = True
    assert here.install(claimed=(FINGERPRINT,)).changed
    assert (here.device.folder / "known_hosts").read_text() == before
    logged_in = [call for call in here.device.calls() if call[0] == "-T" and call[-1] != "true"]
    assert all(any(word.startswith("UserKnownHostsFile=") for word in call) for call in logged_in)


def test_nobody_comes_into_a_nodes_place_by_applying_under_its_name(here):
    here.nodes(here.samples.node("roof1").model_copy(update={"state": "unreachable"}))
    here.fails("taken", claimed=(FINGERPRINT,), host_key=FINGERPRINT)
    here.fails("taken", claimed=(FINGERPRINT,), host_key=FINGERPRINT, dry_run=True)
    assert here.manager.sent("POST", "nodes/tokens") == []


def test_a_changed_host_key_is_refused_even_where_it_is_the_given_one(here):
    here.device.befall(host_says=CHANGED)
    here.answer = True
    here.fails("host-key-changed", host_key=FINGERPRINT)
    assert here.asked == []
    assert [call[-1] for call in here.device.calls()] == ["true"]


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("ssh: Could not resolve hostname roof: Name or service not known\n", "unknown-host"),
        ("ssh: connect to host roof port 22: Connection refused\n", "refused"),
        ("ssh: connect to host roof port 22: Connection timed out\n", "unreachable"),
    ],
)
def test_a_device_that_does_not_answer(here, said, name):
    here.device.befall(host_says=said)
    assert "host key" in str(here.fails(name).problem.errors[0]["field"])


@pytest.mark.parametrize(
    ("says", "name"),
    [
        ((255, "root@roof: Permission denied (publickey).\n"), "login"),
        ((1, "ces: no python3\n"), "no-python"),
        ((1, "sudo: a password is required\n"), "root"),
        ((255, "client_loop: send disconnect: Broken pipe\n"), "lost"),
        ((0, ""), "answer"),
    ],
)
def test_a_login_that_leads_nowhere(here, says, name):
    here.device.befall(says=says)
    here.fails(name)


def test_what_the_device_lacks_is_told_at_once(here):
    lacks = {"systemd": False, "python": [3, 9, 2], "unreached": {"nats": "m:4222: Connection refused"}}
    here.device.befall(facts=lacks | {"free": {"/opt": 1, "/var/lib": 1 << 40, "/etc": 1 << 40}, "clock": 0.0})
    failed = here.fails("python", "systemd", "disk", "clock", "nats")
    assert all(error.get("remedy") for error in failed.problem.errors)


def test_an_answer_that_is_none(here):
    here.device.befall(facts={"machine": "x" * 99})
    here.fails("answer")


def test_without_wheels(here, monkeypatch):
    def none(*_):
        raise NoWheels("wheels", "pip download: no route", ["last line"])

    monkeypatch.setattr(steps, "agent_files", none)
    assert here.fails("wheels").problem.errors[1] == {"field": "log", "problem": "last line"}


def test_an_agent_that_the_manager_refuses(here):
    here.device.befall(refused=True, journal=["the manager refused this node: this join token has expired"])
    with pytest.raises(InstallFailed) as failed:
        here.install()
    (fault,) = failed.value.faults
    assert (fault.step, fault.name) == ("join", "join")
    assert "expired" in fault.log[-1]
    assert "var/lib/ces-agent/join-token" not in here.device.files()
    here.device.befall(refused=False)
    assert here.install().changed  # and a later run goes on


@pytest.mark.parametrize(
    ("start", "name"),
    [
        ("python /", "environment"),
        ("systemctl daemon-reload", "systemd"),
        ("systemctl enable", "systemd"),
    ],
)
def test_a_step_that_fails_on_the_device(here, start, name):
    here.device.befall(programs=[[start, 1, "it does not work"]])
    with pytest.raises(InstallFailed) as failed:
        here.install()
    assert [fault.name for fault in failed.value.faults] == [name]
    assert "it does not work" in failed.value.faults[0].said
    assert here.manager.sent("POST", "nodes/tokens") == [] or start == "systemctl enable"
    here.device.befall(programs=[])
    assert here.install().changed


def test_a_setting_that_the_agent_does_not_have(here):
    with pytest.raises(InstallFailed) as failed:
        here.install(given={"CES_NONSENSE": "1"})
    assert failed.value.faults[0].name == "settings"
    assert "CES_NONSENSE" in failed.value.faults[0].said


def test_settings_that_are_wrong_leave_the_agent_of_before_as_it_was(here):
    def used() -> dict[str, tuple[str, float]]:
        paths = ("etc/ces/agent.env", "etc/systemd/system/ces-agent.service", "opt/ces/venv")
        return {path: here.device.files()[path] for path in paths}

    here.install()
    before, calls = used(), len(here.device.calls())
    with pytest.raises(InstallFailed, match="settings"):
        here.install(given={"CES_NONSENSE": "1"})
    assert used() == before
    assert not [call for call in here.device.calls()[calls:] if {"stop", "restart", "disable"} & set(call)]
    assert len(here.manager.sent("POST", "nodes/tokens")) == 1


def test_a_manager_that_gives_no_token(here, samples):
    here.manager.on("POST", "nodes/tokens", samples.problem(503, "Busy"))
    with pytest.raises(ApiError):
        here.install()
    assert not [call for call in here.device.calls() if "restart" in call]
    assert "var/lib/ces-agent/join-token" not in here.device.files()


def test_a_device_that_asks_for_more_tokens_gets_one(here):
    here.device.befall(greedy=True)
    with pytest.raises(InstallFailed, match="ready"):
        here.install()
    assert len(here.manager.sent("POST", "nodes/tokens")) == 1


@pytest.mark.parametrize(("before", "between"), [("", ""), ("other ssh-rsa AAAA\n", ""), ("other ssh-rsa AAAA", "\n")])
def test_a_known_host_stays_one_where_its_line_has_no_end(here, before, between):
    here.device.befall(host_says=UNKNOWN)
    (here.device.folder / "known_hosts").write_text(before)
    here.install(host_key=FINGERPRINT)
    assert (here.device.folder / "known_hosts").read_text() == f"{before}{between}{KEY}\n"


def test_a_user_who_keeps_no_known_hosts_is_left_so(here, monkeypatch):
    monkeypatch.chdir(here.device.folder)
    here.device.befall(host_says=UNKNOWN, known_hosts="none")
    assert here.install(host_key=FINGERPRINT).changed
    assert not (here.device.folder / "none").exists()
    assert not any("is kept in" in said for said in here.said)


def test_a_node_that_is_never_heard(here):
    silent = here.samples.node("roof1").model_copy(update={"state": "unreachable"})
    here.nodes(silent)
    here.device.befall(journal=["nats: no servers available"])
    with pytest.raises(InstallFailed) as failed:
        here.install()
    assert failed.value.faults[0].name == "ready"
    assert failed.value.faults[0].log == ["nats: no servers available"]


def test_names_that_are_taken_and_devices_that_are_others(here):
    here.nodes(here.samples.node("roof1"))
    here.fails("taken")
    here.nodes()
    here.install()
    (here.device.folder / "token").unlink()
    here.fails("forgotten")
    here.fails("another-node", node="roof2")


def test_only_operators_install(here):
    here.manager.on("GET", "whoami", Identity(name="dev", role=Role.SUBMITTER, tenants=["red"]))
    with pytest.raises(BadInput, match="operators"):
        here.install()
    assert here.device.calls() == []


@pytest.mark.parametrize("target", ["-oProxyCommand=id", "", "root@roof id", "a\nb", "r" * 256])
def test_a_target_is_no_option_of_ssh(target):
    with pytest.raises(BadInput):
        Ssh(target)
    with pytest.raises(BadInput):
        Ssh("root@roof", target)


def test_every_call_of_ssh_checks_the_host(here):
    here.install()
    for call in itertools.filterfalse(lambda call: call[0] == "device", here.device.calls()):
        assert "StrictHostKeyChecking=yes" in call
        assert "ForwardAgent=no" in call
        assert call[call.index("--") + 1] == "root@roof"

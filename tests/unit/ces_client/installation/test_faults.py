"""What ssh says when it fails, by name."""

from __future__ import annotations

import re

import pytest
from doc_pages import ROOT
from fake_device import CHANGED, UNKNOWN

from ces_client.installation.faults import REMEDIES, Fault, InstallFailed, ssh_fault


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("ssh: Could not resolve hostname roof: Name or service not known", "unknown-host"),
        ("ssh: connect to host roof port 22: Connection refused", "refused"),
        ("ssh: connect to host roof port 22: Connection timed out", "unreachable"),
        ("channel 0: open failed: connect failed: No route to host\nstdio forwarding failed", "unreachable"),
        ("user@roof: Permission denied (publickey,password).", "login"),
        (UNKNOWN, "host-key-unknown"),
        (CHANGED, "host-key-changed"),
        ("Connection to roof closed by remote host.", "lost"),
        ("ces: no python3", "no-python"),
        ("sudo: a password is required", "root"),
        ("sh: 1: exec: sudo: not found", "root"),
        ("", "lost"),
    ],
)
def test_what_ssh_says_has_a_name(said, name):
    fault = ssh_fault("preflight", 255, said)
    assert fault.name == name
    assert name in REMEDIES
    assert fault.said


def test_a_login_shell_that_does_something_else():
    assert ssh_fault("preflight", 1, "This account is currently not available.").name == "answer"


def test_a_changed_key_is_told_whole():
    fault = ssh_fault("host key", 255, CHANGED)
    assert fault.said == "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!"
    assert any("known_hosts:1" in line for line in fault.log)


def test_a_failure_names_step_cause_log_and_remedy():
    failed = InstallFailed(
        [Fault("join", "join", "the agent has ended", ["this join token has expired"])], "root@roof", "roof1"
    )
    assert failed.problem.errors == [
        {"field": "join (join)", "problem": "the agent has ended", "remedy": REMEDIES["join"]},
        {"field": "log", "problem": "this join token has expired"},
    ]
    assert "root@roof stays as it is" in str(InstallFailed([Fault("preflight", "disk", "full")], "root@roof", "roof1"))


def test_remedies_can_be_filled_in():
    for name in REMEDIES:
        assert "{" not in Fault("x", name, "y").remedy("root@roof", "roof1")


def test_the_page_has_every_fault():
    table = (ROOT / "docs/node-install.md").read_text().partition("| step | faults |")[2].partition("\n\n")[0]
    told = {name for row in table.splitlines() for name in re.findall(r"`([a-z-]+)`", row)}
    assert told == set(REMEDIES)

"""What keeps an agent from running on a device, and what would be done there."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ces_client.installation.checks import CLOCK_S, is_done, steps_to
from ces_client.installation.checks import faults_of as faults

DONE = {"node": "roof1", "digest": "d", "settings": "s", "intact": True, "member": True, "active": True}


def names(facts, *, ahead_s=0.0, node="roof1"):
    return [fault.name for fault in faults(facts, node, ahead_s)]


def test_a_good_device(facts):
    assert names(facts()) == []
    assert names(facts(machine="aarch64", python=[3, 13, 0]), ahead_s=-CLOCK_S) == []
    assert names(facts(DONE)) == []


@pytest.mark.parametrize(
    ("like", "name"),
    [
        ({"root": False}, "root"),
        ({"python": [3, 9, 2]}, "python"),
        ({"lacks": ["venv"]}, "python-parts"),
        ({"machine": "armv7l"}, "architecture"),
        ({"machine": "aarch64", "bits": 32}, "architecture"),
        ({"glibc": None}, "architecture"),
        ({"systemd": False}, "systemd"),
        ({"free": {"/opt": 1 << 20, "/var/lib": 1 << 40, "/etc": 1 << 40}}, "disk"),
        ({"free": {"/opt": 1 << 40, "/var/lib": 1 << 40}}, "disk"),
        ({"unreached": {"manager": "192.0.2.1:8080: timed out"}}, "manager"),
        ({"unreached": {"nats": "192.0.2.1:4222: Connection refused"}}, "nats"),
        ({"modules": {"sch_htb": "not found"}}, "kernel"),
        ({"installed": {"foreign": ["/opt/ces/venv"]}}, "foreign"),
        ({"installed": {"node": "roof2"}}, "another-node"),
    ],
)
def test_each_fault_has_its_name_and_a_remedy(facts, like, name):
    (fault,) = faults(facts(**like), "roof1", 0.0)
    assert fault.name == name
    assert fault.step == "preflight"
    assert fault.said
    assert fault.remedy("root@roof", "roof1")


@pytest.mark.parametrize(("ahead_s", "how"), [(31.0, "31 s ahead of"), (-90.0, "90 s behind")])
def test_a_wrong_clock(facts, ahead_s, how):
    (fault,) = faults(facts(), "roof1", ahead_s)
    assert fault.name == "clock"
    assert how in fault.said


def test_all_faults_at_once(facts):
    assert names(facts(systemd=False, root=False, python=[3, 7, 3]), ahead_s=100) == [
        "root",
        "python",
        "systemd",
        "clock",
    ]


@pytest.mark.parametrize(
    "like",
    [
        {"machine": "x86_64; rm"},
        {"python": [3]},
        {"unreached": {"other": "x"}},
        {"address": "a" * 65},
        {"clock": "now"},
    ],
)
def test_what_is_no_answer_is_refused(facts, like):
    with pytest.raises(ValidationError):
        facts(**like)


def test_what_is_left_to_do(facts):
    assert is_done(facts(DONE), "d")
    assert steps_to(facts(DONE), "d", "s") == []
    assert len(steps_to(facts(), "d", "s")) == 5
    assert not any("token" in step for step in steps_to(facts(DONE), "other", "s"))
    assert any("token" in step for step in steps_to(facts(DONE), "other", "t"))
    for change in ({"digest": "e"}, {"intact": False}, {"member": False}, {"active": False}):
        assert not is_done(facts(DONE | change), "d")

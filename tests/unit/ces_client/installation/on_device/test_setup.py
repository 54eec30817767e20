"""What an installation does on the device when things go wrong; that it goes well is tested from the other end."""

from __future__ import annotations

import io
import json
import subprocess

import pytest

from ces_client.installation.on_device.machine import Fault, Machine
from ces_client.installation.on_device.server import serve
from ces_client.installation.on_device.setup import install


def order(**more):
    file = {"name": "pip-1-py3-none-any.whl", "size": 3, "sha256": "0" * 64}
    base = {"node": "roof1", "digest": "d" * 64, "settings_digest": "s", "settings": {}, "env": "", "wait_s": 0}
    return base | {"files": [file]} | more


def good(command, **_):
    return subprocess.CompletedProcess(command, 0, b"", b"")


@pytest.fixture
def machine(tmp_path):
    return Machine(str(tmp_path), good, lambda _: None)


def refused(machine, content, **more):
    with pytest.raises(Fault) as fault:
        install(machine, order(**more), io.BytesIO(content), lambda _: None)
    return fault.value


def test_a_connection_that_ends_within_a_file(machine, tmp_path):
    assert refused(machine, b"ab").name == "transfer"
    assert list((tmp_path / "opt/ces").iterdir()) == []
    assert not (tmp_path / "etc").exists()


def test_a_file_that_arrives_changed(machine, tmp_path):
    assert refused(machine, b"abc").said == "pip-1-py3-none-any.whl arrived changed"
    assert list((tmp_path / "opt/ces").iterdir()) == []


def test_an_agent_of_other_hands_is_left_alone(machine, tmp_path):
    (tmp_path / "opt/ces/venv").mkdir(parents=True)
    assert refused(machine, b"").name == "foreign"
    assert [path.name for path in (tmp_path / "opt/ces").iterdir()] == ["venv"]


def test_another_nodes_agent_is_left_alone(machine):
    machine.write("/etc/ces/installed.json", json.dumps({"node": "roof2"}), 0o600)
    fault = refused(machine, b"")
    assert (fault.name, fault.said) == ("another-node", "roof2")


def test_a_full_disk_has_its_own_name(tmp_path):
    def full(command, **_):
        return subprocess.CompletedProcess(command, 1, b"OSError: [Errno 28] No space left on device\n", b"")

    machine = Machine(str(tmp_path), full)
    with pytest.raises(Fault) as fault:
        machine.run("environment", ["pip"])
    assert fault.value.name == "disk"


def test_an_order_that_is_none_is_answered(machine):
    answers = io.BytesIO()
    assert serve(machine, io.BytesIO(b"nonsense\n"), answers) == 1
    assert json.loads(answers.getvalue())["fault"] == "device"


def test_a_record_that_cannot_be_read_counts_as_none(machine, tmp_path):
    machine.write("/etc/ces/installed.json", "[", 0o600)
    assert machine.record() == {}
    (tmp_path / "opt/ces/venv").mkdir(parents=True)
    assert machine.installed()["foreign"] == ["/opt/ces/venv"]


def test_what_is_written_is_its_owners(machine, tmp_path):
    machine.write("/var/lib/ces-agent/join-token", "secret", 0o600)
    path = tmp_path / "var/lib/ces-agent/join-token"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["join-token"]

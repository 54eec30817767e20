"""What is removed of a cluster, and what is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ces_testbed import cleanup, owners
from ces_testbed.cleanup import leftovers, remove_cluster, remove_files
from ces_testbed.spec import ClusterSpec, Files
from ces_testbed.topology import default_topology


def test_removing_spares_logs_and_folders_of_others(tmp_path: Path) -> None:
    files = Files(tmp_path)
    (tmp_path / "nats").mkdir()
    remove_files(files)
    assert (tmp_path / "nats").exists()  # no cluster was here
    files.prepare()
    files.spec.write_text(ClusterSpec(name="lab", topology=default_topology()).model_dump_json())
    files.database.touch()
    (tmp_path / "notes.txt").touch()
    files.log("manager").touch()
    remove_files(files)
    assert {path.name for path in tmp_path.iterdir()} == {"logs", "notes.txt"}
    assert files.log("manager").exists()


def test_the_context_goes_with_its_cluster_and_not_with_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = tmp_path / "context.json"
    monkeypatch.setenv("CES_CONTEXT", str(context))
    files = Files(tmp_path / "cluster")
    for token, stays in (("mine", False), ("another's", True)):
        files.prepare()
        files.spec.write_text(ClusterSpec(name="lab", topology=default_topology()).model_dump_json())
        files.token.write_text("mine\n")
        context.write_text(json.dumps({"url": "http://127.0.0.1:8080", "token": token}))
        remove_files(files)
        assert context.exists() is stays


def test_nothing_is_left_of_a_cluster_that_never_was(tmp_path: Path) -> None:
    assert leftovers("never", Files(tmp_path / "never"), containers=False) == []


def test_hosts_and_containers_of_another_that_holds_the_name_are_spared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "locks").mkdir()
    monkeypatch.setattr(owners, "FOLDER", tmp_path / "locks")
    removed: list[str] = []
    monkeypatch.setattr(cleanup, "_remove_containers", removed.append)
    monkeypatch.setattr(cleanup, "has_namespaces", lambda: True)
    monkeypatch.setattr("ces_testbed.hosts.remove_hosts", removed.append)
    monkeypatch.setattr("ces_testbed.hosts.traces", lambda name: ["ces-lab-n1"])
    mine, theirs = Files(tmp_path / "mine"), Files(tmp_path / "theirs")
    owners.claim("lab", theirs)
    remove_cluster("lab", mine, containers=True)
    assert leftovers("lab", mine, containers=True) == []
    assert removed == []
    remove_cluster("lab", theirs, containers=True)
    assert removed == ["lab", "lab"]
    assert leftovers("lab", mine, containers=False) == ["namespace or device ces-lab-n1"]

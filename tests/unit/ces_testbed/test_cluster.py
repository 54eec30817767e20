"""A cluster's start and end, as far as they need no service."""

from __future__ import annotations

from pathlib import Path

import pytest

from ces_testbed import cleanup, owners
from ces_testbed.cluster import Cluster
from ces_testbed.errors import NameTaken, StartFailed
from ces_testbed.services import Layout
from ces_testbed.spec import Addresses, ClusterSpec, Files, Ports
from ces_testbed.topology import default_topology

PORTS = Ports(nats=1, nats_monitor=6, api=2, scheduler=3, compute_ctl=4, network_ctl=5)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "locks").mkdir()
    monkeypatch.setattr(owners, "FOLDER", tmp_path / "locks")
    monkeypatch.setattr("ces_testbed.cleanup.has_namespaces", lambda: False)


def test_one_that_is_refused_its_name_leaves_what_goes_by_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = Files(tmp_path / "theirs")
    owners.claim("lab", theirs)
    removed: list[str] = []
    monkeypatch.setattr(cleanup, "_remove_containers", removed.append)
    monkeypatch.setattr(cleanup, "_containers", lambda name: [])
    spec = ClusterSpec(name="lab", topology=default_topology(), runtime="docker")
    cluster = Cluster(spec, Files(tmp_path / "mine"))
    with pytest.raises(NameTaken, match="theirs"):
        cluster.start()
    assert cluster.stop() == []
    assert removed == []
    owners.release("lab", theirs)
    assert cluster.stop() == []
    assert removed == ["lab"]


def test_its_state_stays_where_it_is_to_be_resumed(tmp_path: Path) -> None:
    files = Files(tmp_path / "mine")
    files.prepare()
    spec = ClusterSpec(name="lab", topology=default_topology())
    files.spec.write_text(spec.model_dump_json())
    files.database.touch()
    assert Cluster(spec, files).stop(keep_state=True) == []
    assert files.database.exists()
    assert Cluster(spec, files).stop() == []
    assert not files.database.exists()


def test_it_is_not_resumed_on_other_addresses_than_its_agents_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Files(tmp_path / "mine")
    files.prepare()
    files.token.write_text("token\n")
    files.addresses.write_text(Addresses(host="198.18.0.1", ports=PORTS).model_dump_json())
    cluster = Cluster(ClusterSpec(name="lab", topology=default_topology()), files, resume=True)
    with pytest.raises(StartFailed, match=r"listened on 198\.18\.0\.1, which is not to be had again"):
        cluster.start()
    assert cluster.token == "token"


def test_a_context_file_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CES_CONTEXT", str(tmp_path / "file" / "context.json"))
    spec, files = ClusterSpec(name="lab", topology=default_topology()), Files(tmp_path / "mine")
    cluster = Cluster(spec, files)
    ports = Ports(nats=1, nats_monitor=2, api=3, scheduler=4, compute_ctl=5, network_ctl=6)
    monkeypatch.setattr(Cluster, "layout", Layout(spec, files, ports))
    with pytest.raises(StartFailed, match=r"context file cannot be written: .*; name another with CES_CONTEXT"):
        cluster._save_context()

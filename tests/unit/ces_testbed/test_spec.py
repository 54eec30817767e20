"""What a local cluster is to be, and where its files lie."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ces_testbed import spec
from ces_testbed.spec import LOCALHOST, Addresses, ClusterSpec, Files, Ports, default_root, free_port
from ces_testbed.topology import default_topology, parse_topology


def test_a_spec_survives_being_written(tmp_path: Path) -> None:
    files = Files(tmp_path)
    spec = ClusterSpec(name="lab", topology=default_topology())
    files.spec.write_text(spec.model_dump_json())
    assert files.read_spec() == spec


def test_a_cluster_of_switches_is_refused() -> None:
    with pytest.raises(ValueError, match="nowhere to run"):
        ClusterSpec(name="lab", topology=parse_topology("nodes: [{name: s}]", "f"))


def test_files_of_a_cluster_lie_in_the_users_state(tmp_path: Path) -> None:
    assert default_root("lab", {"XDG_STATE_HOME": str(tmp_path)}) == tmp_path / "ces" / "lab"


def test_a_cluster_that_was_never_up_has_no_addresses(tmp_path: Path) -> None:
    files = Files(tmp_path)
    assert files.read_addresses() is None
    ports = Ports(nats=1, nats_monitor=6, api=2, scheduler=3, compute_ctl=4, network_ctl=5)
    files.addresses.write_text(Addresses(host="198.18.0.1", ports=ports).model_dump_json())
    assert files.read_addresses() == Addresses(host="198.18.0.1", ports=ports)
    assert files.addresses in files.own()


def test_a_name_is_held_on_the_machine_only_by_what_is_found_by_it() -> None:
    plain = ClusterSpec(name="lab", topology=default_topology())
    assert not plain.takes_name
    assert plain.model_copy(update={"network": "tc"}).takes_name
    assert plain.model_copy(update={"runtime": "docker"}).takes_name


async def test_a_port_is_found_once_and_then_listened_on(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port(LOCALHOST, set())
    monkeypatch.setattr(spec, "_PORTS", [port])
    with pytest.raises(OSError, match="no free port"):
        free_port(LOCALHOST, set())
    async with await asyncio.start_server(lambda reader, writer: writer.close(), LOCALHOST, port):
        _, writer = await asyncio.open_connection(LOCALHOST, port)
        writer.close()

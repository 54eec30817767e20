"""An agent that keeps serving data: who may read it and how fast, where, and what is told of it."""

from __future__ import annotations

import asyncio
import errno
import http.client
import socket
from pathlib import Path
from typing import Any

import pytest
from agent_parts import FakeNetwork
from offered_data import CONTENT, ME, PATIENCE_S, datasets_in

from ces_common.messages.desired import CheckpointReader, DesiredNetwork, FlowClass, Reader
from ces_common.names import DATA_PORT
from ces_edge_agent.inputs import service as services
from ces_edge_agent.inputs.server import Grant
from ces_edge_agent.inputs.service import InputService, grants_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return datasets_in(tmp_path)


def desired(*readers: Reader, **fields: Any) -> DesiredNetwork:
    return DesiredNetwork(node="n", generation=1, readers=list(readers), **{"router": "10.0.0.1"} | fields)


def reader(address: str = ME, *datasets: str, job: str = "j.1") -> Reader:
    return Reader(job=job, address=address, datasets=list(datasets))


def flow_class(kind: Any, src: str, dst: str, rate: int, ceil: int | None = None) -> FlowClass:
    return FlowClass(job="j.1", number=1, kind=kind, via="s", src=src, dst=dst, rate=rate, ceil=ceil)


def test_a_reader_is_sent_to_as_fast_as_its_class_lets() -> None:
    classes = [
        flow_class("data", "10.0.0.1", "10.1.0.2", 20),
        flow_class("data", "10.0.0.1", "10.1.0.3", 20, ceil=50),
        flow_class("data", "10.0.0.9", "10.1.0.4", 20),
        flow_class("return", "10.0.0.1", "10.1.0.4", 20),
    ]
    readers = [reader(f"10.1.0.{i}", "mnist") for i in (2, 3, 4)]
    grants = grants_of(desired(*readers, classes=classes))
    assert {address: grant.rate for address, grant in grants.items()} == {
        "10.1.0.2": 20,
        "10.1.0.3": 50,
        "10.1.0.4": None,
    }
    assert {grant.datasets for grant in grants.values()} == {frozenset({"mnist"})}


def test_readers_that_share_an_address_may_read_what_any_of_them_may() -> None:
    host, other = "192.0.2.1", "192.0.2.2"
    readers = [reader(host, "mnist"), reader(host, "words", "mnist", job="k.1"), reader(other, "birds")]
    grants = grants_of(desired(*readers, mode="none"))
    assert grants == {
        host: Grant(frozenset({"mnist", "words"}), readers=2),
        other: Grant(frozenset({"birds"})),
    }
    everything = grants_of(desired(*readers, reader(host, job="l.1"), mode="none"))
    assert everything[host] == Grant(frozenset(), readers=3), "one of them may read all"


def test_without_a_data_plane_nobody_is_held_back_for_what_another_at_the_address_was_given() -> None:
    host = "192.0.2.1"
    classes = [flow_class("data", "10.0.0.1", host, rate) for rate in (50, 20)]
    readers = [reader(host, "mnist"), reader(host, "mnist", job="k.1")]
    assert grants_of(desired(*readers, mode="none", classes=classes)) == {
        host: Grant(frozenset({"mnist"}), rate=None, readers=2)
    }


def test_an_address_is_known_however_it_is_written() -> None:
    classes = [flow_class("data", "10.0.0.1", "2001:db8:0::2", 20)]
    grants = grants_of(desired(reader("2001:DB8::0:2", "mnist"), classes=classes))
    assert grants == {"2001:db8::2": Grant(frozenset({"mnist"}), 20)}


def test_a_node_that_fetches_checkpoints_reads_no_datasets_but_those_of_a_worker_at_its_address() -> None:
    node = CheckpointReader(job="j.1", owner="j", node="b", address="192.0.2.1", key="K")
    assert grants_of(desired(checkpoint_readers=[node])) == {"192.0.2.1": Grant(None, None, 1, (node,))}
    both = grants_of(desired(reader("192.0.2.1", "mnist"), checkpoint_readers=[node], mode="none"))
    assert both == {"192.0.2.1": Grant(frozenset({"mnist"}), None, 2, (node,))}


async def test_a_node_without_datasets_serves_checkpoints_once_there_is_a_reader(
    network: FakeNetwork, tmp_path: Path
) -> None:
    service = service_of(None, network, tmp_path)
    assert await service.follow(desired()) == {}
    assert network.listened == []
    node = CheckpointReader(job="j.1", owner="j", node="b", address=ME, key="K")
    assert await service.follow(desired(checkpoint_readers=[node])) == {}
    assert network.listened == [("10.0.0.1", DATA_PORT)]
    report = await service.report()
    assert report is not None
    assert (report.port > 0, report.datasets) == (True, [])
    for path in ("/", "/mnist/images", "/.checkpoints/j"):
        connection = http.client.HTTPConnection(ME, report.port, timeout=PATIENCE_S)
        connection.request("GET", path)
        assert connection.getresponse().status == 403
        connection.close()
    service.close()


@pytest.fixture
def network() -> FakeNetwork:
    return FakeNetwork()


def service_of(root: Path | None, network: FakeNetwork, folder: Path) -> InputService:
    return InputService("n", root, network, "192.0.2.1", folder / "data-port")


async def test_what_is_offered_is_told_once_it_is_served(root: Path, network: FakeNetwork, tmp_path: Path) -> None:
    service = service_of(root, network, tmp_path)
    assert await service.report() is None, "nothing that is not so must be told, nor taken back"
    assert await service.follow(desired(reader())) == {}
    assert network.listened == [("10.0.0.1", DATA_PORT)], "at the node's address in the data plane, and nowhere else"
    report = await service.report()
    assert report is not None
    assert (report.node, report.datasets) == ("n", ["mnist", "words"])
    assert report.port
    connection = http.client.HTTPConnection(ME, report.port, timeout=PATIENCE_S)
    connection.request("GET", "/mnist/images")
    assert connection.getresponse().read() == CONTENT
    connection.close()
    await service.follow(desired(reader()))
    assert len(network.listened) == 1
    network.made += 1
    await service.follow(desired(reader()))
    assert len(network.listened) == 2, "the data plane was recreated"
    (root / "birds").mkdir()
    report = await service.report()
    assert report is not None
    assert report.datasets == ["birds", "mnist", "words"]
    service.close()


async def test_without_a_data_plane_the_port_stays_over_a_restart(
    root: Path, network: FakeNetwork, tmp_path: Path
) -> None:
    first = service_of(root, network, tmp_path)
    await first.follow(desired(mode="none"))
    assert network.listened == [("192.0.2.1", 0)]
    report = await first.report()
    first.close()
    again = service_of(root, network, tmp_path)
    await again.follow(desired(mode="none"))
    assert report is not None
    assert network.listened[1] == ("192.0.2.1", report.port)
    again.close()


async def test_a_disk_that_takes_nothing_keeps_no_reader_waiting(
    root: Path, network: FakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(services, "write_atomically", full)
    service = service_of(root, network, tmp_path)
    assert await service.follow(desired(reader(), mode="none")) == {}
    report = await service.report()
    assert report is not None
    assert (report.port > 0, report.datasets) == (True, ["mnist", "words"])
    service.close()


async def test_a_port_that_stays_is_not_written_again(
    root: Path, network: FakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(services, "write_atomically", lambda _, text: written.append(text))
    listener = socket.create_server((ME, 0))
    port = listener.getsockname()[1]
    (tmp_path / "data-port").write_text(str(port))

    async def same(address: str, asked: int) -> socket.socket:
        assert (address, asked) == ("192.0.2.1", port)
        return listener

    monkeypatch.setattr(network, "listen", same)
    service = service_of(root, network, tmp_path)
    await service.follow(desired(mode="none"))
    assert written == []
    service.close()


@pytest.mark.parametrize("kept", ["65536", "-1", "0", "99999999999999999999", "", "x", "4.5"])
async def test_a_kept_port_that_is_none_is_not_tried(
    root: Path, network: FakeNetwork, tmp_path: Path, kept: str
) -> None:
    (tmp_path / "data-port").write_text(kept)
    service = service_of(root, network, tmp_path)
    assert await service.follow(desired(mode="none")) == {}
    assert network.listened == [("192.0.2.1", 0)]
    assert int((tmp_path / "data-port").read_text()) > 0
    service.close()


async def test_a_node_that_cannot_serve_says_so(root: Path, network: FakeNetwork, tmp_path: Path) -> None:
    service = service_of(root, network, tmp_path)
    network.deaf = True
    failed = await service.follow(desired(reader(), reader("10.0.0.9", job="k.1")))
    assert failed.keys() == {"j.1", "k.1"}
    assert failed["j.1"] == f"data cannot be served: nothing can listen on 10.0.0.1, port {DATA_PORT}"
    report = await service.report()
    assert report is not None
    assert (report.port, report.datasets) == (DATA_PORT, [])
    network.deaf = False
    assert await service.follow(desired(reader())) == {}
    service.close()


async def test_no_address_is_not_every_address(root: Path, network: FakeNetwork, tmp_path: Path) -> None:
    service = service_of(root, network, tmp_path)
    failed = await service.follow(desired(reader(), router=""))
    assert failed == {"j.1": "data cannot be served: the node has no address in the data plane"}
    assert network.listened == []
    service.close()


async def test_a_node_without_data_offers_none(network: FakeNetwork, tmp_path: Path) -> None:
    service = service_of(None, network, tmp_path)
    assert await service.follow(desired()) == {}
    report = await service.report()
    assert report is not None
    assert (report.port, report.datasets, network.listened) == (0, [], [])
    assert await service.follow(desired(reader())) == {"j.1": "this node offers no data: CES_DATASETS is not set"}


async def test_a_folder_that_is_gone_is_no_longer_offered(root: Path, network: FakeNetwork, tmp_path: Path) -> None:
    service = service_of(root, network, tmp_path)
    await service.follow(desired())
    before = await service.report()
    await asyncio.to_thread(root.rename, tmp_path / "away")
    report = await service.report()
    assert before is not None
    assert report is not None
    assert (report.port, report.datasets) == (before.port, []), "it may come back, and then workers find it there"
    service.close()


async def test_a_failed_listen_moves_nothing(root: Path, network: FakeNetwork, tmp_path: Path) -> None:
    """Without a data plane, where the port is known from the last run alone."""
    (tmp_path / "data-port").write_text("4711")
    network.deaf = True
    service = service_of(root, network, tmp_path)
    assert (await service.follow(desired(reader(), mode="none"))).keys() == {"j.1"}
    report = await service.report()
    assert report is not None
    assert (report.port, report.datasets) == (4711, [])
    service.close()

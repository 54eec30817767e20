"""Serving data: to whom, what, and how much at once; and an agent that keeps doing so."""

from __future__ import annotations

import asyncio
import errno
import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_parts import FakeNetwork

from ces_common.messages.wanted import FlowClass, NetworkWanted, Reader
from ces_common.naming import DATA_PORT
from ces_edge_agent.inputs import keeper as keepers
from ces_edge_agent.inputs import server as servers
from ces_edge_agent.inputs.keeper import InputKeeper, grants_of
from ces_edge_agent.inputs.server import Grant, InputServer
from ces_edge_agent.inputs.store import Store

ME = "127.0.0.1"
CONTENT = os.urandom(1 << 20)
PATIENCE_S = 20.0


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "datasets"
    (root / "mnist" / "train").mkdir(parents=True)
    (root / "words").mkdir()
    (root / "mnist" / "images").write_bytes(CONTENT)
    (root / "mnist" / "empty").touch()
    return root


class Served:
    def __init__(self, root: Path) -> None:
        self.server = InputServer(Store(root))
        listener = socket.create_server((ME, 0))
        self.port: int = listener.getsockname()[1]
        self.server.admit({ME: Grant()})
        self.server.listen(listener)

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(ME, self.port, timeout=PATIENCE_S)

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = self.connection()
        try:
            connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def stalled(self) -> socket.socket:
        """A reader that asks for everything and takes nothing."""
        reader = socket.create_connection((ME, self.port), PATIENCE_S)
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.sendall(b"GET /mnist/images HTTP/1.1\r\nHost: x\r\n\r\n")
        return reader


@pytest.fixture
def served(root: Path) -> Iterator[Served]:
    served = Served(root)
    yield served
    served.server.close()


def test_files_and_parts_of_them(served: Served) -> None:
    status, headers, body = served.ask("/mnist/images")
    assert (status, body) == (200, CONTENT)
    assert headers["Accept-Ranges"] == "bytes"
    status, part, body = served.ask("/mnist/images", Range="bytes=1000-1999", If_Range=headers["ETag"])
    assert (status, body, part["Content-Range"]) == (206, CONTENT[1000:2000], f"bytes 1000-1999/{len(CONTENT)}")
    status, _, body = served.ask("/mnist/images", Range="bytes=1000-1999", If_Range='"another"')
    assert (status, body) == (200, CONTENT), "it has changed since: a part of it would not fit the rest"
    assert served.ask("/mnist/images", Range=f"bytes={len(CONTENT)}-")[0] == 416
    status, headers, body = served.ask("/mnist/images", method="HEAD")
    assert (status, headers["Content-Length"], body) == (200, str(len(CONTENT)), b"")
    assert served.ask("/mnist/empty")[::2] == (200, b"")


def test_folders_are_listed(served: Served) -> None:
    assert json.loads(served.ask("/")[2]) == {"datasets": ["mnist", "words"]}
    assert json.loads(served.ask("/mnist/")[2]) == {
        "files": [{"name": "empty", "size": 0}, {"name": "images", "size": len(CONTENT)}],
        "folders": ["train"],
        "complete": True,
    }


def test_what_is_wrong_is_said(served: Served) -> None:
    status, _, body = served.ask("/mnist/none")
    assert (status, json.loads(body)) == (404, {"error": "mnist/none is not there"})
    assert served.ask("/mnist/%2e%2e/%2e%2e/etc/passwd")[0] == 404
    assert served.ask("/mnist/%ff")[0] == 400
    assert served.ask("/mnist/images", method="PUT")[0] == 501
    assert served.ask("/mnist/images", method="DELETE")[0] == 501
    served.server.admit({ME: Grant(frozenset({"words"}))})
    status, _, body = served.ask("/mnist/images")
    assert status == 403
    assert json.loads(body)["error"].startswith("'mnist' is not among the datasets of this input, which are: words")
    assert json.loads(served.ask("/")[2]) == {"datasets": ["words"]}


def test_one_connection_serves_many_requests(served: Served) -> None:
    connection = served.connection()
    for path, status in (("/mnist/images", 200), ("/mnist/none", 404), ("/mnist/images", 200)):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
    connection.close()


def test_who_is_not_admitted_is_hung_up_on(served: Served) -> None:
    served.server.admit({"127.0.0.2": Grant()})
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        served.ask("/mnist/images")
    stranger = socket.create_connection((ME, served.port), PATIENCE_S)
    assert stranger.recv(100) == b"", "not a word, and none waited for"
    stranger.close()


def test_a_reader_that_is_no_longer_admitted_is_cut_off(served: Served, root: Path) -> None:
    size = 1 << 28  # more than all buffers on the way hold
    with (root / "mnist" / "images").open("wb") as file:
        file.truncate(size)
    reader = served.stalled()
    assert reader.recv(10, socket.MSG_WAITALL) == b"HTTP/1.1 2"
    served.server.admit({})
    received = 0
    try:
        while chunk := reader.recv(65536):
            received += len(chunk)
    except ConnectionError:
        pass
    assert received < size
    reader.close()


def test_a_reader_has_few_connections_and_others_have_theirs(served: Served) -> None:
    served.server.admit({ME: Grant(), "127.0.0.2": Grant()})
    stalled = [served.stalled() for _ in range(servers.MOST_EACH)]
    for reader in stalled:
        assert reader.recv(1)
    status, headers, _ = served.ask("/mnist/images")
    assert (status, headers["Retry-After"]) == (503, "1")
    other = http.client.HTTPConnection(ME, served.port, timeout=PATIENCE_S, source_address=("127.0.0.2", 0))
    other.request("GET", "/mnist/images")
    assert other.getresponse().read() == CONTENT
    other.close()
    for reader in stalled:
        reader.close()
    wait_for(lambda: served.ask("/")[0] == 200)


def test_however_many_there_are_each_reader_has_its_first_connection(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "MOST", 2)
    served.server.admit({ME: Grant(), "127.0.0.2": Grant(), "127.0.0.3": Grant()})
    stalled = [served.stalled() for _ in range(2)]
    for reader in stalled:
        assert reader.recv(1)
    assert served.ask("/")[0] == 503
    other = http.client.HTTPConnection(ME, served.port, timeout=PATIENCE_S, source_address=("127.0.0.2", 0))
    other.request("GET", "/mnist/images")
    assert other.getresponse().read() == CONTENT
    second = http.client.HTTPConnection(ME, served.port, timeout=PATIENCE_S, source_address=("127.0.0.2", 0))
    second.request("GET", "/mnist/images")
    assert second.getresponse().status == 503
    for each in (other, second, *stalled):
        each.close()


def test_readers_that_share_an_address_have_their_connections_each(served: Served) -> None:
    served.server.admit({ME: Grant(readers=2)})
    stalled = [served.stalled() for _ in range(2 * servers.MOST_EACH)]
    for reader in stalled:
        assert reader.recv(1)
    assert served.ask("/")[0] == 503
    for reader in stalled:
        reader.close()


def test_where_no_thread_can_be_had_a_reader_is_asked_to_come_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "ces-input":
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as none_left:
        none_left.setattr(threading.Thread, "start", refuse)
        for _ in range(servers.MOST_EACH + 1):
            assert served.ask("/")[0] == 503
    assert served.ask("/mnist/images")[2] == CONTENT, "and none of the places was lost"


def test_who_came_just_before_the_close_is_hung_up_on_too(served: Served) -> None:
    listener = served.server._listener
    assert listener is not None
    served.server.close()
    ours, theirs = socket.socketpair()
    served.server._let_in(listener, theirs, ME)
    assert ours.recv(1) == b""
    assert served.server._connections == {}
    ours.close()


def test_a_file_that_shrinks_meanwhile_is_seen_to_be_short(served: Served, root: Path) -> None:
    big = root / "mnist" / "big"
    with big.open("wb") as file:
        file.truncate(1 << 26)
    reader = served.connection()
    reader.request("GET", "/mnist/big")
    answer = reader.getresponse()
    answer.read(10)
    with big.open("wb") as file:
        file.truncate(1 << 10)
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        answer.read()
    reader.close()


def test_a_silent_reader_is_let_go(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers._Handler, "timeout", 0.05)
    served = Served(root)
    silent = socket.create_connection((ME, served.port), PATIENCE_S)
    assert silent.recv(1) == b""
    silent.close()
    served.server.close()


def test_whoever_serves_anew_serves_there_alone(served: Served) -> None:
    again = socket.create_server((ME, 0))
    old, served.port = served.port, again.getsockname()[1]
    served.server.listen(again)
    assert served.ask("/mnist/images")[2] == CONTENT
    with pytest.raises(ConnectionError):
        socket.create_connection((ME, old), PATIENCE_S)


# the keeper


def wanted(*readers: Reader, **fields: Any) -> NetworkWanted:
    return NetworkWanted(node="n", generation=1, readers=list(readers), **{"router": "10.0.0.1"} | fields)


def reader(address: str = ME, *datasets: str, job: str = "j.1") -> Reader:
    return Reader(job=job, address=address, datasets=list(datasets))


def flow_class(kind: Any, src: str, dst: str, rate: int, ceiling: int | None = None) -> FlowClass:
    return FlowClass(job="j.1", number=1, kind=kind, via="s", src=src, dst=dst, rate=rate, ceiling=ceiling)


def test_a_reader_is_sent_to_as_fast_as_its_class_lets() -> None:
    classes = [
        flow_class("data", "10.0.0.1", "10.1.0.2", 20),
        flow_class("data", "10.0.0.1", "10.1.0.3", 20, ceiling=50),
        flow_class("data", "10.0.0.9", "10.1.0.4", 20),
        flow_class("return", "10.0.0.1", "10.1.0.4", 20),
    ]
    readers = [reader(f"10.1.0.{i}", "mnist") for i in (2, 3, 4)]
    grants = grants_of(wanted(*readers, classes=classes))
    assert {address: grant.rate for address, grant in grants.items()} == {
        "10.1.0.2": 20,
        "10.1.0.3": 50,
        "10.1.0.4": None,
    }
    assert {grant.datasets for grant in grants.values()} == {frozenset({"mnist"})}


def test_readers_that_share_an_address_may_read_what_any_of_them_may() -> None:
    host, other = "192.0.2.1", "192.0.2.2"
    readers = [reader(host, "mnist"), reader(host, "words", "mnist", job="k.1"), reader(other, "birds")]
    grants = grants_of(wanted(*readers, mode="none"))
    assert grants == {
        host: Grant(frozenset({"mnist", "words"}), readers=2),
        other: Grant(frozenset({"birds"})),
    }
    everything = grants_of(wanted(*readers, reader(host, job="l.1"), mode="none"))
    assert everything[host] == Grant(frozenset(), readers=3), "one of them may read all"


def test_an_address_is_known_however_it_is_written() -> None:
    classes = [flow_class("data", "10.0.0.1", "2001:db8:0::2", 20)]
    grants = grants_of(wanted(reader("2001:DB8::0:2", "mnist"), classes=classes))
    assert grants == {"2001:db8::2": Grant(frozenset({"mnist"}), 20)}


@pytest.fixture
def network() -> FakeNetwork:
    return FakeNetwork()


def keeper_of(root: Path | None, network: FakeNetwork, folder: Path) -> InputKeeper:
    return InputKeeper("n", root, network, "192.0.2.1", folder / "data-port")


async def test_what_is_offered_is_told_once_it_is_served(root: Path, network: FakeNetwork, tmp_path: Path) -> None:
    keeper = keeper_of(root, network, tmp_path)
    assert await keeper.report() is None, "nothing that is not so must be told, nor taken back"
    assert await keeper.follow(wanted(reader())) == {}
    assert network.listened == [("10.0.0.1", DATA_PORT)], "at the node's address in the data plane, and nowhere else"
    report = await keeper.report()
    assert report is not None
    assert (report.node, report.datasets) == ("n", ["mnist", "words"])
    assert report.port
    connection = http.client.HTTPConnection(ME, report.port, timeout=PATIENCE_S)
    connection.request("GET", "/mnist/images")
    assert connection.getresponse().read() == CONTENT
    connection.close()
    await keeper.follow(wanted(reader()))
    assert len(network.listened) == 1
    network.made += 1
    await keeper.follow(wanted(reader()))
    assert len(network.listened) == 2, "the data plane was made anew"
    (root / "birds").mkdir()
    report = await keeper.report()
    assert report is not None
    assert report.datasets == ["birds", "mnist", "words"]
    keeper.close()


async def test_without_a_data_plane_the_port_stays_over_a_restart(
    root: Path, network: FakeNetwork, tmp_path: Path
) -> None:
    first = keeper_of(root, network, tmp_path)
    await first.follow(wanted(mode="none"))
    assert network.listened == [("192.0.2.1", 0)]
    report = await first.report()
    first.close()
    again = keeper_of(root, network, tmp_path)
    await again.follow(wanted(mode="none"))
    assert report is not None
    assert network.listened[1] == ("192.0.2.1", report.port)
    again.close()


async def test_a_disk_that_takes_nothing_keeps_no_reader_waiting(
    root: Path, network: FakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(keepers, "write_atomically", full)
    keeper = keeper_of(root, network, tmp_path)
    assert await keeper.follow(wanted(reader(), mode="none")) == {}
    report = await keeper.report()
    assert report is not None
    assert (report.port > 0, report.datasets) == (True, ["mnist", "words"])
    keeper.close()


async def test_a_port_that_stays_is_not_written_again(
    root: Path, network: FakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(keepers, "write_atomically", lambda _, text: written.append(text))
    listener = socket.create_server((ME, 0))
    port = listener.getsockname()[1]
    (tmp_path / "data-port").write_text(str(port))

    async def same(address: str, asked: int) -> socket.socket:
        assert (address, asked) == ("192.0.2.1", port)
        return listener

    monkeypatch.setattr(network, "listen", same)
    keeper = keeper_of(root, network, tmp_path)
    await keeper.follow(wanted(mode="none"))
    assert written == []
    keeper.close()


@pytest.mark.parametrize("kept", ["65536", "-1", "0", "99999999999999999999", "", "x", "4.5"])
async def test_a_kept_port_that_is_none_is_not_tried(
    root: Path, network: FakeNetwork, tmp_path: Path, kept: str
) -> None:
    (tmp_path / "data-port").write_text(kept)
    keeper = keeper_of(root, network, tmp_path)
    assert await keeper.follow(wanted(mode="none")) == {}
    assert network.listened == [("192.0.2.1", 0)]
    assert int((tmp_path / "data-port").read_text()) > 0
    keeper.close()


async def test_a_node_that_cannot_serve_says_so(root: Path, network: FakeNetwork, tmp_path: Path) -> None:
    keeper = keeper_of(root, network, tmp_path)
    network.deaf = True
    failed = await keeper.follow(wanted(reader(), reader("10.0.0.9", job="k.1")))
    assert failed.keys() == {"j.1", "k.1"}
    assert failed["j.1"] == f"data cannot be served: nothing can listen on 10.0.0.1, port {DATA_PORT}"
    report = await keeper.report()
    assert report is not None
    assert (report.port, report.datasets) == (DATA_PORT, [])
    network.deaf = False
    assert await keeper.follow(wanted(reader())) == {}
    keeper.close()


async def test_no_address_is_not_every_address(root: Path, network: FakeNetwork, tmp_path: Path) -> None:
    keeper = keeper_of(root, network, tmp_path)
    failed = await keeper.follow(wanted(reader(), router=""))
    assert failed == {"j.1": "data cannot be served: the node has no address in the data plane"}
    assert network.listened == []
    keeper.close()


async def test_a_node_without_data_offers_none(network: FakeNetwork, tmp_path: Path) -> None:
    keeper = keeper_of(None, network, tmp_path)
    assert await keeper.follow(wanted()) == {}
    report = await keeper.report()
    assert report is not None
    assert (report.port, report.datasets, network.listened) == (0, [], [])
    assert await keeper.follow(wanted(reader())) == {"j.1": "this node offers no data: CES_DATASETS is not set"}


async def test_a_folder_that_is_gone_is_no_longer_offered(root: Path, network: FakeNetwork, tmp_path: Path) -> None:
    keeper = keeper_of(root, network, tmp_path)
    await keeper.follow(wanted())
    before = await keeper.report()
    await asyncio.to_thread(root.rename, tmp_path / "away")
    report = await keeper.report()
    assert before is not None
    assert report is not None
    assert (report.port, report.datasets) == (before.port, []), "it may come back, and then workers find it there"
    keeper.close()


async def test_a_failed_listen_moves_nothing(root: Path, network: FakeNetwork, tmp_path: Path) -> None:
    """Without a data plane, where the port is known from the last run alone."""
    (tmp_path / "data-port").write_text("4711")
    network.deaf = True
    keeper = keeper_of(root, network, tmp_path)
    assert (await keeper.follow(wanted(reader(), mode="none"))).keys() == {"j.1"}
    report = await keeper.report()
    assert report is not None
    assert (report.port, report.datasets) == (4711, [])
    keeper.close()

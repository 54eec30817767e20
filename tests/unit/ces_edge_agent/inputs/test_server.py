"""Serving data: to whom, what, and how much at once."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from offered_data import CONTENT, ME, PATIENCE_S, datasets_in
from waiting import wait_for

from ces_edge_agent.inputs import server as servers
from ces_edge_agent.inputs.server import Grant, InputServer
from ces_edge_agent.inputs.store import Store


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return datasets_in(tmp_path)


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
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # what is on the way comes at once
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
    stalled = [served.stalled() for _ in range(servers.MAX_EACH)]
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
    wait_for(lambda: served.ask("/")[0] == 200, "the closed connections are no longer counted")


def test_however_many_there_are_each_reader_has_its_first_connection(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "MAX_TOTAL", 2)
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
    stalled = [served.stalled() for _ in range(2 * servers.MAX_EACH)]
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
        for _ in range(servers.MAX_EACH + 1):
            assert served.ask("/")[0] == 503
    assert served.ask("/mnist/images")[2] == CONTENT, "and none of the places was lost"


def test_who_came_just_before_the_close_is_hung_up_on_too(served: Served) -> None:
    listener = served.server._listener
    assert listener is not None
    served.server.close()
    ours, theirs = socket.socketpair()
    served.server._accept_one(listener, theirs, ME)
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


def test_a_second_listen_serves_there_alone(served: Served) -> None:
    again = socket.create_server((ME, 0))
    old, served.port = served.port, again.getsockname()[1]
    served.server.listen(again)
    assert served.ask("/mnist/images")[2] == CONTENT
    with pytest.raises(ConnectionError):
        socket.create_connection((ME, old), PATIENCE_S)

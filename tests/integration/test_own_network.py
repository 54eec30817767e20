"""The network in which tests put a browser: nothing on the machine changes it, and only what is asked for leads out."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from own_network import HERE, OwnNetwork, own_network

pytestmark = pytest.mark.needs("root")
PATIENCE_S = 20


@pytest.fixture
def network() -> Iterator[OwnNetwork]:
    with own_network() as made:
        assert made is not None
        yield made


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that sends back what it gets."""

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while data := connection.recv(1024):
                connection.sendall(data)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server((HERE, 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def connected(network: OwnNetwork, port: int) -> socket.socket:
    with network.entered():
        return socket.create_connection((HERE, port), PATIENCE_S)


def devices() -> list[str]:
    found = subprocess.run(["ip", "-j", "link"], capture_output=True, check=True, text=True).stdout
    return [link["ifname"] for link in json.loads(found)]


def test_it_has_a_loopback_device_alone_and_whoever_enters_comes_back(network: OwnNetwork) -> None:
    outside = os.readlink("/proc/thread-self/ns/net")
    with network.entered():
        assert os.readlink("/proc/thread-self/ns/net") != outside
        assert devices() == ["lo"]
    assert os.readlink("/proc/thread-self/ns/net") == outside


def test_only_ports_that_are_asked_for_lead_out(network: OwnNetwork, echo: int) -> None:
    with pytest.raises(ConnectionRefusedError):
        connected(network, echo)
    with network.way_out(echo), connected(network, echo) as one, connected(network, echo) as other:
        for each, text in ((one, b"one" * 100_000), (other, b"other")):
            threading.Thread(target=each.sendall, args=(text,)).start()
            with each.makefile("rb") as answers:
                assert answers.read(len(text)) == text
    with pytest.raises(ConnectionRefusedError):
        connected(network, echo)


def test_an_end_on_one_side_is_one_on_the_other(network: OwnNetwork) -> None:
    with socket.create_server((HERE, 0)) as listening, network.way_out(port := listening.getsockname()[1]):
        for closed, left in ((0, 1), (1, 0)):
            inside = connected(network, port)
            ends = (inside, listening.accept()[0])
            ends[closed].close()
            ends[left].settimeout(PATIENCE_S)
            assert ends[left].recv(1) == b""
            ends[left].close()


def test_nobody_listening_is_an_end_at_once(network: OwnNetwork) -> None:
    with socket.create_server((HERE, 0)) as listening:
        port = listening.getsockname()[1]
    with network.way_out(port), connected(network, port) as inside, suppress(ConnectionResetError):
        assert inside.recv(1) == b""

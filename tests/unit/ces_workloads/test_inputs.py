"""Reading data that lies on a node: what is asked, what happens when the node goes away, and what is said then."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import struct
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from ces_workloads import inputs
from ces_workloads.data import DataUnavailable, load
from ces_workloads.inputs import Input, InputUnavailable
from ces_workloads.peers import BadEnvironment

CONTENT = os.urandom(300_000)


def idx(values: np.ndarray) -> bytes:
    header = bytes((0, 0, 8, values.ndim)) + struct.pack(f">{values.ndim}I", *values.shape)
    return gzip.compress(header + values.astype(np.uint8).tobytes())


class Node:
    """A node that serves ``files``. ``cut``: after how many bytes it hangs up, for the first answers; ``busy``: how
    often it answers 503 first. ``asked``: the Range of every request."""

    def __init__(self) -> None:
        generator = np.random.default_rng(0)
        self.files: dict[str, bytes] = {
            "/": json.dumps({"datasets": ["mnist"]}).encode(),
            "/mnist/t10k-images-idx3-ubyte.gz": idx(generator.integers(0, 256, (50, 4, 6))),
            "/mnist/t10k-labels-idx1-ubyte.gz": idx(generator.integers(0, 10, 50)),
            "/mnist/blob": CONTENT,
        }
        self.cut: list[int] = []
        self.busy = 0
        self.asked: list[str | None] = []
        self.between: Callable[[], object] = lambda: None
        node = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                node.answer(self)

            def log_message(self, *_: Any) -> None:
                """Nobody reads it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.headers.get("Range"))
        if self.busy:
            self.busy -= 1
            request.send_error(503)
            return
        content = self.files.get(request.path)
        if content is None:
            body = json.dumps({"error": f"{request.path} is not there"}).encode()
            request.send_response(404)
        else:
            mark = f'"{hash(content)}"'
            part = request.headers.get("Range") if request.headers.get("If-Range") == mark else None
            start = int(part.removeprefix("bytes=").rstrip("-")) if part else 0
            body = content[start:]
            request.send_response(206 if part else 200)
            request.send_header("ETag", mark)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body[: self.cut.pop(0)] if self.cut else body)
        self.between()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/"

    def environment(self, *datasets: str) -> dict[str, str]:
        entry = {"node": "n1", "url": self.url, "datasets": list(datasets), "bandwidth": 10**7}
        return {"CES_INPUTS": json.dumps([entry])}

    def input(self) -> Input:
        return Input("n1", self.url, ("mnist",), 10**7)


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    monkeypatch.setattr(inputs, "PAUSE_S", 0.0)
    made = Node()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.mark.parametrize("named", [("mnist",), ("words", "mnist"), ()])
def test_images_come_from_the_node_that_has_them(node: Node, named: tuple[str, ...]) -> None:
    images = load("mnist", node.environment(*named) | {"CES_DATA_DIR": "/nowhere"})
    assert (len(images.train), len(images.test), images.origin) == (40, 10, "on node n1 (CES_INPUTS)")


def test_what_no_input_has_comes_from_the_folder(node: Node) -> None:
    with pytest.raises(DataUnavailable, match=r"/nowhere/fashion-mnist/.* is absent; CES_DATA_DIR must hold it"):
        load("fashion-mnist", node.environment("mnist") | {"CES_DATA_DIR": "/nowhere"})
    with pytest.raises(DataUnavailable, match="or the dataset fashion-mnist among the worker's `inputs`"):
        load("fashion-mnist", node.environment())


def test_digits_need_no_node() -> None:
    assert load("digits", {"CES_INPUTS": "[]"}).origin == "of scikit-learn"


def test_a_lost_connection_goes_on_where_it_ended(node: Node) -> None:
    node.cut = [100_000, 50_000]
    assert node.input().read("mnist/blob") == CONTENT
    assert node.asked == [None, "bytes=100000-", "bytes=150000-"]


def test_what_came_before_the_silence_is_kept(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "SILENCE_S", 0.2)
    given_up = threading.Event()
    node.cut = [1000]
    node.between = given_up.wait  # the connection stays, and nothing comes
    ask = http.client.HTTPConnection.request

    def again(self: http.client.HTTPConnection, *args: Any, **options: Any) -> None:
        if node.asked:
            given_up.set()
        ask(self, *args, **options)

    monkeypatch.setattr(http.client.HTTPConnection, "request", again)
    assert node.input().read("mnist/blob") == CONTENT
    assert node.asked == [None, "bytes=1000-"]


def test_a_file_that_has_changed_meanwhile_is_read_anew(node: Node) -> None:
    node.cut = [100_000]
    changed = os.urandom(1000)
    node.between = lambda: node.files.update({"/mnist/blob": changed})
    assert node.input().read("mnist/blob") == changed


def test_a_busy_node_is_asked_again(node: Node) -> None:
    node.busy = 2
    assert node.input().read("mnist/blob") == CONTENT


def test_a_refusal_is_passed_on_at_once(node: Node) -> None:
    with pytest.raises(InputUnavailable, match=r"mnist/none of node n1 \(http://127.*: /mnist/none is not there"):
        node.input().read("mnist/none")
    assert len(node.asked) == 1
    del node.files["/mnist/t10k-labels-idx1-ubyte.gz"]
    with pytest.raises(DataUnavailable, match=r"t10k-labels-idx1-ubyte.gz of node n1 .* is not there"):
        load("mnist", node.environment("mnist"))


def test_a_node_that_stays_away_is_given_up(node: Node) -> None:
    node.server.shutdown()
    node.server.server_close()
    with pytest.raises(InputUnavailable, match=r"mnist/blob of node n1 .*refused; nothing has come for 0 s"):
        node.input().read("mnist/blob", patience_s=0)


def test_broken_files_are_named_with_their_node(node: Node) -> None:
    node.files["/mnist/t10k-labels-idx1-ubyte.gz"] = b"not gzip"
    with pytest.raises(DataUnavailable, match=r"mnist/t10k-labels-idx1-ubyte.gz on node n1 .*cannot be read"):
        load("mnist", node.environment("mnist"))


@pytest.mark.parametrize("text", ["{", "{}x", "[1]", '[{"node": "n"}]', '[{"node": "n", "url": "ftp://x/"}]', "3"])
def test_a_variable_that_makes_no_sense_is_named(text: str) -> None:
    with pytest.raises(BadEnvironment, match="CES_INPUTS is no list of inputs"):
        inputs.from_environment({"CES_INPUTS": text})


def test_no_variable_means_no_inputs() -> None:
    assert inputs.from_environment({}) == inputs.from_environment({"CES_INPUTS": "[]"}) == ()

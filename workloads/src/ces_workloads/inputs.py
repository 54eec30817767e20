"""Data that lies on a node: what ``CES_INPUTS`` offers this worker, and reading it over the network."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from ces_workloads.peers import BadEnvironment

SILENCE_S = 30.0  # a connection over which nothing comes for this long is given up for another
PATIENCE_S = 120.0  # and so is the file, where no connection brought a byte
PAUSE_S = 0.5
CHUNK = 1 << 16
PASSING = {500, 502, 503, 504}  # worth asking again


class InputUnavailable(Exception):
    """What was asked for cannot be read; the message says what, where, and why."""


@dataclass(frozen=True)
class Input:
    """A node's data that this worker may read. ``datasets``: their names, none for all that the node offers;
    ``bandwidth``: what was reserved for it, in bit/s."""

    node: str
    url: str
    datasets: tuple[str, ...]
    bandwidth: int

    def has(self, dataset: str) -> bool:
        """Raises InputUnavailable where the node must be asked and does not answer."""
        return dataset in (self.datasets or _listed(self))

    def read(self, path: str, patience_s: float = PATIENCE_S) -> bytes:
        """The whole of a file, as ``DATASET/FILE``. A connection that is lost is made again, and goes on where the last
        one ended. Raises InputUnavailable."""
        return _Transfer(self, path).finish(patience_s)


def from_environment(environment: Mapping[str, str]) -> tuple[Input, ...]:
    """All of this worker's inputs; none where ``CES_INPUTS`` is not set. Raises BadEnvironment."""
    try:
        entries = json.loads(environment.get("CES_INPUTS") or "[]")
        return tuple(_input(entry) for entry in entries)
    except (ValueError, TypeError, KeyError) as error:
        raise BadEnvironment(f"CES_INPUTS is no list of inputs: {error!r}") from None


def _input(entry: Any) -> Input:
    url = str(entry["url"])
    if urlsplit(url).scheme != "http" or not urlsplit(url).hostname:
        raise ValueError(f"{url!r} is no http address")
    return Input(str(entry["node"]), url, tuple(map(str, entry["datasets"])), int(entry["bandwidth"]))


def _listed(source: Input) -> list[str]:
    content = json.loads(source.read(""))
    return [str(name) for name in content["datasets"]]


class _Refused(Exception):
    """The node answers that it will not; asking again would not change it."""


class _Transfer:
    """A file on its way, over as many connections as it takes."""

    def __init__(self, source: Input, path: str) -> None:
        self._source, self._path = source, path
        self._content = bytearray()
        self._mark: str | None = None  # of the file that the content is a part of

    def finish(self, patience_s: float) -> bytes:
        last = time.monotonic()
        while True:
            before = len(self._content)
            try:
                if self._go_on():
                    return bytes(self._content)
                why = "the connection was lost"
            except _Refused as error:
                raise InputUnavailable(f"{self._where()} cannot be read: {error}") from None
            except (OSError, http.client.HTTPException) as error:
                why = str(error) or type(error).__name__
            if len(self._content) > before:
                last = time.monotonic()
            elif time.monotonic() - last > patience_s:
                raise InputUnavailable(
                    f"{self._where()} cannot be read: {why}; nothing has come for {patience_s:g} s "
                    f"({before} bytes had before)"
                )
            time.sleep(PAUSE_S)

    def _where(self) -> str:
        return f"{self._path or 'the list of datasets'} of node {self._source.node} ({self._source.url})"

    def _go_on(self) -> bool:
        """One connection's worth; whether the file is complete. Raises OSError, HTTPException, _Refused."""
        url = urlsplit(self._source.url)
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=SILENCE_S)
        try:
            headers = {}
            if self._content and self._mark:  # a part of another file would not fit the rest: then all of it comes
                headers = {"Range": f"bytes={len(self._content)}-", "If-Range": self._mark}
            connection.request("GET", url.path + quote(self._path), headers=headers)
            answer = connection.getresponse()
            if answer.status in PASSING:
                raise OSError(f"the node answers {answer.status} {answer.reason}")
            if answer.status not in (200, 206):
                raise _Refused(_said(answer))
            if answer.status == 200:
                self._content.clear()
            self._mark = answer.getheader("ETag")
            missing = int(answer.getheader("Content-Length") or 0)
            # What has come is kept, whatever happens to the rest: read() would lose it where it then waits in vain.
            while missing > 0 and (chunk := answer.read1(min(CHUNK, missing))):
                self._content += chunk
                missing -= len(chunk)
            return missing == 0
        finally:
            connection.close()


def _said(answer: http.client.HTTPResponse) -> str:
    """The node's own words, or what HTTP calls it."""
    try:
        return str(json.loads(answer.read(CHUNK))["error"])
    except (ValueError, KeyError, TypeError):
        return f"{answer.status} {answer.reason}"

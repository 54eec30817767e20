"""Files as lines of a log, by which what a worker has made comes back from its node.

A file is announced with its size and digest, and comes compressed, in pieces. The worker may be
hostile: only files of kinds that nothing runs are taken, by plain names, and all sizes are bounded.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

PIECE: Final = 48 * 1024
"""Bytes of a piece."""
MOST: Final = 16 * 1024 * 1024
"""Bytes of all files together, compressed: of a long log an agent keeps the last 24 MiB for sure, and letters take a
third more."""
UNPACKED: Final = 256 * 1024 * 1024
"""Bytes of a file."""
FILES: Final = 32
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}\.(csv|json|md|onnx|png|pt)")
ANNOUNCED, PART = "parcel", "parcel_part"


def send(files: Iterable[Path], say: Callable[[str], None]) -> None:
    """Say the files that there are, as lines. One that is too large is named instead."""
    left = MOST
    for file in files:
        if not file.is_file():
            continue
        content = zlib.compress(file.read_bytes())
        if len(content) > left:
            say(f"{file.name} is not sent: it is too large for a log")
            continue
        left -= len(content)
        for line in packed(file.name, content):
            say(line)


def packed(name: str, content: bytes) -> Iterator[str]:
    """The lines of a file, given its compressed content."""
    yield json.dumps({ANNOUNCED: {"name": name, "bytes": len(content), "sha256": _digest(content)}})
    for at in range(0, len(content), PIECE):
        data = base64.b64encode(content[at : at + PIECE]).decode()
        yield json.dumps({PART: {"name": name, "at": at, "data": data}})


def is_parcel(line: str) -> bool:
    """Whether a line of a log is part of a file."""
    return line.startswith(('{"parcel": ', '{"parcel_part": '))


class Unpacking:
    """The files in the lines of a log. Of a file that comes several times the last whole one counts; of more than
    :data:`FILES` the first."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self._seen: set[str] = set()
        self._expected: dict[str, tuple[int, str]] = {}
        self._parts: dict[str, bytearray] = {}

    def take(self, line: str) -> None:
        """A line that is no part of a file, or cannot be read, is passed over."""
        if not is_parcel(line):
            return
        try:
            said = json.loads(line)
            if ANNOUNCED in said:
                self._announced(said[ANNOUNCED])
            else:
                self._part(said[PART])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return

    def _announced(self, said: Mapping[str, Any]) -> None:
        name, size = said["name"], said["bytes"]
        known = name in self._seen or len(self._seen) < FILES
        if known and NAME.fullmatch(name) and isinstance(size, int) and 0 < size <= MOST:
            self._seen.add(name)
            self._expected[name], self._parts[name] = (size, str(said["sha256"])), bytearray()

    def _part(self, said: Mapping[str, Any]) -> None:
        name = said["name"]
        if name not in self._parts or said["at"] != len(self._parts[name]):
            return
        data, (size, digest) = base64.b64decode(said["data"], validate=True), self._expected[name]
        if not data or len(self._parts[name]) + len(data) > size:
            return
        self._parts[name] += data
        if len(self._parts[name]) == size:
            content = bytes(self._parts.pop(name))
            if _digest(content) == digest:
                self._unpack(name, content)

    def _unpack(self, name: str, content: bytes) -> None:
        inflating = zlib.decompressobj()
        try:
            found = inflating.decompress(content, UNPACKED)
        except zlib.error:
            return
        if inflating.eof:
            self.files[name] = found


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

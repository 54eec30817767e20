"""Files as lines of a log, by which what a worker has made comes back from its node.

A file is announced with its size and digest, and comes in pieces.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

PIECE: Final = 48 * 1024
"""Bytes of a piece."""
MOST: Final = 24 * 1024 * 1024
"""Bytes of a file at most: an agent keeps the last 24 MiB of a long log for sure, and the letters take a third more."""
FILES: Final = 32
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
ANNOUNCED, PART = "parcel", "parcel_part"


def packed(name: str, content: bytes) -> Iterator[str]:
    """The lines of a file. Raises ValueError for one that is too large."""
    if len(content) * 4 // 3 > MOST:
        raise ValueError(f"{name}: {len(content)} bytes are too many for a log")
    yield json.dumps({ANNOUNCED: {"name": name, "bytes": len(content), "sha256": _digest(content)}})
    for at in range(0, len(content), PIECE):
        data = base64.b64encode(content[at : at + PIECE]).decode()
        yield json.dumps({PART: {"name": name, "at": at, "data": data}})


def is_parcel(line: str) -> bool:
    """Whether a line of a log is part of a file."""
    return line.startswith(('{"parcel": ', '{"parcel_part": '))


class Unpacking:
    """The files in the lines of a log. Of a file that comes several times the last whole one counts. Names are those
    of files in a folder, none of which is hidden; others, and more than :data:`FILES` of them, are passed over."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
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
        except (ValueError, KeyError, TypeError, AttributeError):
            return

    def _announced(self, said: Mapping[str, Any]) -> None:
        name, size = said["name"], said["bytes"]
        known = name in self._expected or len(self._expected) < FILES
        if known and NAME.fullmatch(name) and isinstance(size, int) and 0 <= size <= MOST:
            self._expected[name], self._parts[name] = (size, str(said["sha256"])), bytearray()
            self._complete(name)

    def _part(self, said: Mapping[str, Any]) -> None:
        name = said["name"]
        if name not in self._parts or said["at"] != len(self._parts[name]):
            return
        data = base64.b64decode(said["data"], validate=True)
        if len(self._parts[name]) + len(data) <= self._expected[name][0]:
            self._parts[name] += data
            self._complete(name)

    def _complete(self, name: str) -> None:
        (size, digest), content = self._expected[name], bytes(self._parts[name])
        if len(content) == size and _digest(content) == digest:
            self.files[name] = content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

"""What a cluster's background process tells those who wait for it: lines in a file, readable at any time later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from ces_common.messages.base import Message

Kind = Literal["step", "ready", "failed", "stopped"]


class News(Message):
    """``step``: ``done`` of ``total`` parts of it are up. ``failed``: why, in ``text``. ``left``: what could not be
    removed."""

    kind: Kind
    step: str = ""
    done: int = 0
    total: int = 0
    text: str = ""
    left: list[str] = []


class Told:
    """Appends news."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def say(self, news: News) -> None:
        if self._path.parent.is_dir():
            with self._path.open("a") as file:
                file.write(news.model_dump_json(exclude_defaults=True) + "\n")


def read_news(path: Path, offset: int) -> tuple[list[News], int]:
    """The news after a place in the file, and the place after them; a line still being written waits."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read()
    except OSError:
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    return list(_parse(whole)), offset + len(whole)


def _parse(data: bytes) -> Iterator[News]:
    for line in data.splitlines():
        yield News.model_validate(json.loads(line))

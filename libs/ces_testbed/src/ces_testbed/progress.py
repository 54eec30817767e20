"""News of a cluster's background process for whoever waits for it: lines in a file, readable at any time later."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from ces_common.messages.base import Message

Kind = Literal["step", "remark", "ready", "failed", "stopped"]
UNDER_WAY: tuple[Kind, ...] = ("step", "remark")
"""News after which more follow."""


class News(Message):
    """``step``: ``done`` of ``total`` parts of it are up. ``remark``: what is being waited for, or what to know, in
    ``text``. ``ready``: the API's URL, in ``text``. ``failed``: why, in ``text``. ``left``: what could not be
    removed."""

    kind: Kind
    step: str = ""
    done: int = 0
    total: int = 0
    text: str = ""
    left: list[str] = []


def write_news(path: Path, news: News) -> None:
    """Append news to the file. Where it cannot be written, as on a full disk, it is lost: what is going on matters
    more."""
    with contextlib.suppress(OSError), path.open("a") as file:
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

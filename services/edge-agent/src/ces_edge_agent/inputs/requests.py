"""Parsing of requests for data, and which of them are granted. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class BadRequest(ValueError):
    """A malformed request; the text says what to write."""


class OutOfRange(Exception):
    """A range beyond the end of the file."""


@dataclass(frozen=True)
class Span:
    """``count`` bytes of a file from ``start`` on; ``partial``: a range was asked for."""

    start: int
    count: int
    partial: bool = False


def parse_target(target: str) -> list[str]:
    """The names in a request's path; none for the root. Raises BadRequest."""
    try:
        path = urlsplit(target).path
    except ValueError:  # such as an address in unclosed brackets
        path = ""
    if not path.startswith("/"):
        raise BadRequest("ask for /, /DATASET/ or /DATASET/FILE")
    try:
        names = [unquote(part, errors="strict") for part in path.strip("/").split("/")]
    except UnicodeDecodeError:
        raise BadRequest("a path is written in UTF-8") from None
    return [] if names == [""] else names


def may_read(dataset: str, granted: Collection[str]) -> bool:
    """Whether a reader with this grant may read the dataset; an empty grant is for all datasets."""
    return not granted or dataset in granted


def union(grants: Iterable[Collection[str]]) -> frozenset[str]:
    """The grant that covers all of these: empty, for all datasets, if any of them is."""
    each = list(grants)
    return frozenset().union(*each) if all(each) else frozenset()


def parse_range(header: str | None, size: int) -> Span:
    """The part of a file that a Range header asks for, RFC 9110; the whole file if there is no header, or one that is
    not supported, such as several ranges. Raises OutOfRange."""
    found = _RANGE.fullmatch(header.strip()) if header else None
    if found is None or found.groups() == ("", ""):
        return Span(0, size)
    first, last = found.groups()
    if not first:  # a suffix: the last bytes
        count = min(int(last), size)
        if count == 0:
            raise OutOfRange
        return Span(size - count, count, partial=True)
    start, end = int(first), min(int(last), size - 1) if last else size - 1
    if last and int(last) < start:
        return Span(0, size)
    if start >= size:
        raise OutOfRange
    return Span(start, end - start + 1, partial=True)

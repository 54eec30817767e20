"""The format of a record: questions and answers as JSON, floats by their shortest exact representation."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
Case = dict[str, Any]
Answers = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """One kind of question. ``draw(share)`` makes the cases, fewer for a share below 1; ``answer`` gives everybody's
    answer to a case by name; ``missing`` says why this part cannot be run here, None where it can. ``by_name``: whether
    tables have a row for each name."""

    name: str
    draw: Callable[[float], Iterator[Case]]
    answer: Callable[[Case], Answers]
    missing: Callable[[], str | None] = lambda: None
    by_name: bool = True


@dataclass
class Comparison:
    """Answers of one part, by who gave them. ``differences``: the first ones, in words."""

    equal: dict[str, int] = field(default_factory=dict)
    differing: dict[str, int] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)

    def add(self, case: str, recorded: Answers, now: Answers) -> None:
        for who in recorded | now:
            same = who in recorded and who in now and text(recorded[who]) == text(now[who])
            counts = self.equal if same else self.differing
            counts[who] = counts.get(who, 0) + 1
            if not same:
                where = first_difference(plain(recorded.get(who)), plain(now.get(who)))
                self.differences.append(f"{case}, {who}: {where}")


def text(value: Any) -> str:
    """Canonical: equal texts mean equal values, bit for bit."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def plain(value: Any) -> Any:
    """What is left of a value once it was written and read."""
    return json.loads(text(value))


def digest(value: Any) -> str:
    """Of a value that is too long to be kept."""
    return hashlib.sha256(text(value).encode()).hexdigest()[:32]


def first_difference(one: Any, other: Any, where: str = "answer") -> str:
    """Where two values differ first, and how."""
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            gone, new = (", ".join(sorted(keys)) or "nothing" for keys in (one.keys() - other, other.keys() - one))
            return f"{where} has no {gone} and has {new} beside: {_short(other)}"
        for key in sorted(one):
            if text(one[key]) != text(other[key]):
                return first_difference(one[key], other[key], f"{where}.{key}")
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for i, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            if text(mine) != text(theirs):
                return first_difference(mine, theirs, f"{where}[{i}]")
    return f"{where} was {_short(one)}, is {_short(other)}"


def write_part(folder: Path, part: str, lines: Iterator[Mapping[str, Any]]) -> int:
    """Writes a part line by line; returns how many there were."""
    count = 0
    with gzip.open(_file(folder, part), "wt", encoding="utf-8", compresslevel=5) as file:
        for line in lines:
            file.write(text(line) + "\n")
            count += 1
    return count


def read_part(folder: Path, part: str) -> Iterator[dict[str, Any]]:
    """The lines of a part. Raises FileNotFoundError."""
    with gzip.open(_file(folder, part), "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _file(folder: Path, part: str) -> Path:
    return folder / f"{part}.jsonl.gz"


def _short(value: Any) -> str:
    told = text(value)
    return told if len(told) <= 160 else f"{told[:157]}..."

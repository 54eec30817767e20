"""Files that come as lines of a log."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_rl import parcels
from ces_rl.parcels import FILES, PIECE, Unpacking, is_parcel, packed, send

SIZES = st.sampled_from([0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 5])


def unpacked(lines: list[str]) -> dict[str, bytes]:
    unpacking = Unpacking()
    for line in lines:
        unpacking.take(line)
    return unpacking.files


@given(SIZES, SIZES, st.data())
def test_what_is_packed_comes_out_again_between_other_lines(first: int, second: int, data: st.DataObject) -> None:
    contents = {"a.onnx": bytes(first), "b.json": b"x" * second}
    lines = [line for name, content in contents.items() for line in packed(name, zlib.compress(content, 0))]
    assert all(is_parcel(line) for line in lines)
    for at in data.draw(st.lists(st.integers(0, len(lines)), max_size=3)):
        lines.insert(at, '{"progress": {"step": 1}}')
    assert unpacked(lines) == contents


def whole(name: str, content: bytes) -> list[str]:
    """A file's lines; what does not compress comes in several."""
    return list(packed(name, zlib.compress(content, 0)))


def test_only_names_that_nothing_runs_and_not_too_many_are_taken() -> None:
    wrong = [
        "../../.ssh/keys.json",
        "/etc/passwd",
        ".bashrc",
        "a/b.json",
        "",
        "Makefile",
        "setup.py",
        "x" * 97 + ".json",
    ]
    names = [*wrong, *(f"file-{number}.json" for number in range(FILES + 5))]
    lines = [line for name in names for line in whole(name, b"{}")]
    assert unpacked(lines) == {f"file-{number}.json": b"{}" for number in range(FILES)}


def test_a_file_that_came_twice_is_the_last_whole_one() -> None:
    first, second = whole("a.pt", b"first" * PIECE), whole("a.pt", b"second" * PIECE)
    assert unpacked([*first, *second]) == {"a.pt": b"second" * PIECE}
    assert unpacked([*first, *second[:-1]]) == {"a.pt": b"first" * PIECE}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda lines: lines[:-1],
        lambda lines: lines[1:],
        lambda lines: [lines[0], lines[2], lines[1]],
        lambda lines: [lines[0], *(line.replace("AAAA", "BBBB", 1) for line in lines[1:])],
        lambda lines: [json.dumps({"parcel": {"name": "a.pt", "bytes": 10**12, "sha256": ""}}), *lines[1:]],
        lambda lines: [json.dumps({"parcel": {"name": "a.pt", "bytes": 3, "sha256": ""}}), *lines[1:]],
        lambda lines: ['{"parcel": 3}', '{"parcel": {}}', '{"parcel_part": {"name": "a.pt", "at"', *lines[1:]],
        lambda lines: ['{"parcel": ' + "[" * 100_000, *lines[1:]],
        lambda lines: list(packed("a.pt", b"not compressed")),
        lambda lines: list(packed("a.pt", zlib.compress(bytes(3 * PIECE))[:-8])),
    ],
)
def test_a_file_that_is_not_whole_is_none(spoil: object) -> None:
    lines = whole("a.pt", bytes(2 * PIECE))
    assert unpacked(spoil(lines)) == {}  # type: ignore[operator]


def test_a_file_that_grows_without_bounds_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcels, "UNPACKED", 1000)
    assert unpacked(list(packed("a.pt", zlib.compress(bytes(1000))))) == {"a.pt": bytes(1000)}
    assert unpacked(list(packed("a.pt", zlib.compress(bytes(10**6))))) == {}


def test_what_is_too_large_is_named_and_the_rest_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcels, "MOST", 100)
    names = ["card.json", "missing.json", "large.pt", "log.csv"]
    for name in names[:1] + names[2:]:
        (tmp_path / name).write_bytes(bytes(range(256)) if name == "large.pt" else b"x")
    said: list[str] = []
    send((tmp_path / name for name in names), said.append)
    assert unpacked(said) == {"card.json": b"x", "log.csv": b"x"}
    assert [line for line in said if not is_parcel(line)] == ["large.pt is not sent: it is too large for a log"]

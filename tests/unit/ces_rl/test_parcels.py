"""Files that come as lines of a log."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_rl import parcels
from ces_rl.parcels import FILES, PIECE, Unpacking, is_parcel, packed

SIZES = st.sampled_from([0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 5])


def unpacked(lines: list[str]) -> dict[str, bytes]:
    unpacking = Unpacking()
    for line in lines:
        unpacking.take(line)
    return unpacking.files


@given(SIZES, SIZES, st.data())
def test_what_is_packed_comes_out_again_between_other_lines(first: int, second: int, data: st.DataObject) -> None:
    contents = {"a.onnx": bytes(first), "b.json": b"x" * second}
    lines = [line for name, content in contents.items() for line in packed(name, content)]
    assert all(is_parcel(line) for line in lines)
    for at in data.draw(st.lists(st.integers(0, len(lines)), max_size=3)):
        lines.insert(at, '{"progress": {"step": 1}}')
    assert unpacked(lines) == contents


def test_only_plain_names_and_not_too_many_are_taken() -> None:
    wrong = ["../../.ssh/authorized_keys", "/etc/passwd", ".bashrc", "a/b", "", "x" * 101]
    names = [*wrong, *(f"file-{number}" for number in range(FILES + 5))]
    lines = [line for name in names for line in packed(name, b"")]
    assert unpacked(lines) == {f"file-{number}": b"" for number in range(FILES)}


def test_a_file_that_came_twice_is_the_last_whole_one() -> None:
    first, second = list(packed("a", b"first" * PIECE)), list(packed("a", b"second" * PIECE))
    assert unpacked([*first, *second]) == {"a": b"second" * PIECE}
    assert unpacked([*first, *second[:-1]]) == {"a": b"first" * PIECE}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda lines: lines[:-1],
        lambda lines: lines[1:],
        lambda lines: [lines[0], lines[2], lines[1]],
        lambda lines: [lines[0], *(line.replace("AAAA", "BBBB", 1) for line in lines[1:])],
        lambda lines: [lines[0].replace(str(2 * PIECE), str(2 * PIECE - 1)), *lines[1:]],
        lambda lines: [json.dumps({"parcel": {"name": "a", "bytes": 10**12, "sha256": ""}}), *lines[1:]],
        lambda lines: ['{"parcel": 3}', '{"parcel": {}}', '{"parcel_part": {"name": "a", "at"', *lines[1:]],
    ],
)
def test_a_file_that_is_not_whole_is_none(spoil: object) -> None:
    lines = list(packed("a", bytes(2 * PIECE)))
    assert unpacked(spoil(lines)) == {}  # type: ignore[operator]


def test_what_is_too_large_for_a_log_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcels, "MOST", 100)
    with pytest.raises(ValueError, match="big: 90 bytes are too many for a log"):
        list(packed("big", bytes(90)))

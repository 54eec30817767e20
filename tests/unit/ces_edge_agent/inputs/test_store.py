"""What of a node's disk can be read as data, and what of a request is understood."""

from __future__ import annotations

import os
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_edge_agent.inputs import store as stores
from ces_edge_agent.inputs.requests import BadRequest, OutOfRange, Span, may_read, parse_range, parse_target
from ces_edge_agent.inputs.store import File, Folder, Store, Unreadable


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two datasets, and all that must stay out of reach."""
    root = tmp_path / "datasets"
    (root / "mnist" / "train").mkdir(parents=True)
    (root / "mnist" / "train" / "images").write_bytes(b"0123456789")
    (root / "words").mkdir()
    (tmp_path / "secret").write_text("secret")
    (root / "loose").write_text("a file beside the datasets")
    (root / "mnist" / ".hidden").write_text("secret")
    (root / "mnist" / "out").symlink_to(tmp_path / "secret")
    (root / "mnist" / "within").symlink_to("train")
    (root / "elsewhere").symlink_to(tmp_path)
    (root / ".git").mkdir()
    (root / "lost+found").mkdir()
    (root / "lost+found" / "file").write_text("not offered")
    os.mkfifo(root / "fifo")
    os.mkfifo(root / "mnist" / "pipe")
    return Store(root)


def read(store: Store, dataset: str, *path: str) -> bytes | Folder:
    with store.open(dataset, path) as found:
        return found.content.read() if isinstance(found, File) else found


def test_folders_are_datasets_and_nothing_else_is(store: Store) -> None:
    assert store.names() == ["mnist", "words"]
    assert read(store, "mnist", "train", "images") == b"0123456789"
    assert read(store, "mnist") == Folder({}, ["train"], complete=True)
    assert read(store, "mnist", "train") == Folder({"images": 10}, [], complete=True)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (("mnist", "nothing"), "mnist/nothing is not there"),
        (("mnist", "train", "images", "more"), "is not there"),
        (("mnist", "out"), "a symbolic link"),
        (("mnist", "within", "images"), "a symbolic link"),
        (("elsewhere", "secret"), "a symbolic link"),
        (("mnist", ".."), "'..' is no name"),
        (("..", "secret"), "'..' is no name of a dataset"),
        (("loose",), "loose is no dataset: only folders are"),
        (("fifo",), "fifo is no dataset: only folders are"),
        (("loose", "x"), "loose/x is not there"),
        (("lost+found",), "'lost+found' is no name of a dataset"),
        (("lost+found", "file"), "'lost+found' is no name of a dataset"),
        (("",), "'' is no name of a dataset"),
        ((".git",), "'.git' is no name of a dataset"),
        (("mnist", "..", "..", "secret"), "'..' is no name"),
        (("mnist", "../../secret"), "'../../secret' is no name"),
        (("mnist", ".hidden"), "'.hidden' is no name"),
        (("mnist", ""), "'' is no name"),
        (("mnist", "a\0b"), "is no name"),
        (("mnist", "pipe"), "neither a file nor a folder"),
        (("mnist", "x" * 300), "cannot be opened: File name too long"),
    ],
)
def test_nothing_else_can_be_reached(store: Store, path: tuple[str, ...], why: str) -> None:
    opened = len(os.listdir("/proc/self/fd"))
    with pytest.raises(Unreadable) as refused:
        read(store, *path)
    assert why in str(refused.value)
    assert len(os.listdir("/proc/self/fd")) == opened, "nothing stays open"


@given(st.lists(st.text(alphabet="./\0ab" + string.ascii_lowercase[:3], max_size=6), max_size=5))
def test_no_path_leads_out(path: list[str]) -> None:
    folder = Path(__file__).parent
    with pytest.raises(Unreadable):
        read(Store(folder), "no-such-dataset", *path)
    with pytest.raises(Unreadable):
        read(Store(folder), "..", *path)


def test_a_mark_changes_with_the_content(store: Store) -> None:
    def mark() -> str:
        with store.open("mnist", ["train", "images"]) as found:
            assert isinstance(found, File)
            return found.mark

    before = mark()
    assert mark() == before
    (store.root / "mnist" / "train" / "images").write_bytes(b"0123456789!")
    assert mark() != before


def test_a_folder_of_very_many_files_is_listed_in_part(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "MAX_LISTED", 3)
    for i in range(4):
        (store.root / "words" / f"{i}").touch()
    listing = read(store, "words")
    assert isinstance(listing, Folder)
    assert (len(listing.files), listing.complete) == (3, False)


def test_a_folder_that_is_not_there_offers_nothing(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="cannot be read: No such file or directory"):
        Store(tmp_path / "none").names()
    with pytest.raises(Unreadable):
        read(Store(tmp_path / "none"), "mnist")


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("/", []),
        ("/mnist", ["mnist"]),
        ("/mnist/", ["mnist"]),
        ("/mnist/train/a%20b?x=1#y", ["mnist", "train", "a b"]),
        ("/mnist/%2e%2e/x", ["mnist", "..", "x"]),
        ("/mnist/a%2Fb", ["mnist", "a/b"]),
        ("/mnist//x", ["mnist", "", "x"]),
    ],
)
def test_a_path_is_split_before_it_is_decoded(target: str, names: list[str]) -> None:
    assert parse_target(target) == names


@pytest.mark.parametrize("target", ["mnist", "*", "/mnist/%ff", "http://[x/", "http://[::1/mnist", ""])
def test_a_path_that_is_none(target: str) -> None:
    with pytest.raises(BadRequest):
        parse_target(target)


def test_a_grant_that_names_nothing_holds_for_all() -> None:
    assert may_read("mnist", frozenset())
    assert may_read("mnist", {"mnist", "words"})
    assert not may_read("mnist", {"words"})


@pytest.mark.parametrize(
    ("header", "span"),
    [
        (None, Span(0, 100)),
        ("bytes=0-9", Span(0, 10, True)),
        ("bytes=90-", Span(90, 10, True)),
        ("bytes=90-1000", Span(90, 10, True)),
        ("bytes=-10", Span(90, 10, True)),
        ("bytes=-1000", Span(0, 100, True)),
        ("bytes=5-4", Span(0, 100)),
        ("bytes=0-1,5-6", Span(0, 100)),
        ("bytes=-", Span(0, 100)),
        ("lines=1-2", Span(0, 100)),
    ],
)
def test_ranges(header: str | None, span: Span) -> None:
    assert parse_range(header, 100) == span


@pytest.mark.parametrize(("header", "size"), [("bytes=100-", 100), ("bytes=-0", 100), ("bytes=0-", 0)])
def test_ranges_that_the_file_does_not_reach(header: str, size: int) -> None:
    with pytest.raises(OutOfRange):
        parse_range(header, size)


@given(st.text(alphabet="bytes=-0123456789 ,", max_size=20), st.integers(0, 50))
def test_no_range_reaches_beyond_the_file(header: str, size: int) -> None:
    try:
        span = parse_range(header, size)
    except OutOfRange:
        return
    assert 0 <= span.start <= span.start + span.count <= size

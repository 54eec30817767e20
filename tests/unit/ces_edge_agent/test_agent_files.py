"""What an agent keeps on disk and reads from it: documents, settings, logs, progress."""

import json
import os
import stat
from pathlib import Path

import pytest
from agent_parts import compute, worker
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ces_common.messages.queries import LogQuery
from ces_common.messages.reports import Progress, WorkerStatus
from ces_common.messages.wanted import ComputeWanted
from ces_edge_agent.documents import Kept
from ces_edge_agent.files import write_atomically
from ces_edge_agent.logs import LINE_LIMIT, READ_LIMIT, ProgressTail, answer_log, discard_old_logs, progress_of
from ces_edge_agent.runtimes.fake import FakeRuntime
from ces_edge_agent.settings import AgentSettings

# documents


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "wanted.json"


def kept_at(path: Path, node: str = "n") -> Kept[ComputeWanted]:
    return Kept(path, ComputeWanted, node)


def test_the_newest_document_is_kept_through_a_restart(path: Path) -> None:
    kept = kept_at(path)
    assert kept.current is None
    assert kept.offer(compute(generation=3).encode())
    assert kept.offer(compute(worker("a"), generation=5).encode())
    assert not kept.offer(compute(generation=4).encode())
    assert not kept.offer(compute(worker("a"), generation=5).encode())
    assert kept_at(path).current == compute(worker("a"), generation=5)


def test_another_controllers_version_of_the_same_generation_counts(path: Path) -> None:
    kept = kept_at(path)
    kept.offer(compute(generation=3).encode())
    assert kept.offer(compute(worker("a"), generation=3).encode())


def test_generations_compare_within_one_database_only(path: Path) -> None:
    kept = kept_at(path)
    kept.offer(compute(generation=300).encode())
    assert kept.offer(compute(generation=2, epoch="new").encode())


@pytest.mark.parametrize("raw", [b"", b"rubbish", b"{}", compute(node="other", generation=9).encode()])
def test_garbage_and_other_nodes_documents_are_ignored(path: Path, raw: bytes) -> None:
    kept = kept_at(path)
    kept.offer(compute(generation=3).encode())
    assert not kept.offer(raw)
    assert kept.current == compute(generation=3)


def test_what_lies_on_disk_must_be_this_nodes_and_readable(path: Path) -> None:
    kept_at(path).offer(compute(generation=3).encode())
    assert kept_at(path, "clone").current is None
    path.write_bytes(b'{"node": "n", "gene')
    assert kept_at(path).current is None


def test_a_document_that_cannot_be_kept_is_not_acted_upon(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restart would fall back to the document before it, and start what was told to stop."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    kept = kept_at(path)
    kept.offer(compute(worker("a"), generation=3).encode())
    monkeypatch.setattr("ces_edge_agent.documents.write_atomically", full)
    assert not kept.offer(compute(generation=4).encode())
    assert kept.current == compute(worker("a"), generation=3)


def test_files_are_replaced_whole_and_private(path: Path) -> None:
    write_atomically(path, "one")
    write_atomically(path, "two")
    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_file_is_on_disk_under_its_name_before_anybody_relies_on_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []

    def fsync(descriptor: int) -> None:
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append(("folder" if folder else "file", path.read_text() if path.exists() else None))

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomically(path, "one")
    assert synced == [("file", None), ("folder", "one")]


# logs


@pytest.fixture
async def runtime(tmp_path: Path) -> FakeRuntime:
    runtime = FakeRuntime(tmp_path)
    await runtime.open()
    return runtime


ALIVE = {"a.1": WorkerStatus(allocation="a", incarnation=1, state="running")}
ENDED = {"a.1": WorkerStatus(allocation="a", incarnation=1, state="exited", exit_code=0)}


async def test_a_log_is_read_piece_by_piece(runtime: FakeRuntime) -> None:
    runtime.write("a", "hello world\n")
    first = answer_log(runtime, LogQuery(allocation="a", limit=5), ALIVE)
    assert (first.found, first.text, first.offset, first.complete) == (True, "hello", 5, False)
    rest = answer_log(runtime, LogQuery(allocation="a", offset=5), ALIVE)
    assert (rest.text, rest.offset, rest.complete) == (" world\n", 12, False)
    assert answer_log(runtime, LogQuery(allocation="a", offset=12), ENDED).complete
    beyond = answer_log(runtime, LogQuery(allocation="a", offset=99), ALIVE)
    assert (beyond.text, beyond.offset) == ("", 99)


async def test_a_log_that_is_not_there(runtime: FakeRuntime) -> None:
    assert not answer_log(runtime, LogQuery(allocation="a"), ALIVE).found
    assert not answer_log(runtime, LogQuery(allocation="a"), ALIVE).complete
    assert answer_log(runtime, LogQuery(allocation="a"), {}).complete


@given(content=st.binary(max_size=80), limit=st.integers(1, 9))
def test_any_log_is_read_to_its_end_as_if_at_once(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, limit: int
) -> None:
    """Characters of several bytes at the cut, and bytes that are no text, change neither text nor offsets."""
    runtime = FakeRuntime(tmp_path_factory.mktemp("log"))
    runtime.log("a").parent.mkdir()
    runtime.log("a").write_bytes(content)
    offset, text = 0, ""
    for _ in range(len(content) + 1):
        answer = answer_log(runtime, LogQuery(allocation="a", offset=offset, limit=max(limit, 4)), ENDED)
        text += answer.text
        assert answer.offset > offset or answer.complete
        offset = answer.offset
        if answer.complete:
            break
    assert offset == len(content)
    assert text == content.decode(errors="replace")


async def test_half_a_character_at_the_end_waits_for_its_other_half(runtime: FakeRuntime) -> None:
    log = runtime.log("a")
    log.write_bytes("ü".encode()[:1])
    first = answer_log(runtime, LogQuery(allocation="a"), ALIVE)
    assert (first.text, first.offset) == ("", 0)
    log.write_bytes("ü".encode())
    assert answer_log(runtime, LogQuery(allocation="a"), ALIVE).text == "ü"
    log.write_bytes("ü".encode()[:1])
    assert answer_log(runtime, LogQuery(allocation="a"), ENDED).text == "\ufffd"


@pytest.mark.parametrize("wrong", [{"offset": -1}, {"limit": 0}, {"limit": -1}, {"limit": 10**9}])
def test_impossible_queries_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        LogQuery.model_validate({"allocation": "a", **wrong})


def test_old_logs_go_and_those_in_use_stay(tmp_path: Path) -> None:
    for name, age_s in (("old", 100), ("used", 100), ("new", 0)):
        file = tmp_path / f"{name}.log"
        file.write_text("x")
        when = file.stat().st_mtime - age_s
        os.utime(file, (when, when))
    (tmp_path / "other.txt").write_text("x")
    discard_old_logs(tmp_path, 50, {tmp_path / "used.log"})
    assert sorted(each.name for each in tmp_path.iterdir()) == ["new.log", "other.txt", "used.log"]


# progress


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b'{"progress": {"round": 3}}', {"round": 3}),
        (b'{"result": {"accuracy": 0.9}}', {"accuracy": 0.9}),
        (b'{"other": {}}', None),
        (b'{"progress": 3}', None),
        (b'{"progress": {}}', None),
        (b'[{"progress": {"round": 3}}]', None),
        (b"plain text", None),
        (b"{broken", None),
        (b"", None),
        (b'{"progress": {"x": "\xff"}}', None),
        (b'{"progress": {"x": "\\ud800"}}', None),
        (b'{"progress": {"x": "' + b"y" * LINE_LIMIT + b'"}}', None),
        (b'{"progress": ' + b'{"a":' * 3000 + b"1" + b"}" * 3001, None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_progress_in_a_line(line: bytes, found: object) -> None:
    assert progress_of(line) == found


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(st.binary(max_size=50) | st.dictionaries(st.sampled_from(["progress", "result", "x"]), JSON).map(json.dumps))
def test_whatever_a_worker_prints_can_be_sent_on_or_is_no_progress(line: bytes | str) -> None:
    found = progress_of(line.encode() if isinstance(line, str) else line)
    if found is not None:
        Progress.model_validate_json(Progress(node="n", allocation="a", job="j", task="t", data=found).encode())


@pytest.mark.parametrize("depth", [50, 120, 190, 198, 250])
def test_deep_progress_is_sent_on_or_none(depth: int) -> None:
    found = progress_of(b'{"progress": ' + b'{"a":' * depth + b"1" + b"}" * (depth + 1))
    if found is not None:
        assert Progress(node="n", allocation="a", job="j", task="t", data=found).encode()


@pytest.fixture
def tail(runtime: FakeRuntime) -> ProgressTail:
    return ProgressTail("n", runtime)


async def test_the_last_progress_of_what_is_new(runtime: FakeRuntime, tail: ProgressTail) -> None:
    assert tail.look([worker("a")]) == []
    runtime.write("a", 'noise\n{"progress": {"round": 1}}\n{"progress": {"round": 2}}\nmore noise\n')
    (found,) = tail.look([worker("a")])
    assert found == Progress(node="n", allocation="a", job="j", task="t-a", data={"round": 2})
    assert tail.look([worker("a")]) == []


async def test_half_a_line_waits_for_its_end(runtime: FakeRuntime, tail: ProgressTail) -> None:
    runtime.write("a", 'x\n{"progress": {"rou')
    assert tail.look([worker("a")]) == []
    runtime.write("a", 'nd": 7}}')
    assert tail.look([worker("a")]) == []
    runtime.write("a", "\n")
    assert [found.data for found in tail.look([worker("a")])] == [{"round": 7}]


async def test_an_endless_line_is_stepped_over(runtime: FakeRuntime, tail: ProgressTail) -> None:
    runtime.write("a", "x" * (READ_LIMIT + 10))
    assert tail.look([worker("a")]) == []
    runtime.write("a", '\n{"progress": {"round": 1}}\n')
    assert [found.data for found in tail.look([worker("a")])] == [{"round": 1}]


async def test_each_worker_has_its_own_place(runtime: FakeRuntime, tail: ProgressTail) -> None:
    for allocation in ("a", "b"):
        runtime.write(allocation, json.dumps({"progress": {"of": allocation}}) + "\n")
    found = tail.look([worker("a"), worker("b")])
    assert {each.allocation: each.data for each in found} == {"a": {"of": "a"}, "b": {"of": "b"}}


# settings


def test_settings_are_detected_where_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CES_NODE", "n1")
    settings = AgentSettings()  # type: ignore[call-arg]
    assert settings.node_cpu >= 1000
    assert settings.node_memory > 2**20
    assert settings.node_arch


def test_settings_as_people_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "NODE": "n1",
        "NODE_CPU": "1500m",
        "NODE_MEMORY": "2Gi",
        "NODE_LABELS": "site=roof, floor=3",
        "ALLOWED_IMAGES": "a-*, b",
    }.items():
        monkeypatch.setenv(f"CES_{name}", value)
    settings = AgentSettings()  # type: ignore[call-arg]
    assert (settings.node_cpu, settings.node_memory) == (1500, 2**31)
    assert settings.node_labels == {"site": "roof", "floor": "3"}
    assert settings.allowed_images == ["a-*", "b"]


@pytest.mark.parametrize(
    ("name", "value"), [("NODE", "a b"), ("NODE_LABELS", "roof"), ("NODE_CPU", "many"), ("RUNTIME", "podman")]
)
def test_settings_that_make_no_sense(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv("CES_NODE", "n1")
    monkeypatch.setenv(f"CES_{name}", value)
    with pytest.raises(ValidationError):
        AgentSettings()  # type: ignore[call-arg]

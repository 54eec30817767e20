"""Workers' output as it is sent on request, and the progress found in it."""

import json
from pathlib import Path

import pytest
from agent_parts import worker
from fake_runtime import FakeRuntime
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ces_common.messages.agent_queries import LogAnswer, LogQuery
from ces_common.messages.reports import Progress, WorkerStatus
from ces_edge_agent.logs import LINE_LIMIT, READ_LIMIT, ProgressReader, answer_log, progress_of
from ces_edge_agent.runtimes.log_file import LogFile


@pytest.fixture
async def runtime(tmp_path: Path) -> FakeRuntime:
    runtime = FakeRuntime(tmp_path)
    await runtime.open()
    return runtime


ALIVE = {"a.1": WorkerStatus(allocation="a", incarnation=1, state="running")}
ENDED = {"a.1": WorkerStatus(allocation="a", incarnation=1, state="exited", exit_code=0)}


async def test_a_log_is_read_piece_by_piece(runtime: FakeRuntime) -> None:
    runtime.write("a", "hello world\n")
    first = await answer_log(runtime.logs, LogQuery(allocation="a", limit=5), ALIVE)
    assert (first.found, first.text, first.offset, first.complete) == (True, "hello", 5, False)
    rest = await answer_log(runtime.logs, LogQuery(allocation="a", offset=5), ALIVE)
    assert (rest.text, rest.offset, rest.complete) == (" world\n", 12, False)
    assert (await answer_log(runtime.logs, LogQuery(allocation="a", offset=12), ENDED)).complete
    beyond = await answer_log(runtime.logs, LogQuery(allocation="a", offset=99), ALIVE)
    assert (beyond.text, beyond.offset) == ("", 99)


async def test_a_log_that_is_not_there(runtime: FakeRuntime) -> None:
    assert not (await answer_log(runtime.logs, LogQuery(allocation="a"), ALIVE)).found
    assert not (await answer_log(runtime.logs, LogQuery(allocation="a"), ALIVE)).complete
    assert (await answer_log(runtime.logs, LogQuery(allocation="a"), {})).complete


@given(content=st.binary(max_size=80), limit=st.integers(1, 9))
async def test_any_log_is_read_to_its_end_as_if_at_once(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, limit: int
) -> None:
    """Characters of several bytes at the cut, and bytes that are no text, change neither text nor offsets."""
    runtime = FakeRuntime(tmp_path_factory.mktemp("log"))
    runtime.logs.create()
    runtime.logs.path("a").write_bytes(content)
    offset, text = 0, ""
    for _ in range(len(content) + 1):
        answer = await answer_log(runtime.logs, LogQuery(allocation="a", offset=offset, limit=max(limit, 4)), ENDED)
        text += answer.text
        assert answer.offset > offset or answer.complete
        offset = answer.offset
        if answer.complete:
            break
    assert offset == len(content)
    assert text == content.decode(errors="replace")


async def test_half_a_character_at_the_end_waits_for_its_other_half(runtime: FakeRuntime) -> None:
    log = runtime.logs.path("a")
    log.write_bytes("ü".encode()[:1])
    first = await answer_log(runtime.logs, LogQuery(allocation="a"), ALIVE)
    assert (first.text, first.offset) == ("", 0)
    log.write_bytes("ü".encode())
    assert (await answer_log(runtime.logs, LogQuery(allocation="a"), ALIVE)).text == "ü"
    log.write_bytes("ü".encode()[:1])
    assert (await answer_log(runtime.logs, LogQuery(allocation="a"), ENDED)).text == "\ufffd"


async def read_on(runtime: FakeRuntime, query: LogQuery) -> list[LogAnswer]:
    """All answers to the query and to those that go on where the one before ended."""
    answers = [await answer_log(runtime.logs, query, ENDED)]
    while not answers[-1].complete:
        following = LogQuery(allocation="a", offset=answers[-1].offset, limit=query.limit)
        answers.append(await answer_log(runtime.logs, following, ENDED))
    return answers


def overflow(runtime: FakeRuntime, text: bytes, limit: int) -> None:
    log = LogFile(str(runtime.logs.path("a")), limit)
    log.write(text)
    log.close()


@pytest.mark.parametrize("limit", [7, 20, 1000])
async def test_a_line_says_where_bytes_were_dropped(runtime: FakeRuntime, limit: int) -> None:
    text = "".join(f"{number:03}\n" for number in range(100))
    overflow(runtime, text.encode(), 80)
    answers = await read_on(runtime, LogQuery(allocation="a", limit=limit))
    notice = "\n[ces] 320 bytes were dropped here: a log keeps its beginning and its end\n"
    assert "".join(answer.text for answer in answers) == text[:40] + notice + text[360:]
    assert answers[-1].offset == 400


async def test_half_a_character_before_a_gap_is_not_waited_for(runtime: FakeRuntime) -> None:
    overflow(runtime, b"abc" + "ü".encode() * 10, 8)
    first, rest = await read_on(runtime, LogQuery(allocation="a"))
    assert (first.text, first.offset) == ("abc\ufffd", 4)
    assert rest.text.startswith("\n[ces] 15 bytes were dropped here")


async def test_the_last_lines_only(runtime: FakeRuntime) -> None:
    assert not (await answer_log(runtime.logs, LogQuery(allocation="a", tail=2), ALIVE)).found
    runtime.write("a", "one\ntwo\nthree\n")
    answer = await answer_log(runtime.logs, LogQuery(allocation="a", tail=2), ALIVE)
    assert (answer.text, answer.offset) == ("two\nthree\n", 14)
    nothing = await answer_log(runtime.logs, LogQuery(allocation="a", tail=0), ALIVE)
    assert (nothing.found, nothing.text, nothing.offset) == (True, "", 14)


@pytest.mark.parametrize("wrong", [{"tail": -1}, {"offset": -1}, {"limit": 0}, {"limit": -1}, {"limit": 10**9}])
def test_impossible_queries_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        LogQuery.model_validate({"allocation": "a", **wrong})


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
def reader(runtime: FakeRuntime) -> ProgressReader:
    return ProgressReader("n", runtime.logs, lambda: 7.5)


async def test_the_last_progress_of_what_is_new(runtime: FakeRuntime, reader: ProgressReader) -> None:
    assert await reader.read([worker("a")]) == []
    runtime.write("a", 'noise\n{"progress": {"round": 1}}\n{"progress": {"round": 2}}\nmore noise\n')
    (found,) = await reader.read([worker("a")])
    assert found == Progress(
        node="n", allocation="a", job="j", task="t-a", incarnation=1, seen_s=7.5, data={"round": 2}
    )
    assert await reader.read([worker("a")]) == []


async def test_half_a_line_waits_for_its_end(runtime: FakeRuntime, reader: ProgressReader) -> None:
    runtime.write("a", 'x\n{"progress": {"rou')
    assert await reader.read([worker("a")]) == []
    runtime.write("a", 'nd": 7}}')
    assert await reader.read([worker("a")]) == []
    runtime.write("a", "\n")
    assert [found.data for found in await reader.read([worker("a")])] == [{"round": 7}]


async def test_an_endless_line_is_stepped_over(runtime: FakeRuntime, reader: ProgressReader) -> None:
    runtime.write("a", "x" * (READ_LIMIT + 10))
    assert await reader.read([worker("a")]) == []
    runtime.write("a", '\n{"progress": {"round": 1}}\n')
    assert [found.data for found in await reader.read([worker("a")])] == [{"round": 1}]


async def test_each_worker_has_its_own_place(runtime: FakeRuntime, reader: ProgressReader) -> None:
    for allocation in ("a", "b"):
        runtime.write(allocation, json.dumps({"progress": {"of": allocation}}) + "\n")
    found = await reader.read([worker("a"), worker("b")])
    assert {each.allocation: each.data for each in found} == {"a": {"of": "a"}, "b": {"of": "b"}}


async def test_progress_goes_on_behind_a_gap(runtime: FakeRuntime, reader: ProgressReader) -> None:
    """Half a line before the gap is given up."""
    runtime.write("a", '{"progress": {"round": 1}}\n{"progress":')
    (found,) = await reader.read([worker("a")])
    assert found.data == {"round": 1}
    overflow(runtime, b"x" * 200 + b'\n{"progress": {"round": 9}}\n', 100)
    assert await reader.read([worker("a")]) == []
    (found,) = await reader.read([worker("a")])
    assert found.data == {"round": 9}

"""News of a cluster's background process."""

from __future__ import annotations

from pathlib import Path

from ces_testbed.progress import News, read_news, write_news


def test_news_are_read_as_far_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    assert read_news(path, 0) == ([], 0)
    write_news(path, News(kind="step", step="hosts", done=1, total=2))
    with path.open("a") as file:
        file.write('{"kind": "ready"')
    items, place = read_news(path, 0)
    assert [item.step for item in items] == ["hosts"]
    with path.open("a") as file:
        file.write(', "text": "url"}\n')
    items, _ = read_news(path, place)
    assert items == [News(kind="ready", text="url")]


def test_news_that_cannot_be_written_stop_nothing(tmp_path: Path) -> None:
    write_news(tmp_path / "gone" / "progress.jsonl", News(kind="stopped"))
    assert read_news(tmp_path / "gone" / "progress.jsonl", 0) == ([], 0)

"""The queue's file: its defaults, what it holds, and that every way to get it wrong is named with its field."""

from pathlib import Path

import pytest

from ces_common.queuefile import QueueFile, read_queue
from ces_common.service import BadSetup

WHOLE = """
window: null
weights: {fit: 2, priority: 0, waiting: 0.5}
bound: 2h
overdue: null
reservations: 1
crowded: null
declined: 0.2
tenants:
  - {name: vision, weight: 2, guaranteed: {cpu: 0.25}, quota: {cpu: 0.5, bandwidth: 0.5}}
  - {name: speech, guaranteed: {cpu: 0.75}}
"""


def test_a_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "queue.yaml"
    file.write_text(WHOLE)
    queue = read_queue(file)
    assert (queue.window, queue.overdue, queue.reservations, queue.crowded) == (None, None, 1, None)
    assert (queue.weights.fit, queue.weights.priority, queue.weights.share) == (2, 0, QueueFile().weights.share)
    assert (queue.bound, queue.declined) == (7200, 0.2)
    vision, speech = queue.tenants
    assert (vision.weight, vision.guaranteed.said()) == (2, {"cpu": 0.25})
    assert vision.quota.said() == {"cpu": 0.5, "bandwidth": 0.5}
    assert (speech.weight, speech.quota.said()) == (1, {})
    assert queue.admits("speech")
    assert not queue.admits("default")


def test_without_a_file_or_with_an_empty_one_all_has_its_default(tmp_path: Path) -> None:
    empty = tmp_path / "queue.yaml"
    empty.write_text("# nothing\n")
    assert read_queue(None) == read_queue(empty) == QueueFile()
    assert QueueFile().admits("anybody")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("weights: {fit: -1}", "weights.fit: must be 0 or more, is -1; 0 takes it out"),
        ("weights: {share: .nan}", "weights.share: must be 0 or more, is nan"),
        ("weights: {size: 1}", "weights.size: unknown field"),
        ("window: 0", "window: must be at least 1"),
        ("bound: 0s", "bound: must be above 0, is 0"),
        ("bound: soon", "bound: 'soon' is no duration; write it like 45m or 2h"),
        ("overdue: 1.5", "overdue: is a share, 0 to 1, not 1.5"),
        ("crowded: 60", "crowded: is a share, 0 to 1, not 60"),
        ("reservations: -1", "reservations: must be at least 0"),
        ("tenants: [{name: a}, {name: b}, {name: a}]", "tenants[2].name: a is named twice"),
        ("tenants: [{name: a, weight: 0}]", "tenants[0].weight: must be above 0, is 0"),
        ("tenants: [{name: Team A}]", "tenants[0].name: use 1 to 63 lower-case letters"),
        ("tenants: [{name: a, quota: {cpu: 50}}]", "tenants[0].quota.cpu: is a share, 0 to 1, not 50"),
        ("tenants: [{name: a, quota: {disk: 0.5}}]", "tenants[0].quota.disk: unknown field"),
        (
            "tenants: [{name: a, guaranteed: {cpu: 0.6}, quota: {cpu: 0.5}}]",
            "tenants[0].guaranteed.cpu: 0.6 contradicts the quota of 0.5",
        ),
        (
            "tenants: [{name: a, guaranteed: {gpu: 0.6}}, {name: b, guaranteed: {gpu: 0.6}}]",
            "tenants[1].guaranteed.gpu: all that is guaranteed adds up to more than the cluster, 1.2 of it",
        ),
        ("[a list]", "file: must hold fields with values"),
        ("a: [", "is no YAML"),
        ("window: 1\nbound: 1h\nwindow: 2", "the key 'window' is given twice, on lines 1 and 3: keep one of them"),
    ],
)
def test_a_wrong_file_names_the_field(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "queue.yaml"
    file.write_text(text)
    with pytest.raises(BadSetup) as refused:
        read_queue(file)
    assert str(refused.value).startswith(f"CES_QUEUE: {file}")
    assert said in str(refused.value)


def test_a_file_that_lies_too_deep_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "queue.yaml"
    file.write_text("tenants: " + "[" * 2000 + "]" * 2000)
    with pytest.raises(BadSetup, match=r"queue\.yaml is no YAML: .* deep within each other"):
        read_queue(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSetup, match=r"CES_QUEUE: .*queue\.yaml cannot be read: No such file"):
        read_queue(tmp_path / "queue.yaml")

from __future__ import annotations

import gzip
import struct
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from ces_workloads.data import DataUnavailable, Images, batches, load, shard


def write_idx(path: Path, values: np.ndarray) -> None:
    header = bytes((0, 0, 8, values.ndim)) + struct.pack(f">{values.ndim}I", *values.shape)
    path.write_bytes(gzip.compress(header + values.astype(np.uint8).tobytes()))


def numbered(count: int) -> Images:
    return Images(np.arange(count, dtype=np.float32).reshape(-1, 1), np.arange(count) % 10)


def numbers(images: Images) -> list[int]:
    return [int(value) for value in images.pixels[:, 0]]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "mnist"
    folder.mkdir()
    generator = np.random.default_rng(0)
    write_idx(folder / "t10k-images-idx3-ubyte.gz", generator.integers(0, 256, (50, 4, 6)))
    write_idx(folder / "t10k-labels-idx1-ubyte.gz", generator.integers(0, 10, 50))
    return tmp_path


def test_digits_come_with_the_dependency() -> None:
    digits = load("digits", {})
    assert (len(digits.train), len(digits.test)) == (1438, 359)
    assert digits.train.pixels.shape[1] == 64
    assert digits.train.pixels.dtype == np.float32
    assert (digits.train.pixels.min(), digits.train.pixels.max()) == (0, 1)
    assert set(digits.test.labels.tolist()) == set(range(10))


def test_idx_files_are_read_and_split(data_dir: Path) -> None:
    images = load("mnist", {"CES_DATA_DIR": str(data_dir)})
    assert (len(images.train), len(images.test)) == (40, 10)
    assert images.train.pixels.shape[1] == 24
    assert 0 <= images.train.pixels.min() <= images.train.pixels.max() <= 1


def test_a_worker_without_an_image_is_told_so() -> None:
    with pytest.raises(DataUnavailable, match="more workers than images"):
        batches(shard(numbered(2), rank=2, world_size=3, seed=0), 8, seed=0)


def test_absent_data_names_the_variable_and_the_place(data_dir: Path) -> None:
    with pytest.raises(DataUnavailable, match="needs CES_DATA_DIR"):
        load("mnist", {})
    with pytest.raises(DataUnavailable, match=r"fashion-mnist/t10k-images.*CES_DATA_DIR"):
        load("fashion-mnist", {"CES_DATA_DIR": str(data_dir)})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not gzip", "cannot be read"),
        (gzip.compress(b"\0\0\x0d\x01\0\0\0\x01\0", mtime=0), "not an IDX file"),
        (gzip.compress(b"\0\0\x08\x01\0\0\0\x09\0", mtime=0), "cut short"),
        (gzip.compress(b"\0\0\x08\x01\0\0\0\x01\0", mtime=0), "50 images but 1 labels"),
        (gzip.compress(b"\0\0\x08\x01\0\0\0\x32" + b"\x0a" * 50, mtime=0), "images of 10 classes"),
    ],
)
def test_broken_files_are_named(data_dir: Path, content: bytes, words: str) -> None:
    (data_dir / "mnist" / "t10k-labels-idx1-ubyte.gz").write_bytes(content)
    with pytest.raises(DataUnavailable, match=words):
        load("mnist", {"CES_DATA_DIR": str(data_dir)})


def test_shards_are_disjoint_complete_and_repeatable() -> None:
    shards = [shard(numbered(23), rank, 5, seed=3) for rank in range(5)]
    assert sorted(number for part in shards for number in numbers(part)) == list(range(23))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1
    assert numbers(shards[2]) == numbers(shard(numbered(23), 2, 5, seed=3))
    assert numbers(shards[2]) != numbers(shard(numbered(23), 2, 5, seed=4))


def test_batches_are_full_and_use_every_image_once_a_pass() -> None:
    drawn = [numbers(batch) for batch in islice(batches(numbered(10), 4, seed=1), 5)]
    assert all(len(batch) == 4 for batch in drawn)
    in_order = [number for batch in drawn for number in batch]
    assert sorted(in_order[:10]) == sorted(in_order[10:]) == list(range(10))
    assert in_order[:10] != in_order[10:]


def test_a_batch_may_exceed_a_shard() -> None:
    assert len(next(batches(numbered(3), 8, seed=0))) == 8

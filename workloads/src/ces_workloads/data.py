"""The images to learn from: scikit-learn's digits, or files in MNIST's IDX format under ``CES_DATA_DIR``."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ces_workloads.model import Labels, Vector

CLASSES = 10
# Fixed, and not the run's seed: accuracies of different runs are then measured on the same images.
_SPLIT_SEED = 1797
_TEST_SHARE = 0.2


class DataUnavailable(Exception):
    """The images asked for are not there or cannot be read; the message says where they belong."""


@dataclass(frozen=True)
class Images:
    """Flattened images with pixels scaled to 0..1 (float32), and the class of each."""

    pixels: Vector
    labels: Labels

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: NDArray[np.integer]) -> Images:
        return Images(self.pixels[indices], self.labels[indices])


@dataclass(frozen=True)
class Dataset:
    """Images to train on and, apart from them, images to measure accuracy on."""

    train: Images
    test: Images


def load(name: str, environment: Mapping[str, str]) -> Dataset:
    """``digits``, or the IDX files in the folder ``name`` of ``CES_DATA_DIR``.

    One fifth is held out: 1438 / 359 images of digits, 8000 / 2000 of the 10,000-image test set of MNIST or
    Fashion-MNIST, which is all that is used of those. Raises :class:`DataUnavailable`.
    """
    images = _digits() if name == "digits" else _idx_folder(name, environment)
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(images))
    held_out = int(len(images) * _TEST_SHARE)
    return Dataset(train=images.take(order[held_out:]), test=images.take(order[:held_out]))


def shard(images: Images, rank: int, world_size: int, seed: int) -> Images:
    """The part of ``images`` that belongs to ``rank``: shards are disjoint and together are everything."""
    return images.take(np.random.default_rng(seed).permutation(len(images))[rank::world_size])


def batches(images: Images, size: int, seed: int) -> Iterator[Images]:
    """Batches of exactly ``size`` without end: a new order for each pass, carried on across passes.

    Raises :class:`DataUnavailable` without any images.
    """
    if not len(images):
        raise DataUnavailable("no image is left for this worker to train on: the job has more workers than images")
    return _batches(images, size, seed)


def _batches(images: Images, size: int, seed: int) -> Iterator[Images]:
    generator = np.random.default_rng(seed)
    waiting = np.empty(0, dtype=np.int64)
    while True:
        while len(waiting) < size:
            waiting = np.concatenate([waiting, generator.permutation(len(images))])
        yield images.take(waiting[:size])
        waiting = waiting[size:]


def _digits() -> Images:
    # Read from the installed distribution: importing scikit-learn costs a worker 90 MiB and over a second.
    path = Path(str(metadata.distribution("scikit-learn").locate_file("sklearn/datasets/data/digits.csv.gz")))
    if not path.is_file():
        raise DataUnavailable(f"the digits that ship with scikit-learn are not at {path}")
    with gzip.open(path, "rt") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.float32)
    return Images(table[:, :-1] / np.float32(16), table[:, -1].astype(np.int64))


def _idx_folder(name: str, environment: Mapping[str, str]) -> Images:
    root = environment.get("CES_DATA_DIR", "")
    if not root:
        raise DataUnavailable(f"--data {name} needs CES_DATA_DIR: the folder that holds {name}/")
    folder = Path(root) / name
    pixels = _read_idx(folder / "t10k-images-idx3-ubyte.gz", dimensions=3)
    labels = _read_idx(folder / "t10k-labels-idx1-ubyte.gz", dimensions=1)
    if len(pixels) != len(labels):
        raise DataUnavailable(f"{folder} (in CES_DATA_DIR) has {len(pixels)} images but {len(labels)} labels")
    if len(labels) == 0 or labels.max() >= CLASSES:
        raise DataUnavailable(f"{folder} (in CES_DATA_DIR) must hold images of {CLASSES} classes, labelled from 0")
    return Images(pixels.reshape(len(pixels), -1).astype(np.float32) / np.float32(255), labels.astype(np.int64))


def _read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """A gzipped IDX file of bytes: magic number, one big-endian length per dimension, values."""
    try:
        with gzip.open(path) as file:
            content = file.read()
    except FileNotFoundError:
        raise DataUnavailable(f"{path} is absent; CES_DATA_DIR must hold it") from None
    except (OSError, EOFError) as error:
        raise DataUnavailable(f"{path} (in CES_DATA_DIR) cannot be read: {error}") from error
    header = 4 + 4 * dimensions
    if len(content) < header or content[:4] != bytes((0, 0, 8, dimensions)):
        raise DataUnavailable(f"{path} (in CES_DATA_DIR) is not an IDX file of {dimensions}-dimensional bytes")
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    values = np.frombuffer(content, dtype=np.uint8, offset=header)
    if values.size != np.prod(shape, dtype=np.int64):
        raise DataUnavailable(f"{path} (in CES_DATA_DIR) is cut short: {values.size} values for {shape}")
    return values.reshape(shape)

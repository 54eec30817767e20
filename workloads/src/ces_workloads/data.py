"""The images to learn from: scikit-learn's digits, or files in MNIST's IDX format, read from a node that has them
(``CES_INPUTS``) or from a folder (``CES_DATA_DIR``)."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ces_workloads import inputs
from ces_workloads.model import Labels, Vector

CLASSES = 10
IMAGES, LABELS = "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"
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
    """Images to train on and, apart from them, images to measure accuracy on. ``origin``: where they were read."""

    train: Images
    test: Images
    origin: str = ""


def load(name: str, environment: Mapping[str, str]) -> Dataset:
    """``digits``, or the IDX files of the dataset ``name``: of an input of this worker that has it, else of the folder
    of that name in ``CES_DATA_DIR``.

    One fifth is held out: 1438 / 359 images of digits, 8000 / 2000 of the 10,000-image test set of MNIST or
    Fashion-MNIST, which is all that is used of those. Raises :class:`DataUnavailable`, and
    :class:`~ces_workloads.peers.BadEnvironment` for a ``CES_INPUTS`` that makes no sense.
    """
    images, origin = (_digits(), "of scikit-learn") if name == "digits" else _idx_images(name, environment)
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(images))
    held_out = int(len(images) * _TEST_SHARE)
    return Dataset(train=images.take(order[held_out:]), test=images.take(order[:held_out]), origin=origin)


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


def _idx_images(name: str, environment: Mapping[str, str]) -> tuple[Images, str]:
    """The images, and where they are."""
    read, where = _place(name, environment)
    pixels = _parse_idx(read(IMAGES), f"{name}/{IMAGES} {where}", dimensions=3)
    labels = _parse_idx(read(LABELS), f"{name}/{LABELS} {where}", dimensions=1)
    if len(pixels) != len(labels):
        raise DataUnavailable(f"{name} {where} has {len(pixels)} images but {len(labels)} labels")
    if len(labels) == 0 or labels.max() >= CLASSES:
        raise DataUnavailable(f"{name} {where} must hold images of {CLASSES} classes, labelled from 0")
    images = Images(pixels.reshape(len(pixels), -1).astype(np.float32) / np.float32(255), labels.astype(np.int64))
    return images, where


def _place(name: str, environment: Mapping[str, str]) -> tuple[Callable[[str], bytes], str]:
    """How the files of a dataset are read, and where they are, in words."""
    try:
        source = next((each for each in inputs.from_environment(environment) if each.has(name)), None)
    except inputs.InputUnavailable as error:
        raise DataUnavailable(str(error)) from None
    if source is not None:
        return partial(_read_input, source, name), f"on node {source.node} (CES_INPUTS)"
    root = environment.get("CES_DATA_DIR", "")
    if not root:
        raise DataUnavailable(
            f"--data {name} needs CES_DATA_DIR, the folder that holds {name}/, or the dataset {name} among the "
            "worker's `inputs` in the job file"
        )
    folder = Path(root) / name
    return partial(_read_file, folder), f"in {root} (CES_DATA_DIR)"


def _read_input(source: inputs.Input, name: str, file: str) -> bytes:
    try:
        return source.read(f"{name}/{file}")
    except inputs.InputUnavailable as error:
        raise DataUnavailable(str(error)) from None


def _read_file(folder: Path, file: str) -> bytes:
    try:
        return (folder / file).read_bytes()
    except FileNotFoundError:
        raise DataUnavailable(f"{folder / file} is absent; CES_DATA_DIR must hold it") from None
    except OSError as error:
        raise DataUnavailable(f"{folder / file} (in CES_DATA_DIR) cannot be read: {error}") from error


def _parse_idx(compressed: bytes, what: str, dimensions: int) -> NDArray[np.uint8]:
    """A gzipped IDX file of bytes: magic number, one big-endian length per dimension, values."""
    try:
        content = gzip.decompress(compressed)
    except (OSError, EOFError, zlib.error) as error:
        raise DataUnavailable(f"{what} cannot be read: {error}") from error
    header = 4 + 4 * dimensions
    if len(content) < header or content[:4] != bytes((0, 0, 8, dimensions)):
        raise DataUnavailable(f"{what} is not an IDX file of {dimensions}-dimensional bytes")
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    values = np.frombuffer(content, dtype=np.uint8, offset=header)
    if values.size != np.prod(shape, dtype=np.int64):
        raise DataUnavailable(f"{what} is cut short: {values.size} values for {shape}")
    return values.reshape(shape)

"""Images that are carried to a site: whether they arrive as they were built."""

from __future__ import annotations

import io
import subprocess
import tarfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.needs("engine")


def contents(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / "deploy/airgap/contents.sh"), *arguments], capture_output=True, text=True, check=False
    )


def docker(*arguments: str, given: bytes = b"", good: bool = True) -> bytes:
    return subprocess.run(["docker", *arguments], input=given, capture_output=True, check=good).stdout


def build(image: str, word: str) -> None:
    """An image of one file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo("word")
        entry.size = len(word)
        tar.addfile(entry, io.BytesIO(word.encode()))
    docker("import", "-", image, given=packed.getvalue())


@pytest.fixture
def image() -> Iterator[str]:
    name = f"ces-carried-{uuid.uuid4().hex[:8]}:latest"
    yield name
    docker("rmi", "-f", name, good=False)


def test_an_image_arrives_as_it_was_recorded_or_is_named(image: str, tmp_path: Path) -> None:
    build(image, "true")
    recorded = contents(image)
    assert recorded.returncode == 0, recorded.stderr
    record = tmp_path / "images.txt"
    record.write_text(recorded.stdout)
    carried = docker("save", image)
    docker("rmi", image)
    missing = contents("--check", str(record))
    assert (missing.returncode, missing.stderr) == (1, f"{image}: missing\n")

    docker("load", given=carried)
    same = contents("--check", str(record))
    assert (same.returncode, same.stdout) == (0, "1 images as recorded\n")

    docker("rmi", image)
    build(image, "untrue")
    other = contents("--check", str(record))
    assert (other.returncode, other.stderr) == (1, f"{image}: another than recorded\n")


def test_an_image_whose_layer_was_changed_on_the_way_does_not_keep_its_id(image: str, tmp_path: Path) -> None:
    build(image, "truth")
    record = tmp_path / "images.txt"
    record.write_text(contents(image).stdout)
    carried = docker("save", image)
    docker("rmi", image)
    assert carried.count(b"truth") == 1
    docker("load", given=carried.replace(b"truth", b"lying"), good=False)
    assert contents("--check", str(record)).returncode == 1


def test_an_empty_record_is_no_good_one(tmp_path: Path) -> None:
    (tmp_path / "images.txt").write_text("")
    done = contents("--check", str(tmp_path / "images.txt"))
    assert done.returncode == 1
    assert "records no image" in done.stderr

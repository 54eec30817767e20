"""Which public images CES rests on, and how a site says that it wants them by digest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PUBLIC = {
    "CES_PYTHON_IMAGE": "python:3.11-slim",
    "CES_DEBIAN_IMAGE": "debian:bookworm-slim",
    "CES_NATS_IMAGE": "nats:2-alpine",
    "CES_POSTGRES_IMAGE": "postgres:16-alpine",
}
OWN = sorted([*ROOT.glob("services/*/Dockerfile"), ROOT / "workloads/Dockerfile", ROOT / "deploy/sandbox/Dockerfile"])
PULL = """#!/bin/sh
echo "$@" >>"$LOG"
case $* in *postgres*) test -z "$BUILT_HERE" || { echo 'manifest unknown' >&2; exit 1; } ;; esac
echo "Digest: sha256:$(printf '%s' "$2" | sha256sum | cut -d' ' -f1)"
"""


@pytest.mark.parametrize("path", OWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_base_of_an_image_can_be_named(path: Path) -> None:
    text = path.read_text()
    (base,) = re.findall(r"^ARG BASE_IMAGE=(\S+)$", text, re.MULTILINE)
    assert base in PUBLIC.values()
    assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) <= {"${BASE_IMAGE}", "scratch"}


def test_every_public_image_of_the_stack_can_be_named() -> None:
    stack = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    images = {service["image"] for service in stack["services"].values()}
    named = {f"${{{name}:-{image}}}" for name, image in PUBLIC.items()}
    assert {image for image in images if not image.startswith("ces-")} == {
        each for each in named if "NATS" in each or "POSTGRES" in each
    }
    builds = [service["build"] for service in stack["services"].values() if "build" in service]
    assert builds
    assert {build["args"]["BASE_IMAGE"] for build in builds} <= named


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `docker` that only says what it was asked, to the file that this returns."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/docker").write_text(PULL)
    (tmp_path / "bin/docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "asked"))
    for name in PUBLIC:
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "asked"


def pin() -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(ROOT / "deploy/pin-images.sh")], capture_output=True, text=True, check=False)


def test_images_are_pinned_by_what_a_registry_serves(engine: Path) -> None:
    done = pin()
    assert done.returncode == 0, done.stderr
    pinned = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert {name: value.partition("@")[0] for name, value in pinned.items()} == PUBLIC
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", value.partition("@")[2]) for value in pinned.values())
    assert engine.read_text().splitlines() == [f"pull {image}" for image in PUBLIC.values()]


def test_nothing_is_pinned_where_one_has_no_digest(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUILT_HERE", "yes")
    done = pin()
    assert (done.returncode, done.stdout) == (1, "")
    assert "no registry serves postgres:16-alpine" in done.stderr


@pytest.mark.parametrize("environment", ["", "python:other"])
def test_make_builds_on_the_images_that_are_named(
    engine: Path, tmp_path: Path, environment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    shutil.copy(ROOT / "Makefile", site)
    for path in OWN:
        copy = site / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True)
        copy.write_text("")
    (site / "deploy/airgap").mkdir()
    (site / "deploy/airgap/build-args.sh").write_text("#!/bin/sh\necho --network host\n")
    (site / "deploy/airgap/build-args.sh").chmod(0o755)
    (site / ".env").write_text("CES_PYTHON_IMAGE=python:3.11-slim@sha256:1\nCES_DEBIAN_IMAGE=debian@sha256:2\n")
    if environment:
        monkeypatch.setenv("CES_PYTHON_IMAGE", environment)
    subprocess.run(["make", "images"], cwd=site, check=True, capture_output=True)
    asked = engine.read_text().splitlines()
    python = environment or "python:3.11-slim@sha256:1"
    bases = {line.rsplit(" -t ")[1].split()[0]: re.findall(r"BASE_IMAGE=(\S+)", line) for line in asked}
    assert bases.pop("ces-sandbox") == ["debian@sha256:2"]
    assert len(bases) == len(OWN) - 1
    assert all(base == [python] for base in bases.values())

"""Which images a node's patterns allow."""

from __future__ import annotations

import pytest

from ces_edge_agent.runtimes.images import BadName, allows, explicit, parse_image, parse_pattern

DIGEST = "sha256:" + "ab" * 32
OTHER = "sha256:" + "cd" * 32


@pytest.mark.parametrize(
    ("pattern", "image"),
    [
        ("ces-worker-*", "ces-worker-train"),
        ("ces-worker-*", "ces-worker-train:v1"),
        ("ces-worker-*", f"ces-worker-train@{DIGEST}"),
        ("ces-worker-*", "docker.io/library/ces-worker-train"),
        ("ces-worker-*", "index.docker.io/ces-worker-train"),
        ("docker.io/library/ces-worker-train", "ces-worker-train"),
        ("python:*", "python:3.11-slim"),
        ("python:3.*", "python:3.11-slim"),
        ("python:latest", "python"),
        ("site/*", "site/train"),
        ("registry.example:5000/edge/*:v?", "registry.example:5000/edge/train:v2"),
        ("Registry.Example/train", "registry.example/train"),
        ("localhost/train", "localhost/train"),
        (f"train@{DIGEST}", f"train@{DIGEST}"),
        (f"train@{DIGEST}", f"train:v1@{DIGEST}"),
    ],
)
def test_what_is_allowed(pattern: str, image: str) -> None:
    assert allows(parse_pattern(pattern), parse_image(image))


@pytest.mark.parametrize(
    ("pattern", "image"),
    [
        ("ces-worker-*", "ces-worker-x.attacker.example/p:latest"),
        ("ces-worker-*", "ces-worker-x:5000/p"),
        ("ces-worker-*", "ces-worker-x/p"),
        ("ces-worker-*", "attacker.example/ces-worker-train"),
        ("ces-worker-*", "localhost/ces-worker-train"),
        ("ces-worker-*", "attacker/ces-worker-train"),
        ("*", "attacker.example/p"),
        ("*", "attacker/p"),
        ("*/*", "attacker.example/p"),
        ("*/*", "attacker.example/a/b"),
        ("site/*", "site/train/more"),
        ("registry.example/*", "registry.example:5000/train"),
        ("python:3.11-slim", f"python:3.11-slim@{DIGEST}"),
        ("python:*", f"python:3.11-slim@{DIGEST}"),
        (f"train@{DIGEST}", f"train@{OTHER}"),
        (f"train@{DIGEST}", "train"),
        ("python:3.*", "python"),
    ],
)
def test_what_is_not(pattern: str, image: str) -> None:
    assert not allows(parse_pattern(pattern), parse_image(image))


@pytest.mark.parametrize(
    "image",
    [
        "",
        "ab" * 32,
        DIGEST,
        "train:",
        "train@sha256:12",
        "-train",
        "train/",
        "//train",
        "a b",
        "ces-worker-*",
        "Train",
        "a\nb",
    ],
)
def test_what_is_no_name(image: str) -> None:
    with pytest.raises(BadName):
        parse_image(image)


@pytest.mark.parametrize("pattern", ["*.example/train", "registry.example:*/train", "https://registry.example/train"])
def test_a_pattern_writes_its_registry_out(pattern: str) -> None:
    with pytest.raises(BadName):
        parse_pattern(pattern)


def test_an_engine_is_never_given_what_could_be_an_id() -> None:
    assert explicit("deadbeef", parse_image("deadbeef")) == "deadbeef:latest"
    assert explicit("train:v1", parse_image("train:v1")) == "train:v1"

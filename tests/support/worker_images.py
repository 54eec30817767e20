"""Images for workers of these tests on the ``docker`` runtime: a plain Python is enough for their programs."""

from __future__ import annotations

import docker

BASE = "python:3.11-slim"
TEST_IMAGE = "ces-worker-test"


def ensure_images() -> None:
    """Everything that a job of these tests needs on the engine."""
    from compose_stack import build_missing_images

    build_missing_images()
    engine = docker.from_env()
    try:
        engine.images.get(BASE).tag(TEST_IMAGE)
    finally:
        engine.close()

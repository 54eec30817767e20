"""The images that a node's workers may use, in its engine."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from docker.errors import APIError, ImageNotFound

from ces_edge_agent.ports import Refused
from ces_edge_agent.runtimes.engine import Engine, explain
from ces_edge_agent.runtimes.images import BadName, allowed, explicit, parse_image, parse_pattern


class ImageStore:
    """``patterns``: of the images that workers may use. ``pull``: whether one that the engine lacks may be fetched."""

    def __init__(self, engine: Engine, patterns: Sequence[str], pull: bool) -> None:
        self._engine, self._pull = engine, pull
        self._allowed, self._allowing = [parse_pattern(pattern) for pattern in patterns], ", ".join(patterns)

    def get(self, image: str | None) -> tuple[str, dict[str, Any]]:
        """The image's name and description, if workers may use it and the engine has it or can pull it. Raises
        Refused."""
        if not image:
            raise Refused("the task names no image, which this node needs")
        try:
            name = parse_image(image)
        except BadName as error:
            raise Refused(str(error)) from error
        if not allowed(name, self._allowed):
            raise Refused(f"image {image} is not among those that this node allows: {self._allowing}")
        image = explicit(image, name)
        client = self._engine.client
        with contextlib.suppress(ImageNotFound):
            return image, client.inspect_image(image)
        problem = "pulling is not allowed here"
        if self._pull:
            try:
                client.pull(image)
                return image, client.inspect_image(image)
            except APIError as error:
                problem = explain(error)
        raise Refused(f"image {image} is not known to this node's engine and could not be pulled: {problem}")

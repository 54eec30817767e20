"""A path through the network."""

from __future__ import annotations

from typing import NamedTuple


class Path(NamedTuple):
    """A path through the network. A path within a node has no link."""

    nodes: tuple[int, ...]
    links: tuple[int, ...]
    loads: tuple[tuple[int, int], ...]
    """``(resource, count)``: what one unit of bandwidth uses. Resources are the links, then the media: resource
    ``len(links) + m`` is medium ``m``, which a path may use more than once."""

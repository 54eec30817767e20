"""Paths between ordered pairs of nodes, over directed links: all hop-shortest ones, or the K shortest simple ones."""

from ces_core.paths.network import Network
from ces_core.paths.path import FlatPaths, Path
from ces_core.paths.table import MAX_TIES, PathTable

__all__ = ["MAX_TIES", "FlatPaths", "Network", "Path", "PathTable"]

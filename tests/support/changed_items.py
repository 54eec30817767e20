"""Changes of a document by one item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def set_item(*where: Any) -> Callable[[dict[str, Any]], None]:
    """What sets the item at a path of keys; the last argument is the value."""
    *keys, last, value = where

    def change(data: dict[str, Any]) -> None:
        target: Any = data
        for key in keys:
            target = target[key]
        target[last] = value

    return change

"""A thread-safe least-recently-used cache with a limit on the total size of its entries. (``cachetools`` refuses
entries above the limit, and does not say which was used last.)"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """Entries up to a total size; the newest one is kept whatever its size. Threads may share a cache."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._used = 0
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Key, value: Value, size: int) -> None:
        """``size`` is in the unit of the cache's capacity."""
        with self._lock:
            _, before = self._entries.pop(key, (None, 0))
            self._entries[key] = (value, size)
            self._used += size - before
            while self._used > self._room and len(self._entries) > 1:
                self._used -= self._entries.popitem(last=False)[1][1]

    def newest_first(self) -> Iterator[tuple[Key, Value]]:
        """The entries, most recently used first."""
        with self._lock:
            entries = [(key, value) for key, (value, _) in self._entries.items()]
        return reversed(entries)

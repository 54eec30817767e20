"""What a wire with a delay holds: frames in the order in which they may leave it, bounded in bytes. Pure."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

SLACK = 1 << 20  # bytes beyond what the wire's rate and delay explain: bursts
MOST = 64 << 20  # bytes; what a longer and faster wire holds beyond is lost
FRAME = 256  # bytes of memory that a frame takes beside its own
ALL = 512 << 20  # bytes that all wires of a cluster hold together


def room(rate: int, delay_us: int) -> int:
    """Bytes that one way of a wire may hold. ``rate``: bit/s that are sent over it at most."""
    return min(MOST, rate * delay_us // 8_000_000 + SLACK)


@dataclass
class Line:
    """One way of a wire: frames leave by ``out`` after ``delay_ns``. ``room``: bytes that it holds at most."""

    out: int
    delay_ns: int
    room: int
    held: int = 0


@dataclass
class Frames:
    """All frames on their way, over all lines. ``held``: bytes of memory that they take. Moments are nanoseconds of a
    clock that never goes back."""

    _heap: list[tuple[int, int, Line, bytes]] = field(default_factory=list)
    _count: int = 0
    lost: int = 0
    held: int = 0

    def take(self, line: Line, frame: bytes, now: int) -> None:
        """A frame enters the line; one for which it has no room is lost."""
        size = len(frame) + FRAME
        if line.held + len(frame) > line.room or self.held + size > ALL:
            self.lost += 1
            return
        line.held += len(frame)
        self.held += size
        self._count += 1  # frames of one moment keep their order
        heapq.heappush(self._heap, (now + line.delay_ns, self._count, line, frame))

    def due(self, now: int) -> list[tuple[Line, bytes]]:
        """Takes out what may leave by now, first come first."""
        leaving = []
        while self._heap and self._heap[0][0] <= now:
            _, _, line, frame = heapq.heappop(self._heap)
            line.held -= len(frame)
            self.held -= len(frame) + FRAME
            leaving.append((line, frame))
        return leaving

    @property
    def next(self) -> int | None:
        """When the next one may leave."""
        return self._heap[0][0] if self._heap else None

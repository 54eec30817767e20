"""How values are written for people, and in which colour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rich.text import Text

from ces_common.quantities import show_bandwidth, show_cpu, show_memory

DASH = "–"
DAYS_OF_A_WEEK = 7
LARGEST = 10**15  # of a worker's numbers: none that it counts is larger, and a row has room for its digits
STATE_STYLES = {
    "queued": "yellow",
    "planned": "cyan",
    "preparing": "cyan",
    "starting": "cyan",
    "pending": "cyan",
    "running": "green",
    "ready": "green",
    "up": "green",
    "elsewhere": "green",
    "paused": "magenta",
    "suspended": "magenta",
    "stopping": "yellow",
    "resizing": "yellow",
    "rescheduling": "yellow",
    "succeeded": "bold green",
    "failed": "bold red",
    "lost": "bold red",
    "here": "green",
    "old": "yellow",
    "silent": "yellow",
    "refused": "bold red",
    "down": "bold red",
    "unreachable": "bold red",
    "cancelled": "dim",
    "stopped": "dim",
}


def number(value: object) -> float | None:
    """A number that somebody else wrote; None for what is none, or too large to mean anything."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -LARGEST <= value <= LARGEST:
        return None
    return float(value)


def local_now() -> datetime:
    """In the time zone of whoever looks."""
    return datetime.now(UTC).astimezone()


def state_text(state: str | None) -> Text:
    return Text(state or DASH, style=STATE_STYLES.get(state or "", ""))


def span(seconds: float) -> str:
    """A duration in its two largest units: ``42s``, ``3m07s``, ``2h05m``, ``4d03h``."""
    whole = max(0, int(seconds))
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d{hour:02d}h"
    if hours:
        return f"{hours}h{minute:02d}m"
    return f"{minutes}m{second:02d}s" if minutes else f"{second}s"


def since(start: datetime | None, now: datetime) -> str:
    return DASH if start is None else span((now - start) / timedelta(seconds=1))


def moment(at: datetime, now: datetime) -> str:
    """A time of day in the zone of ``now``, with the day where that is another: ``14:02``, ``Tue 09:30``,
    ``30 Nov 09:30``."""
    local = at.astimezone(now.tzinfo)
    days = (local.date() - now.date()).days
    if days == 0:
        return f"{local:%H:%M}"
    if abs(days) < DAYS_OF_A_WEEK:
        return f"{local:%a %H:%M}"
    return f"{local.day} {local:%b %H:%M}" if local.year == now.year else f"{local:%Y-%m-%d %H:%M}"


def rate(value: float | None) -> str:
    return DASH if value is None else show_bandwidth(value)


def rate_range(low: int, high: int) -> str:
    """``10–50 Mbit/s``; the unit once where both ends share it."""
    small, large = show_bandwidth(low), show_bandwidth(high)
    if small == large:
        return large
    number, unit = small.split(" ", 1)
    return f"{number}–{large}" if large.endswith(f" {unit}") else f"{small} – {large}"


def path_text(path: list[str]) -> str:
    """``n0 › s0 › n1``; a path of one node uses no link."""
    if not path:
        return DASH
    return f"within {path[0]}" if len(path) == 1 else " › ".join(path)


def cpu_share(used: int, total: int) -> str:
    return f"{used / 1000:g}/{show_cpu(total)}" if total else DASH


def memory_share(used: int, total: int) -> str:
    return f"{show_memory(used)} / {show_memory(total)}" if total else DASH

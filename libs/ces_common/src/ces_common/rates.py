"""How often each sender may say something. Pure."""

from __future__ import annotations

LOOK_EVERY = 1024  # messages between two looks for senders that have been quiet


class SenderRate:
    """``per_s`` messages of a sender in the long run, ``burst`` at once."""

    def __init__(self, per_s: float, burst: int) -> None:
        self._gap_s, self._ahead_s = 1 / per_s, burst / per_s
        self._due: dict[str, float] = {}  # sender -> when all that it said would have been said evenly
        self._heard = 0

    def allows(self, sender: str, now: float) -> bool:
        self._heard += 1
        if self._heard % LOOK_EVERY == 0:
            self._due = {name: due for name, due in self._due.items() if due > now}
        due = max(self._due.get(sender, now), now) + self._gap_s
        if due - now > self._ahead_s:
            return False
        self._due[sender] = due
        return True

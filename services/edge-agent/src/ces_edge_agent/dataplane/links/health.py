"""A link's failure detector: judges by its device's state and by whether the neighbour answers probes. Pure.

A VXLAN has a carrier even when nothing is at its other end, so only an answer shows that a link works. What counts is
any answer between one probe and the next, since a round trip may take longer than the interval. Probes that a busy
agent did not send do not count as missed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from ces_common.messages.reports import LinkStatus

PROBE_EVERY_S = 0.2
MISSES = 4  # intervals in a row without an answer: the link is down
ANSWERS = 3  # intervals in a row with one: it is up
START_S = 10.0  # before a link that was never up is called down: its neighbour may just be starting
PATIENCE_S = 2.0  # an answer that took longer does not count


@dataclass
class Health:
    """Health of one link. ``probed``: whether its neighbour is probed; if not, only the device's state counts.
    ``excused_until``: missing answers do not count until then. ``lenient_s``: they count only once no answer has come
    for this long. ``now``: seconds on a clock that never goes back."""

    peer: str
    device: str
    probed: bool = True
    excused_until: float = -inf
    lenient_s: float = 0.0
    _since: float | None = None  # when the device was first observed
    _settled: bool = False  # it was up once, or has had the time to come up
    _fault: str | None = None
    _up: bool | None = None  # None: not probed for long enough
    _heard: bool = False
    _silent_since: float | None = None  # when it last answered, or was first probed
    _misses: int = 0
    _answers: int = 0
    _reason: str = field(default="", repr=False)

    def observe(self, now: float, fault: str | None) -> None:
        """Take in the device's state. ``fault``: what is wrong with it, None if nothing is."""
        if self._since is None:
            self._since = now
        elif fault is not None or self._fault is not None:
            self._up, self._heard, self._silent_since, self._misses, self._answers = None, False, None, 0, 0
        self._fault = fault

    @property
    def can_probe(self) -> bool:
        return self.probed and self._since is not None and self._fault is None

    def answered(self, now: float, sent: float) -> None:
        """Take in an answer to a probe sent at ``sent``."""
        if now - sent <= PATIENCE_S:
            self._heard = True

    def tick(self, now: float) -> None:
        """Judge by the answers since the last probe. To be called at every interval, just before a probe is sent."""
        if self.can_probe:
            self._judge(now)
        late = self._since is not None and now - self._since >= START_S
        self._settled = self._settled or self._works or late

    def status(self) -> LinkStatus | None:
        """The state to report; None while it is not known yet."""
        if not self._settled:
            return None
        if self._works:
            return LinkStatus(peer=self.peer, state="up")
        if self._fault is not None:
            return LinkStatus(peer=self.peer, state="down", reason=f"device {self.device} {self._fault}")
        return None if self._up is None else LinkStatus(peer=self.peer, state="down", reason=self._reason)

    @property
    def _works(self) -> bool:
        return self._since is not None and self._fault is None and (not self.probed or self._up is True)

    def _judge(self, now: float) -> None:
        if self._silent_since is None:
            self._silent_since = now
            return
        if now < self.excused_until and not self._heard:
            self._silent_since, self._misses = now, 0
            return
        if now - self._silent_since < self.lenient_s and not self._heard:
            self._misses = self._answers = 0
            return
        if self._heard:
            self._heard, self._silent_since = False, now
            self._misses, self._answers = 0, self._answers + 1
        else:
            self._misses, self._answers = self._misses + 1, 0
        if self._up is not True and self._answers >= ANSWERS:
            self._up = True
        elif self._up is not False and self._misses >= MISSES:
            self._up = False
            self._reason = f"no answer from {self.peer} for {now - self._silent_since:.1f} s"

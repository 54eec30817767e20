"""Whether a link carries traffic: by what its device shows, and by whether the neighbour answers over it. Pure.

A VXLAN has a carrier even when nothing is at its other end, so that only an answer shows that a link works. What counts
is whether anything was heard from one probe to the next, not the answer to the last one: a round trip may take longer
than the time between two. Probes that a busy agent did not send are not missed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from ces_common.messages.reports import LinkStatus

PROBE_EVERY_S = 0.2
MISSES = 4  # probes in a row after which nothing was heard: the link is down
ANSWERS = 3  # in a row: it is up again
START_S = (
    10.0  # how long a link that was never up is given before it is called down: its neighbour may just be starting
)
PATIENCE_S = 2.0  # an answer that took longer is none


@dataclass
class Health:
    """One link. ``probed``: its neighbour can be asked, and can answer; else its device's word is all there is.
    ``excused_until``: until then a missing answer says nothing. ``now``: seconds on a clock that never goes back."""

    peer: str
    device: str
    probed: bool = True
    excused_until: float = -inf
    _since: float | None = None  # when it was first looked at
    _settled: bool = False  # it was up once, or had the time to come up
    _fault: str | None = None
    _up: bool | None = None  # None: not asked for long enough
    _heard: bool = False
    _asked_since: float | None = None  # when it was last heard, or first asked
    _misses: int = 0
    _answers: int = 0
    _reason: str = field(default="", repr=False)

    def shows(self, now: float, fault: str | None) -> None:
        """``fault``: what is wrong with the device, None where nothing is."""
        if self._since is None:
            self._since = now
        elif fault is not None or self._fault is not None:
            self._up, self._heard, self._asked_since, self._misses, self._answers = None, False, None, 0, 0
        self._fault = fault

    @property
    def askable(self) -> bool:
        return self.probed and self._since is not None and self._fault is None

    def answered(self, now: float, sent: float) -> None:
        if now - sent <= PATIENCE_S:
            self._heard = True

    def tick(self, now: float) -> None:
        """Judge by what was heard since the last probe; to be called every so often, just before a probe is sent."""
        if self.askable:
            self._judge(now)
        late = self._since is not None and now - self._since >= START_S
        self._settled = self._settled or self._works or late

    def status(self) -> LinkStatus | None:
        """None while nothing is known yet."""
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
        if self._asked_since is None:
            self._asked_since = now
            return
        if now < self.excused_until and not self._heard:
            self._asked_since, self._misses = now, 0
            return
        if self._heard:
            self._heard, self._asked_since = False, now
            self._misses, self._answers = 0, self._answers + 1
        else:
            self._misses, self._answers = self._misses + 1, 0
        if self._up is not True and self._answers >= ANSWERS:
            self._up = True
        elif self._up is not False and self._misses >= MISSES:
            self._up = False
            self._reason = f"no answer from {self.peer} for {now - self._asked_since:.1f} s"

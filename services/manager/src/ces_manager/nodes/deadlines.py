"""How long each step towards a running job has waited, for comparison with its timeout (a user's deadline is another
matter). Time counts only while everybody who is responsible for the step is heard. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

NETWORK_CTL, COMPUTE_CTL = "network-ctl", "compute-ctl"


@dataclass(frozen=True, slots=True)
class Responsible:
    """Somebody without whom a job does not go on. ``heard``: when last, None for never; after ``silent_s`` without a
    word it counts as away."""

    name: str
    heard: float | None
    silent_s: float

    def away(self, now: float) -> bool:
        return self.heard is None or now - self.heard > self.silent_s


@dataclass(frozen=True, slots=True)
class Step:
    """What is waited for. ``stamp``: changes with every step that is taken; ``preparing``: agents say that they are at
    it, such as fetching an image, ``said``: what one of them says it waits for; ``hindered``: a node that the job
    uses is away, whether or not it is responsible for this step."""

    stamp: Hashable
    responsible: Sequence[Responsible]
    preparing: bool = False
    hindered: bool = False
    said: str | None = None


@dataclass(frozen=True, slots=True)
class Waited:
    """Seconds for which a step could have been taken: ``idle``, and ``preparing`` while agents said they were at it.
    ``hindered``: at some look since the last step, somebody whom it takes was away."""

    stamp: Hashable
    until: float  # up to when time has been judged
    idle: float = 0.0
    preparing: float = 0.0
    hindered: bool = False


class Waits:
    """How long each step is waited for, by a clock that stops while anybody responsible is away. What is seen for the
    first time has not waited, so nothing from before a restart plays a part."""

    def __init__(self) -> None:
        self._waits: dict[str, Waited] = {}

    def look(self, steps: Mapping[str, Step], now: float) -> Mapping[str, Waited]:
        """Count up to now, and return all waits. What is not named is forgotten."""
        self._waits = {name: _counted(self._waits.get(name), step, now) for name, step in steps.items()}
        return self._waits


def _counted(before: Waited | None, step: Step, now: float) -> Waited:
    away = any(each.away(now) for each in step.responsible)
    if before is None or before.stamp != step.stamp:
        return Waited(step.stamp, now, hindered=away or step.hindered)
    before = replace(before, hindered=before.hindered or away or step.hindered)
    if away:
        return replace(before, until=now)
    # Only up to when all were heard: what comes after may turn out to have been silence.
    until = max(before.until, min((each.heard or 0.0 for each in step.responsible), default=now))
    passed = until - before.until
    if step.preparing:
        return replace(before, until=until, preparing=before.preparing + passed)
    return replace(before, until=until, idle=before.idle + passed)


def waiting_for(step: Step, waited: Waited, now: float, since: float) -> str | None:
    """What keeps a step from being taken, in words; None where it is only to be taken. ``since``: when this manager
    began to listen."""
    away = [each for each in step.responsible if each.away(now)]
    if away:
        last = min(since if each.heard is None else each.heard for each in away)
        return f"waiting for {', '.join(each.name for each in away)}, not heard for {now - last:.0f} s"
    if step.preparing:
        return step.said or f"waiting for agents that have been preparing workers for {waited.preparing:.0f} s"
    return None
